package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// makeArtifacts makes what users download in the folder artifacts of r.out, for the
// platforms: for each product its archives, packages, bills of materials and formula, the
// packages of npm, and the checksums of all. The same commit and version of Go make the
// same bytes.
func (r *release) makeArtifacts(ctx context.Context, platforms []platform) error {
	out, err := filepath.Abs(r.out)
	if err != nil {
		return err
	}
	tree := filepath.Join(out, "tree")
	m := maker{
		builder:   builder{proxy: proxy{dir: filepath.Join(out, "proxy")}, version: r.version, gopath: filepath.Join(out, "programs")},
		number:    strings.TrimPrefix(r.version, "v"),
		platforms: platforms,
	}
	if m.modified, err = r.modified(ctx); err != nil {
		return err
	}
	extras, err := m.extras(ctx, tree)
	if err != nil {
		return err
	}
	var made []file
	for _, p := range products {
		shared, err := documents(tree, p)
		if err != nil {
			return err
		}
		if p.name == mainProduct {
			shared = append(shared, extras...)
		}
		files, err := m.product(ctx, p, shared)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		made = append(made, files...)
	}
	return write(filepath.Join(out, "artifacts"), append(made, checksums(made)))
}

// A maker makes the artifacts of a version.
type maker struct {
	builder
	number    string // the version, without v
	modified  time.Time
	platforms []platform
}

// extras returns the completions and man pages of bus-agent.
func (m maker) extras(ctx context.Context, tree string) ([]file, error) {
	if _, err := m.build(ctx, here, products[0].programs[:1]); err != nil {
		return nil, err
	}
	files, err := completions(ctx, filepath.Join(m.bin(here), mainProduct))
	if err != nil {
		return nil, err
	}
	pages, err := manPages(filepath.Join(tree, "docs", "cli.md"), m.version, m.modified)
	return append(files, pages...), err
}

// product returns the artifacts of a product. shared are its files for all platforms.
func (m maker) product(ctx context.Context, p product, shared []file) (made []file, err error) {
	var archives []file
	for _, on := range m.platforms {
		programs, err := m.build(ctx, on, p.programs)
		if err != nil {
			return nil, err
		}
		files := append(slices.Clip(programs), shared...)
		name := p.name + "_" + m.number + "_" + on.String()
		data, err := archive(name, files, m.modified)
		if err != nil {
			return nil, err
		}
		archives = append(archives, file{name + ".tar.gz", data, 0o644})
		bom, err := sbom(p, name, m.version, programs, m.modified)
		if err != nil {
			return nil, err
		}
		made = append(made, bom)
		if on.OS == "linux" {
			packages, err := linuxPackages(p, on, m.number, files, m.modified)
			if err != nil {
				return nil, err
			}
			made = append(made, packages...)
		}
		if p.name == mainProduct {
			npm, err := npmPrograms(on, m.number, programs, m.modified)
			if err != nil {
				return nil, err
			}
			made = append(made, npm)
		}
	}
	brew, err := formula(p, m.number, m.platforms, archives)
	if err != nil {
		return nil, err
	}
	made = append(append(made, archives...), brew)
	if p.name == mainProduct {
		npm, err := npmLauncher(p, m.number, shared, m.modified)
		if err != nil {
			return nil, err
		}
		made = append(made, npm)
	}
	return made, nil
}

// modified returns when the commit was made, which is the time of all files.
func (r *release) modified(ctx context.Context) (time.Time, error) {
	out, err := exec.CommandContext(ctx, "git", "-C", r.root, "log", "-1", "--format=%ct", "HEAD").Output()
	if err != nil {
		return time.Time{}, fmt.Errorf("time of the commit: %w", err)
	}
	seconds, err := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
	return time.Unix(seconds, 0).UTC(), err
}

// write writes files into a new folder.
func write(dir string, files []file) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(dir, f.name), f.data, f.mode); err != nil {
			return err
		}
	}
	return nil
}
