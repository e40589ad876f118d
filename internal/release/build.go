package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// A builder builds programs from the modules of a proxy, as users do with "go install".
type builder struct {
	proxy   proxy
	version string
	gopath  string // the folder for the programs
}

// bin returns the folder of the programs for a platform.
func (b builder) bin(p platform) string {
	if p == here {
		return filepath.Join(b.gopath, "bin")
	}
	return filepath.Join(b.gopath, "bin", p.String())
}

// build builds the programs with the import paths for a platform. They are static, stripped
// and free of paths of this machine: the same version of Go makes the same bytes everywhere.
func (b builder) build(ctx context.Context, p platform, importPaths []string) (files []file, err error) {
	environ, err := b.proxy.environ(ctx)
	if err != nil {
		return nil, err
	}
	environ = append(environ, "GOPATH="+b.gopath, "GOBIN=", "GOOS="+p.OS, "GOARCH="+p.Arch,
		"CGO_ENABLED=0", "GOAMD64=v1", "GOARM64=v8.0")
	for _, importPath := range importPaths {
		install := exec.CommandContext(ctx, "go", "install", "-tags", "urfave_cli_no_docs",
			"-ldflags", "-s -w -X main.version="+b.version, importPath+"@"+b.version)
		install.Env, install.Stderr = environ, os.Stderr
		if err := install.Run(); err != nil {
			return nil, fmt.Errorf("build %s for %s: %w", importPath, p, err)
		}
		name := programName(importPath)
		f, err := readFile("bin/"+name, filepath.Join(b.bin(p), name), 0o755)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

// completions returns the files with the completions of bus-agent, which the program at
// name prints. It runs on this machine.
func completions(ctx context.Context, name string) (files []file, err error) {
	for _, shell := range []struct{ name, file string }{
		{"bash", "share/bash-completion/completions/bus-agent"},
		{"zsh", "share/zsh/site-functions/_bus-agent"},
		{"fish", "share/fish/vendor_completions.d/bus-agent.fish"},
	} {
		script, err := exec.CommandContext(ctx, name, "completion", shell.name).Output()
		if err != nil {
			return nil, fmt.Errorf("completion for %s: %w", shell.name, err)
		}
		files = append(files, file{shell.file, script, 0o644})
	}
	return files, nil
}
