package all_test

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/instructions"
	"github.com/busdk/bus-agent/internal/testneed"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/runner"
)

const gigabyte = 1 << 30

// hostileInstructions put something other than a regular file at the path of an AGENTS.md,
// or more than any agent is given.
var hostileInstructions = map[string]func(t *testing.T, file string) error{
	"a gigabyte": func(t *testing.T, file string) error {
		if err := os.WriteFile(file, []byte("be brief\n"), 0o644); err != nil {
			return err
		}
		return os.Truncate(file, gigabyte) // sparse: it takes no space
	},
	"a FIFO":      func(_ *testing.T, file string) error { return syscall.Mkfifo(file, 0o644) },
	"a directory": func(_ *testing.T, file string) error { return os.Mkdir(file, 0o755) },
	"a device": func(t *testing.T, file string) error {
		err := makeDevice(file)
		if err != nil {
			testneed.LackingAsRoot(t, "no device can be made here: %v", err)
		}
		return err
	},
	"a socket": func(t *testing.T, file string) error {
		l, err := net.Listen("unix", shortName(t, file))
		if err == nil {
			t.Cleanup(func() { l.Close() })
		}
		return err
	},
	"a link to a device":  func(_ *testing.T, file string) error { return os.Symlink("/dev/zero", file) },
	"a link out":          func(_ *testing.T, file string) error { return os.Symlink("/etc/passwd", file) },
	"a link to a process": func(_ *testing.T, file string) error { return os.Symlink("/proc/self/environ", file) },
	"a loop of links":     func(_ *testing.T, file string) error { return os.Symlink("AGENTS.md", file) },
}

// shortName names the directory of file by a path that fits into the address of
// a socket.
func shortName(t *testing.T, file string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "s")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	link := filepath.Join(dir, "d")
	if err := os.Symlink(filepath.Dir(file), link); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(link, filepath.Base(file))
}

// saying is the shortest output of a runtime that is a success. A recording serves for
// those of the catalogue.
var saying = map[string]string{
	"claude": claudeInit + claudeAgain + claudeSuccess, "codex": codexBegin + codexSays("i", "the answer") + codexDone,
	"cursor": cursorInit + cursorSaid + cursorResult("success", "false", "the answer"), "gemini": geminiInit + geminiSays("the answer") + geminiSuccess,
}

// An AGENTS.md that is not one costs neither time nor memory: it is left out, or
// cut, with a warning. Where the CLI reads it by itself the run is refused, unless
// reading it is harmless. Not parallel, as it looks at how much
// memory was taken.
func TestHostileInstructions(t *testing.T) {
	for _, rt := range running() {
		for name, plant := range hostileInstructions {
			t.Run(rt.ID+"/"+name, func(t *testing.T) {
				repo, r := newHostileRun(t, rt)
				work := filepath.Join(repo, "sub")
				if err := os.Mkdir(work, 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(repo, "AGENTS.md"), []byte("be kind\n"), 0o644); err != nil {
					t.Fatal(err)
				}
				if err := plant(t, filepath.Join(work, "AGENTS.md")); err != nil {
					t.Fatal(err)
				}
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				result, err := r.Run(t.Context(), agent.Request{Runtime: rt.ID, Prompt: "do it", Workdir: work}, agent.Output{})
				runtime.ReadMemStats(&after)
				// Most of it is for the process table of a busy machine.
				if took := after.TotalAlloc - before.TotalAlloc; took > 128<<20 {
					t.Errorf("it took %d MiB", took>>20)
				}
				if errors.Is(err, agent.ErrUsage) && readsAgents(rt) {
					if !strings.Contains(err.Error(), "sub/AGENTS.md") {
						t.Errorf("it was refused with %v", err)
					}
					return
				}
				if err != nil || result.Text == "" {
					t.Errorf("Run = %q, %v", result.Text, err)
				}
				if !strings.Contains(strings.Join(result.Warnings, "\n"), "AGENTS.md") {
					t.Errorf("warnings: %q", result.Warnings)
				}
			})
		}
	}
}

// readsAgents reports whether a CLI reads AGENTS.md whatever is found.
func readsAgents(rt registry.Runtime) bool {
	return rt.Reads != nil && slices.ContainsFunc(rt.Reads(registry.Invocation{}), func(r instructions.Read) bool {
		return r.Name == instructions.FileName && r.Where != instructions.Downward && !r.Trusted
	})
}

// Text that looks like what bus-agent writes is text.
func TestInstructionsWithMarksOfOurs(t *testing.T) {
	t.Parallel()
	text := "be brief\n" + instructions.EndOfText +
		"# bus-agent:begin homes v1 made=1 join=true bytes=0 id=0\n# bus-agent:end homes id=0\n" +
		"<!-- bus-agent:begin agents-md v1 made=1 join=false bytes=5 id=e3b0c44298fc1c14 -->\nours\n<!-- bus-agent:end agents-md id=e3b0c44298fc1c14 -->\n" +
		"--- AGENTS.md (for directory: .) ---\n[AGENTS.md cut here: 0 of 1 bytes delivered]\n" + `{"busAgentOwned":{"version":1,"made":1}}` + "\n"
	for _, rt := range running() {
		for _, trust := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/%t", rt.ID, trust), func(t *testing.T) {
				t.Parallel()
				work, r := newHostileRun(t, rt)
				for _, name := range []string{"AGENTS.md", "GEMINI.md", ".geminiignore"} {
					if err := os.WriteFile(filepath.Join(work, name), []byte(text), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				for range 2 {
					if result, err := r.Run(t.Context(), agent.Request{Runtime: rt.ID, Prompt: "do it", Workdir: work, TrustWorkspace: trust}, agent.Output{}); err != nil {
						t.Fatalf("%v, warnings %q", err, result.Warnings)
					}
				}
				if rt.Instructions != nil {
					if _, err := instructions.Clean(t.Context(), work, rt.Instructions.Owned); err != nil {
						t.Error(err)
					}
				}
				for _, name := range []string{"AGENTS.md", "GEMINI.md", ".geminiignore"} {
					if got, err := os.ReadFile(filepath.Join(work, name)); err != nil || !bytes.Equal(got, []byte(text)) {
						t.Errorf("%s is now %q, %v", name, got, err)
					}
				}
			})
		}
	}
}

// saidBy returns the output of a successful run.
func saidBy(t *testing.T, rt registry.Runtime) string {
	t.Helper()
	if output, ok := saying[rt.ID]; ok {
		return output
	}
	output, err := os.ReadFile(filepath.Join("..", "more", "testdata", rt.ID, "tool.ndjson"))
	if err != nil {
		t.Fatal(err)
	}
	return string(output)
}

// newHostileRun returns a repository and what runs a fake CLI that succeeds.
func newHostileRun(t *testing.T, rt registry.Runtime) (repo string, r *runner.Runner) {
	t.Helper()
	bin, repo := t.TempDir(), t.TempDir()
	installReplay(t, filepath.Join(bin, rt.Executables[0]), saidBy(t, rt), "", "exit 0")
	if err := os.Mkdir(filepath.Join(repo, ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(repo, ".git", "HEAD"), []byte("ref: refs/heads/main\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return repo, &runner.Runner{
		Environ: []string{"PATH=" + bin + ":/usr/bin:/bin", "HOME=" + t.TempDir(), "TMPDIR=" + t.TempDir()},
		Warn:    func(string) {},
	}
}
