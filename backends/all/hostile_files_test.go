//go:build linux

package all_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
)

// hostileFiles are what an agent can leave at a path where a session or a temporary file
// is looked for.
var hostileFiles = map[string]func(t *testing.T, file string) error{
	"a FIFO":   func(_ *testing.T, file string) error { return syscall.Mkfifo(file, 0o600) },
	"a device": func(_ *testing.T, file string) error { return makeDevice(file) },
	"a socket": func(t *testing.T, file string) error {
		l, err := net.Listen("unix", shortName(t, file))
		if err == nil {
			t.Cleanup(func() { l.Close() })
		}
		return err
	},
	"8 TiB": func(_ *testing.T, file string) error {
		if err := os.WriteFile(file, []byte(`{"sessionId":"x"}`+"\n"), 0o600); err != nil {
			return err
		}
		return os.Truncate(file, 8<<40)
	},
	"a link to /":       func(_ *testing.T, file string) error { return os.Symlink("/", file) },
	"a link to /proc":   func(_ *testing.T, file string) error { return os.Symlink("/proc", file) },
	"a loop of links":   func(_ *testing.T, file string) error { return os.Symlink(filepath.Base(file), file) },
	"a deep tree":       func(_ *testing.T, file string) error { return makeDeep(file, 300) },
	"folders no reader": makeUnreadable,
	"odd names": func(_ *testing.T, file string) error {
		return errors.Join(os.Mkdir(file, 0o700), os.WriteFile(file+"/a\nb.jsonl", nil, 0o600), os.WriteFile(file+"/\xff\x1b[2J.jsonl", nil, 0o600))
	},
}

func makeUnreadable(_ *testing.T, file string) error {
	return errors.Join(os.MkdirAll(file+"/in/it", 0o700), os.WriteFile(file+"/in/it/file", nil, 0o600),
		os.Chmod(file+"/in/it", 0), os.Chmod(file+"/in", 0o500), os.Chmod(file, 0))
}

// makeDeep makes a chain of folders.
func makeDeep(dir string, depth int) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	fd, err := unix.Open(dir, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	for ; err == nil && depth > 0; depth-- {
		err = unix.Mkdirat(fd, "d", 0o700)
		next, openErr := unix.Openat(fd, "d", unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		unix.Close(fd)
		fd, err = next, errors.Join(err, openErr)
	}
	return errors.Join(err, unix.Close(fd))
}

// sessionNames are names of files that the runtimes take for sessions.
func sessionNames(n int) []string {
	return []string{
		fmt.Sprintf("rollout-2026-11-21T02-38-%02d-%s.jsonl", n, codexThread),
		fmt.Sprintf("session-2026-11-22T10-%02d-%s.jsonl", n, codexThread[:8]),
	}
}

// leave plants something at each path that the run reads after the end of its agent: in its
// private home, which names the folder of its sessions, and in its temporary files.
func leave(t *testing.T, workdir, temp string, plants ...func(*testing.T, string) error) {
	homes, _ := filepath.Glob(filepath.Join(workdir, "*/bus/*/.bus-agent-owner"))
	temps, _ := filepath.Glob(filepath.Join(temp, "bus-agent-*"))
	places := temps
	for _, claim := range homes {
		home := filepath.Dir(claim)
		places = append(places, home)
		var kept struct {
			Tree     string
			Patterns []string
		}
		if text, err := os.ReadFile(filepath.Join(home, ".bus-agent-salvage")); err == nil && json.Unmarshal(text, &kept) == nil {
			tree := filepath.Join(home, kept.Tree)
			places = append(places, tree, filepath.Join(tree, "2026/11/21"))
			for _, pattern := range kept.Patterns {
				places = append(places, filepath.Join(tree, strings.ReplaceAll(pattern, "*", "x")))
			}
		}
	}
	if len(places) == 0 {
		t.Error("nowhere to plant anything")
	}
	for _, dir := range places {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Error(err)
		}
		for n, plant := range plants {
			for _, name := range sessionNames(n) {
				if err := plant(t, filepath.Join(dir, name)); err != nil {
					t.Logf("%s: %v", dir, err) // what cannot be made here
				}
			}
		}
	}
}

// Whatever an agent leaves, and however it ends, its run ends soon, and nothing stays
// but files of sessions, or a warning names what does.
func TestHostileFilesAfterARun(t *testing.T) {
	t.Parallel()
	for _, rt := range running() {
		if !rt.PrivateTemp && rt.Home.Folder == "" {
			continue // a run reads nothing that its agent can write
		}
		for name, plant := range hostileFiles {
			t.Run(rt.ID+"/"+name, func(t *testing.T) {
				t.Parallel()
				testHostileFiles(t, rt, "end", plant)
			})
		}
		for _, ending := range []string{"timeout", "cancel"} {
			t.Run(rt.ID+"/all of it/"+ending, func(t *testing.T) {
				t.Parallel()
				testHostileFiles(t, rt, ending, slices.Collect(maps.Values(hostileFiles))...)
			})
		}
	}
}

func testHostileFiles(t *testing.T, rt registry.Runtime, ending string, plants ...func(*testing.T, string) error) {
	repo, r := newHostileRun(t, rt)
	path, _ := agent.LookupEnv(r.Environ, "PATH")
	temp, _ := agent.LookupEnv(r.Environ, "TMPDIR")
	bin, _, _ := strings.Cut(path, ":")
	if ending != "end" {
		if err := os.WriteFile(filepath.Join(bin, rt.Executables[0]+".end"), []byte("exec sleep 600\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	planted := false
	req := agent.Request{Runtime: rt.ID, Prompt: "do it", Workdir: repo}
	out := agent.Output{Stdout: writerFunc(func(b []byte) (int, error) {
		if !planted {
			planted = true
			leave(t, repo, temp, plants...)
			if ending == "cancel" {
				cancel()
			}
		}
		return len(b), nil
	})}
	if ending == "timeout" {
		req.Timeout = 3 * time.Second
	}
	ended := make(chan agent.Result, 1)
	go func() {
		result, err := r.Run(ctx, req, out)
		if ending == "end" && err != nil { // else it can have reported its result before
			t.Errorf("the run ends with %v", err)
		}
		ended <- result
	}()
	var result agent.Result
	select {
	case result = <-ended:
	case <-time.After(2 * time.Minute):
		t.Fatal("the run does not end")
	}
	if !planted {
		t.Fatal("the agent said nothing")
	}
	left := 0
	for _, line := range result.Warnings {
		if strings.HasPrefix(line, "left behind: ") && strings.HasSuffix(line, `"bus-agent doctor --sweep" removes it`) {
			left++
		}
	}
	if left > 1 {
		t.Errorf("warnings: %q", result.Warnings)
	}
	for _, dir := range []string{repo, temp} {
		if err := filepath.WalkDir(dir, func(file string, entry fs.DirEntry, err error) error {
			rel, _ := filepath.Rel(repo, file)
			switch {
			case err != nil:
				return err
			case entry.IsDir() && rel == ".git":
				return fs.SkipDir
			case entry.IsDir() || left > 0, strings.Contains(rel, "/bus/sessions/") && entry.Type().IsRegular():
			case filepath.Base(file) == ".gitignore" && strings.Contains(rel, "/bus/"):
			default:
				t.Errorf("left behind: %q, warnings %q", file, result.Warnings)
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }
