//go:build release

package main

import (
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// made is the release that all tests use.
type made struct {
	proxy   proxy
	environ []string
}

func makeRelease(t *testing.T) made {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out")
	r := release{root: "../..", out: out, version: "v0.9.1", preferences: "v0.9.2"}
	if err := r.make(t.Context()); err != nil {
		t.Fatal(err)
	}
	m := made{proxy: proxy{filepath.Join(out, "proxy")}}
	var err error
	if m.environ, err = m.proxy.environ(context.Background()); err != nil {
		t.Fatal(err)
	}
	return m
}

// do runs the go command in dir and returns what it prints.
func (m made) do(t *testing.T, dir string, extra []string, args ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), "go", args...)
	c.Dir, c.Env = dir, append(m.environ, extra...)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// What is tagged can be installed and imported, with nothing to edit.
func TestRelease(t *testing.T) {
	m := makeRelease(t)
	t.Run("programs", func(t *testing.T) {
		bin := t.TempDir()
		for program, path := range map[string]string{
			"bus-agent":            mainPath + "/cmd/bus-agent",
			"bus-agent-rest":       mainPath + "/bus-agent-rest",
			"bus-agent-mcp":        mainPath + "/bus-agent-mcp",
			"bus-agent-otel":       mainPath + "/otel/cmd/bus-agent-otel",
			"bus-integration-task": "github.com/busdk/bus-integration-task/cmd/bus-integration-task",
		} {
			m.do(t, t.TempDir(), []string{"GOBIN=" + bin}, "install", path+"@v0.9.1")
			out, err := exec.CommandContext(t.Context(), filepath.Join(bin, program), "--help").CombinedOutput()
			if err != nil || len(out) == 0 {
				t.Errorf("%s --help: %v\n%s", program, err, out)
			}
		}
		out, err := exec.CommandContext(t.Context(), filepath.Join(bin, "bus-agent"), "version").Output()
		if got := strings.TrimSpace(string(out)); err != nil || got != "bus-agent v0.9.1" {
			t.Errorf("bus-agent version prints %q, %v", got, err)
		}
	})
	t.Run("the README's program", func(t *testing.T) {
		readme, err := os.ReadFile("../../README.md")
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(readme), "```go\n")
		program, _, ok := strings.Cut(rest, "```")
		if !ok {
			t.Fatal("the README has no program")
		}
		dir := newModule(t, m, program)
		m.do(t, dir, nil, "get", mainPath+"@v0.9.1")
		m.do(t, dir, nil, "mod", "tidy")
		m.do(t, dir, nil, "build", "-o", os.DevNull, ".")
	})
	t.Run("the tree has no line that holds only before a release", func(t *testing.T) {
		tree := filepath.Join(filepath.Dir(m.proxy.dir), "tree")
		for _, dir := range []string{".", "otel", "bus-agent-mcp", "bus-agent-rest", "bus-integration-task", "bus-preferences"} {
			text, err := os.ReadFile(filepath.Join(tree, dir, "go.mod"))
			if err != nil || strings.Contains(string(text), "replace") || strings.Contains(string(text), "v0.0.0 ") {
				t.Errorf("%s/go.mod: %v\n%s", dir, err, text)
			}
		}
		readme, err := os.ReadFile(filepath.Join(tree, "README.md"))
		if err != nil || strings.Contains(string(readme), "replace ") || strings.Contains(string(readme), "published") {
			t.Errorf("README.md: %v\n%s", err, readme)
		}
		if err := filepath.WalkDir(tree, func(name string, d fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(name) != ".md" {
				return err
			}
			text, err := os.ReadFile(name)
			if strings.Contains(string(text), "Until the first release") || strings.Contains(string(text), "bus-preferences is published") {
				t.Errorf("%s is of the time before a release", name)
			}
			return err
		}); err != nil {
			t.Error(err)
		}
	})
	t.Run("the tree of the tree is the same", func(t *testing.T) {
		tree, out := filepath.Join(filepath.Dir(m.proxy.dir), "tree"), filepath.Join(t.TempDir(), "out")
		repository := t.TempDir()
		if err := os.CopyFS(repository, os.DirFS(tree)); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}, {"-c", "user.name=x", "-c", "user.email=x", "commit", "-q", "-m", "x"}} {
			if text, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", repository}, args...)...).CombinedOutput(); err != nil {
				t.Fatalf("git %q: %v: %s", args, err, text)
			}
		}
		r := release{root: repository, out: out, version: "v0.9.1", preferences: "v0.9.2"}
		if err := r.make(t.Context()); err != nil {
			t.Fatal(err)
		}
		if text, err := exec.CommandContext(t.Context(), "diff", "-r", tree, filepath.Join(out, "tree")).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, text)
		}
	})
	t.Run("one backend", func(t *testing.T) {
		dir := newModule(t, m, "package main\n\nimport _ \""+mainPath+"/backends/codex\"\n\nfunc main() {}\n")
		m.do(t, dir, nil, "get", mainPath+"/backends/codex@v0.9.1")
		m.do(t, dir, nil, "build", "-o", os.DevNull, ".")
	})
}

func newModule(t *testing.T, m made, program string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	m.do(t, dir, nil, "mod", "init", "example.com/user")
	return dir
}
