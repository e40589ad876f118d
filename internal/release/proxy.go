package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// A proxy is a folder that the go command takes modules from.
type proxy struct{ dir string }

// publish adds a module to the proxy.
func (p proxy) publish(m released) error {
	path, err := module.EscapePath(m.Path)
	if err != nil {
		return err
	}
	dir := filepath.Join(p.dir, filepath.FromSlash(path), "@v")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	file := func(name string, data []byte) error {
		return os.WriteFile(filepath.Join(dir, name), data, 0o644)
	}
	version := m.Version.Version
	mod, err := os.ReadFile(filepath.Join(m.dir, "go.mod"))
	if err != nil {
		return err
	}
	info, err := json.Marshal(struct {
		Version string
		Time    time.Time
	}{version, time.Unix(0, 0).UTC()})
	if err != nil {
		return err
	}
	archive, err := os.Create(filepath.Join(dir, version+".zip"))
	if err != nil {
		return err
	}
	defer archive.Close()
	if err := zip.CreateFromDir(archive, m.Version, m.dir); err != nil { // without the modules below
		return err
	}
	for _, err := range []error{archive.Close(), file(version+".mod", mod), file(version+".info", info), file("list", []byte(version+"\n"))} {
		if err != nil {
			return err
		}
	}
	return nil
}

// environ returns an environment in which the go command takes the released modules from
// the proxy, and others from the module cache or from where it takes them by default. The
// module cache is in the folder of the proxy, because these versions are not the final ones.
func (p proxy) environ(ctx context.Context) ([]string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOMODCACHE", "GOPROXY").Output()
	if err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	cache, byDefault, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return append(os.Environ(),
		"GOPROXY=file://"+p.dir+",file://"+filepath.Join(cache, "cache", "download")+","+byDefault,
		"GONOSUMDB=github.com/busdk/*", "GOFLAGS=-mod=mod -modcacherw -trimpath", "GOWORK=off",
		"GOMODCACHE="+filepath.Join(filepath.Dir(p.dir), "modules"),
	), nil
}
