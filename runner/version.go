package runner

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"sync"
	"time"

	"github.com/busdk/bus-agent/internal/process"
	"github.com/busdk/bus-agent/internal/tree"
	"github.com/busdk/bus-agent/registry"
)

// versionLimit bounds the call of --version.
const versionLimit = 10 * time.Second

// versionNumber is compiled on first use.
var versionNumber = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\d+(\.\d+)+([.+-]*[0-9A-Za-z]+)*`)
})

// ErrNoVersion is the error of [Version] for a CLI that says no version. It can be used.
var ErrNoVersion = errors.New("it says no version")

// Version runs the CLI of rt at path, absolute, with --version in an empty directory, for at
// most 10 seconds, and returns the number in its output. It removes what the CLI writes below its Home.Env.
func Version(ctx context.Context, rt registry.Runtime, path string, environ []string) (string, error) {
	dir, claim, err := makeTempDir(environ, "")
	if err == nil && dir == "" {
		err = errors.New("no folder for temporary files")
	}
	if err != nil {
		return "", err
	}
	defer claim.Release()
	defer func() {
		after, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopLimit)
		defer cancel()
		_ = removeTempDir(tree.NewBudget(after, tree.Default), dir) // what stays is swept
	}()
	ctx, cancel := context.WithTimeout(ctx, versionLimit)
	defer cancel()
	own := []string{"TMPDIR=" + dir, "PWD=" + dir}
	if rt.Home.Env != "" {
		own = append(own, rt.Home.Env+"="+dir)
	}
	said, complained := &beginning{limit: 4 << 10}, &beginning{limit: 4 << 10}
	spec := process.Spec{
		Path: path, Args: []string{"--version"}, Dir: dir, Stdout: said, Stderr: complained, Grace: time.Second, Settle: -1,
		Env: mergeEnv(environ, own),
	}
	exit, err := process.Run(ctx, spec)
	version := versionNumber().Find(said.text)
	if version == nil {
		version = versionNumber().Find(complained.text) // some say it there
	}
	if start, ok := errors.AsType[*process.StartError](err); ok {
		return "", cannotStart(Selection{Runtime: rt, Path: path}, start.Err)
	}
	switch {
	case err != nil:
		return "", err
	case exit.Stopped && ctx.Err() == context.DeadlineExceeded:
		return "", fmt.Errorf("no answer to --version within %v", versionLimit)
	case exit.Stopped:
		return "", context.Cause(ctx)
	case exit.Signal != "":
		return "", fmt.Errorf("--version was ended by %s", exit.Signal)
	case exit.Code != 0:
		return "", fmt.Errorf("--version ends with exit code %d", exit.Code)
	case version == nil:
		return "", ErrNoVersion
	}
	return string(version), nil
}

// beginning keeps the beginning of what is written.
type beginning struct {
	text  []byte
	limit int
}

func (k *beginning) Write(b []byte) (int, error) {
	k.text = append(k.text, b[:min(len(b), k.limit-len(k.text))]...)
	return len(b), nil
}

// version returns the version of the run's CLI, called in the caller's environment: the
// private home of the run can be removed before the call ends, which would create it
// again.
func (p *prepared) version(ctx context.Context) (string, error) {
	return Version(ctx, p.selection.Runtime, p.selection.Path, mergeEnv(p.inv.Environ, p.gitEnv))
}
