package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
)

const (
	mainPath        = "github.com/busdk/bus-agent"
	preferencesPath = "github.com/busdk/bus-preferences"
)

// A release is what is made of a repository.
type release struct {
	root, out            string
	version, preferences string
}

// released is a module that is released.
type released struct {
	module.Version
	dir  string // in the tree
	file *modfile.File
}

// make makes the tree and the proxy. It changes nothing outside the folder out, which
// must not exist. After an error there is none. The tree of a release, as a repository,
// gives the same tree for its version.
func (r *release) make(ctx context.Context) (err error) {
	for _, version := range []string{r.version, r.preferences} {
		if semver.Canonical(version) != version || version == "" || semver.Major(version) > "v1" {
			return fmt.Errorf("%q is not a version such as v1.2.3 of these modules", version)
		}
	}
	if r.out == "" {
		return errors.New("-out names no folder")
	}
	if err := os.Mkdir(r.out, 0o755); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(r.out))
		}
	}()
	out, err := filepath.Abs(r.out)
	if err != nil {
		return err
	}
	tree := filepath.Join(out, "tree")
	if err := r.copyTree(ctx, tree); err != nil {
		return err
	}
	modules, err := r.modules(ctx, tree)
	if err != nil {
		return err
	}
	// The tree of a release has neither, and its tree is the same.
	if slices.ContainsFunc(modules, func(m released) bool { return len(m.file.Replace) > 0 }) {
		if err := dropNotice(filepath.Join(tree, "README.md")); err != nil {
			return err
		}
	}
	proxy := proxy{dir: filepath.Join(out, "proxy")}
	for _, m := range modules { // a module comes after those that it needs
		if err := r.settle(ctx, m, modules, proxy); err != nil {
			return fmt.Errorf("%s: %w", m.Path, err)
		}
		if err := proxy.publish(m); err != nil {
			return fmt.Errorf("%s: %w", m.Path, err)
		}
	}
	return nil
}

// copyTree copies the files of the repository as they are committed.
func (r *release) copyTree(ctx context.Context, tree string) error {
	if err := os.Mkdir(tree, 0o755); err != nil {
		return err
	}
	archive := exec.CommandContext(ctx, "git", "-C", r.root, "-c", "core.autocrlf=false", "-c", "core.eol=lf", "archive", "--format=tar", "HEAD")
	unpack := exec.CommandContext(ctx, "tar", "-xf", "-", "-C", tree)
	archive.Stderr, unpack.Stderr = os.Stderr, os.Stderr
	var err error
	if unpack.Stdin, err = archive.StdoutPipe(); err != nil {
		return err
	}
	if err := unpack.Start(); err != nil {
		return err
	}
	if err := cmp.Or(archive.Run(), unpack.Wait()); err != nil {
		return fmt.Errorf("copy the committed files: %w", err)
	}
	return nil
}

// modules returns the modules to release, those that others need first. Examples and
// what is below internal are not released.
func (r *release) modules(ctx context.Context, tree string) (all []released, err error) {
	err = filepath.WalkDir(tree, func(path string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(tree, path)
		switch {
		case err != nil:
			return err
		case d.IsDir() && (rel == "examples" || rel == "internal" || d.Name() == "testdata"):
			return fs.SkipDir
		case d.Name() != "go.mod":
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		file, err := modfile.Parse(rel, data, nil)
		if err != nil {
			return err
		}
		m := released{Version: module.Version{Path: file.Module.Mod.Path, Version: r.version}, dir: filepath.Dir(path), file: file}
		if m.Path == preferencesPath {
			m.Version.Version = r.preferences
		}
		all = append(all, m)
		return nil
	})
	if err != nil {
		return nil, err
	}
	var sorted []released
	for len(all) > 0 {
		free := slices.IndexFunc(all, func(m released) bool {
			return !slices.ContainsFunc(m.file.Require, func(need *modfile.Require) bool { return find(all, need.Mod.Path) != nil })
		})
		if free < 0 {
			return nil, errors.New("the modules need each other in a circle")
		}
		sorted, all = append(sorted, all[free]), slices.Delete(all, free, free+1)
	}
	return sorted, nil
}

func find(modules []released, path string) *released {
	if i := slices.IndexFunc(modules, func(m released) bool { return m.Path == path }); i >= 0 {
		return &modules[i]
	}
	return nil
}

// settle makes m need the released versions of the other modules, without replace lines.
func (r *release) settle(ctx context.Context, m released, modules []released, served proxy) error {
	for _, line := range slices.Clone(m.file.Replace) {
		if find(modules, line.Old.Path) == nil {
			return fmt.Errorf("it replaces %s, which is not released", line.Old.Path)
		}
		if err := m.file.DropReplace(line.Old.Path, line.Old.Version); err != nil {
			return err
		}
	}
	for _, need := range m.file.Require {
		if other := find(modules, need.Mod.Path); other != nil {
			if err := m.file.AddRequire(other.Path, other.Version.Version); err != nil {
				return err
			}
		}
	}
	m.file.Cleanup()
	data, err := m.file.Format()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(m.dir, "go.mod"), data, 0o644); err != nil {
		return err
	}
	tidy := exec.CommandContext(ctx, "go", "mod", "tidy")
	tidy.Dir, tidy.Stderr = m.dir, os.Stderr
	if tidy.Env, err = served.environ(ctx); err != nil {
		return err
	}
	return tidy.Run()
}

// dropNotice removes from the README what is true only until bus-preferences is
// published.
func dropNotice(name string) error {
	const from, to = " Until\nbus-preferences is published", "\n## Where to go next"
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(data), from)
	_, after, ends := strings.Cut(rest, to)
	if !ok || !ends {
		return fmt.Errorf("%s does not say that bus-preferences is not published", filepath.Base(name))
	}
	return os.WriteFile(name, []byte(before+"\n"+to+after), 0o644)
}
