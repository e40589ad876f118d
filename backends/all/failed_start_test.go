package all_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/session"
)

const fullRuntime = "BUS_AGENT_TEST_RUNTIME"

// A full disk fails the start of a run at any write, and nothing is left of it in the
// workdir. The limit is one of the process, so another one runs.
func TestFailedStartLeavesNothing(t *testing.T) {
	if id := os.Getenv(fullRuntime); id != "" {
		startOnFullDisk(t, id)
		return
	}
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, rt := range running() {
		t.Run(rt.ID, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(self, "-test.run=^TestFailedStartLeavesNothing$")
			cmd.Env = append(os.Environ(), fullRuntime+"="+rt.ID)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// startOnFullDisk starts runs on disks that are full at another write each.
func startOnFullDisk(t *testing.T, id string) {
	rt, _ := registry.Default().Lookup(id)
	signal.Ignore(syscall.SIGXFSZ)
	var disk syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &disk); err != nil {
		t.Fatal(err)
	}
	failed := 0
	for limit := uint64(0); limit < 1200; limit += 60 {
		_, r := newHostileRun(t, rt)
		work := t.TempDir()
		if err := errors.Join(os.MkdirAll(filepath.Join(work, ".git"), 0o755),
			os.WriteFile(filepath.Join(work, ".git", "HEAD"), []byte("ref: refs/heads/main\n"), 0o644),
			os.WriteFile(filepath.Join(work, "AGENTS.md"), []byte("be brief\n"), 0o644)); err != nil {
			t.Fatal(err)
		}
		before := names(t, work)
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: limit, Max: disk.Max}); err != nil {
			t.Fatal(err)
		}
		_, err := r.Run(t.Context(), agent.Request{Runtime: rt.ID, Prompt: "do it", Workdir: work, TrustWorkspace: true}, agent.Output{})
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &disk); err != nil {
			t.Fatal(err)
		}
		if temp := names(t, strings.TrimPrefix(r.Environ[2], "TMPDIR=")); len(temp) > 1 {
			t.Errorf("limit %d: temporary files are left: %q", limit, temp[1:])
		}
		if err == nil {
			continue
		}
		failed++
		if after := names(t, work); !slices.Equal(after, before) {
			t.Errorf("limit %d: files are now %q, were %q (%v)", limit, after, before, err)
		}
	}
	if writes := rt.Instructions != nil && len(rt.Instructions.Owned) > 0; writes && failed == 0 {
		t.Error("no run has failed")
	}
}

// A check of a session makes no file, not even for a moment.
func TestCheckSessionWritesNothing(t *testing.T) {
	t.Parallel()
	for _, rt := range running() {
		if rt.Session == nil {
			continue
		}
		t.Run(rt.ID, func(t *testing.T) {
			t.Parallel()
			work, r := newHostileRun(t, rt)
			if err := os.WriteFile(filepath.Join(work, "AGENTS.md"), []byte("be brief\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			long := time.Unix(1, 0)
			dirs := []string{work, filepath.Join(work, ".git"), strings.TrimPrefix(r.Environ[1], "HOME="), strings.TrimPrefix(r.Environ[2], "TMPDIR=")}
			for _, dir := range dirs {
				if err := os.Chtimes(dir, long, long); err != nil {
					t.Fatal(err)
				}
			}
			if err := r.CheckSession(t.Context(), agent.Request{Runtime: rt.ID, Workdir: work, TrustWorkspace: true}, session.Options{}); err != nil {
				t.Error(err)
			}
			if err := r.CheckSession(t.Context(), agent.Request{Runtime: rt.ID, Workdir: work, AddDirs: []string{"nowhere"}}, session.Options{}); !errors.Is(err, agent.ErrUsage) {
				t.Errorf("a folder that is absent: %v", err)
			}
			for _, dir := range dirs {
				if info, err := os.Stat(dir); err != nil || !info.ModTime().Equal(long) {
					t.Errorf("%s was changed, %v", dir, err)
				}
			}
		})
	}
}

// What cannot be started, or not be recorded, leaves nothing either.
func TestAgentThatCannotBeStartedLeavesNothing(t *testing.T) {
	t.Parallel()
	for _, rt := range running() {
		for _, trusted := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/%t", rt.ID, trusted), func(t *testing.T) {
				t.Parallel()
				work, r := newHostileRun(t, rt)
				bin := t.TempDir()
				if err := errors.Join(os.WriteFile(filepath.Join(bin, rt.Executables[0]), []byte("#!/nowhere\n"), 0o755),
					os.WriteFile(filepath.Join(work, "AGENTS.md"), []byte("be brief\n"), 0o644)); err != nil {
					t.Fatal(err)
				}
				r.Environ[0] = "PATH=" + bin
				before := names(t, work)
				if _, err := r.Run(t.Context(), agent.Request{Runtime: rt.ID, Prompt: "do it", Workdir: work, TrustWorkspace: trusted}, agent.Output{}); !errors.Is(err, agent.ErrAgent) {
					t.Errorf("Run = %v", err)
				}
				if after := names(t, work); !slices.Equal(after, before) {
					t.Errorf("files are now %q, were %q", after, before)
				}
			})
		}
	}
}
