package all_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/instructions"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/engine"
)

// everyRead is what every runtime is checked for, by its name below a folder.
var everyRead = instructions.Reads(instructions.Everywhere, ".gitignore", ".gitattributes", ".git/HEAD", ".git/commondir")

// known are names that the CLIs are known to read by themselves, and whether they
// read them without trust. A table that loses one fails.
var known = map[string]map[string]bool{
	"claude": {"CLAUDE.md": false, "CLAUDE.local.md": false, ".claude/CLAUDE.md": false, ".claude/skills/*/SKILL.md": false, ".claude/scheduled_tasks.json": true},
	"codex":  {"AGENTS.override.md": true, ".agents/skills/**/SKILL.md": true, ".codex/config.toml": true},
	"cursor": {"AGENTS.md": true, "CLAUDE.md": true, ".cursorrules": true, ".cursor/rules/**/*": true},
	"gemini": {"GEMINI.md": true, "AGENTS.md": true, ".geminiignore": true, ".gemini/skills/*/SKILL.md": true, ".gemini/agents/*.md": true},
}

func TestKnownReadsAreListed(t *testing.T) {
	t.Parallel()
	for id, names := range known {
		rt, ok := registry.Default().Lookup(id)
		if !ok {
			t.Fatalf("no runtime %s", id)
		}
		reads := rt.Reads(registry.Invocation{})
		for name, untrusted := range names {
			if !slices.ContainsFunc(reads, func(r instructions.Read) bool { return r.Name == name && r.Trusted == !untrusted }) {
				t.Errorf("%s does not list %s (untrusted: %t)", id, name, untrusted)
			}
		}
	}
}

// Whatever a runtime lists is refused before anything is written or started, in a
// run, a plan, a session and a terminal: a FIFO always, a link out of the repository
// without trust.
func TestHostileReadsAreChecked(t *testing.T) {
	t.Parallel()
	for _, rt := range running() {
		reads := everyRead
		if rt.Reads != nil {
			reads = slices.Concat(reads, rt.Reads(registry.Invocation{}))
		}
		for _, read := range reads {
			for _, trusted := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/%d/%t", rt.ID, read.Name, read.Where, trusted), func(t *testing.T) {
					t.Parallel()
					fifo := func(file string) error { return syscall.Mkfifo(file, 0o644) }
					link := func(file string) error { return os.Symlink("/proc/self/environ", file) }
					for _, dir := range []string{".", "sub", "sub/below"} {
						below := dir == "sub/below"
						if below != (read.Where == instructions.Downward) && read.Where != instructions.Everywhere {
							continue
						}
						if trusted || !read.Trusted {
							checkRefused(t, rt, filepath.Join(dir, sample(read.Name)), trusted, fifo)
						}
						if !trusted && !read.Trusted {
							checkRefused(t, rt, filepath.Join(dir, sample(read.Name)), trusted, link)
						}
					}
				})
			}
		}
	}
}

// sample returns a name that a pattern matches.
func sample(pattern string) string {
	return strings.NewReplacer("**", "a/b", "*", "x", "[0-9a-f]", "0").Replace(pattern)
}

func checkRefused(t *testing.T, rt registry.Runtime, name string, trusted bool, plant func(string) error) {
	t.Helper()
	repo, r := newHostileRun(t, rt)
	r.OpenTerminal = func(context.Context, engine.Program, engine.Start) (engine.Engine, engine.Process, error) {
		return nil, nil, errors.New("a terminal was opened")
	}
	file := filepath.Join(repo, name)
	os.Remove(file)
	if err := errors.Join(os.MkdirAll(filepath.Join(repo, "sub"), 0o755), os.MkdirAll(filepath.Dir(file), 0o755), plant(file)); err != nil {
		t.Fatal(err)
	}
	before := names(t, repo)
	req := agent.Request{Runtime: rt.ID, Prompt: "do it", Workdir: filepath.Join(repo, "sub"), TrustWorkspace: trusted}
	_, runErr := r.Run(t.Context(), req, agent.Output{})
	_, planErr := r.DryRun(t.Context(), req)
	errs := map[string]error{"Run": runErr, "Plan": planErr}
	if rt.Session != nil {
		_, errs["StartSession"] = r.StartSession(t.Context(), req, session.Options{})
	}
	if rt.Terminal != nil {
		_, errs["a terminal"] = r.StartSession(t.Context(), req, session.Options{Mode: session.ModeTmux})
	}
	for what, err := range errs {
		if !errors.Is(err, agent.ErrUsage) || !strings.Contains(fmt.Sprint(err), filepath.Base(name)) {
			t.Errorf("%s: %s = %v", name, what, err)
		}
	}
	if after := names(t, repo); !slices.Equal(after, before) {
		t.Errorf("%s: files are now %q, were %q", name, after, before)
	}
}

// names returns every path below dir.
func names(t *testing.T, dir string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		all = append(all, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// An AGENTS.md of an added directory is checked where the CLI reads it there.
func TestReadsOfAddedDirectoriesAreChecked(t *testing.T) {
	t.Parallel()
	for id, refused := range map[string]bool{"gemini": true, "codex": false} {
		rt, _ := registry.Default().Lookup(id)
		work, r := newHostileRun(t, rt)
		added := t.TempDir()
		if err := os.Symlink("/proc/self/environ", filepath.Join(added, "AGENTS.md")); err != nil {
			t.Fatal(err)
		}
		_, err := r.DryRun(t.Context(), agent.Request{Runtime: id, Prompt: "do it", Workdir: work, AddDirs: []string{added}})
		if refused != (errors.Is(err, agent.ErrUsage) && strings.Contains(fmt.Sprint(err), added)) {
			t.Errorf("%s: Plan = %v", id, err)
		}
	}
}
