package cmdline

import (
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/busdk/bus-agent/internal/testuser"
	"github.com/busdk/bus-agent/internal/unix"
)

// TestOutputThatIsNotReplaced: what a rename would change in more than its content is
// written as it is.
func TestOutputThatIsNotReplaced(t *testing.T) {
	t.Parallel()
	for name, arrange := range map[string]func(path string) error{
		"a file with two names": func(path string) error { return os.Link(path, path+".link") },
		"a pipe": func(path string) error {
			if err := os.Remove(path); err != nil {
				return err
			}
			return syscall.Mkfifo(path, 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "answer")
			if err := os.WriteFile(path, []byte("last"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := arrange(path); err != nil {
				t.Fatal(err)
			}
			o, err := createPartial(path)
			if o != nil || err != nil {
				t.Errorf("%+v, %v", o, err)
			}
		})
	}
}

// TestOutputInAnotherUsersDirectory: a file that cannot be replaced, or is of another
// user, is written as it is.
func TestOutputInAnotherUsersDirectory(t *testing.T) {
	t.Parallel()
	if !testuser.Ordinary(t) {
		return
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "answer")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(dir, 0o700) })
	for _, path := range []string{path, "/etc/hosts"} {
		if o, err := createPartial(path); o != nil || err != nil {
			t.Errorf("%s: %+v, %v", path, o, err)
		}
	}
}

// TestOutputKeepsPermissions: the file that replaces another one is as private.
func TestOutputKeepsPermissions(t *testing.T) {
	t.Parallel()
	for _, mode := range []fs.FileMode{0o600, 0o666, 0o640} {
		path := filepath.Join(t.TempDir(), "answer")
		if err := os.WriteFile(path, []byte("last"), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		o, err := createPartial(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := o.WriteString("next"); err != nil {
			t.Fatal(err)
		}
		if kept, err := o.finish(true); kept != "" || err != nil {
			t.Errorf("%q, %v", kept, err)
		}
		info, err := os.Stat(path)
		if err != nil || info.Mode() != mode || info.Size() != 4 {
			t.Errorf("%v, %v, want %v", info, err, mode)
		}
	}
}

// TestOutputOfTwoCommands: each has a separate file, and the last one wins.
func TestOutputOfTwoCommands(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "answer")
	one, two := partial(t, path, "one"), partial(t, path, "two")
	for _, o := range []*outputFile{two, one} {
		if kept, err := o.finish(true); kept != "" || err != nil {
			t.Errorf("%q, %v", kept, err)
		}
	}
	wantFiles(t, path, map[string]string{"answer": "one"})
}

// partial begins the results of a command.
func partial(t *testing.T, path, text string) *outputFile {
	t.Helper()
	o, err := createPartial(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.WriteString(text); err != nil {
		t.Fatal(err)
	}
	return o
}

// wantFiles checks what is in the directory of path.
func wantFiles(t *testing.T, path string, want map[string]string) {
	t.Helper()
	got := map[string]string{}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		text, _ := os.ReadFile(filepath.Join(filepath.Dir(path), e.Name()))
		got[e.Name()] = string(text)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestStaleOutputIsRemoved: the next command removes what one has left that failed or
// was killed, and nothing else.
func TestStaleOutputIsRemoved(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "answer")
	want := map[string]string{
		"answer": "last", "answer.partial": "mine", "answer.bus-agent-0badcafe.partial.txt": "mine",
		"answer.bus-agent-0badcafex.partial": "mine", "answer.bus-agent-nothexal.partial": "mine", "other.bus-agent-0badcafe.partial": "mine",
	}
	for name, text := range want {
		if err := os.WriteFile(filepath.Join(filepath.Dir(path), name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(path+".partial", path+".bus-agent-00000001.partial"); err != nil {
		t.Fatal(err)
	}
	want["answer.bus-agent-00000001.partial"] = "mine"
	if err := os.Link(path+".partial", path+".bus-agent-00000002.partial"); err != nil {
		t.Fatal(err)
	}
	want["answer.bus-agent-00000002.partial"] = "mine"

	running, failed, killed := partial(t, path, "running"), partial(t, path, "failed"), partial(t, path, "killed")
	want[filepath.Base(running.partial)] = "running"
	copied, err := unix.FcntlInt(failed.lock.Fd(), unix.F_DUPFD_CLOEXEC, 0) // as in a program that is being started
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(copied)
	if kept, err := failed.finish(false); kept != failed.partial || err != nil {
		t.Errorf("%q, %v", kept, err)
	}
	killed.Close() // as the system does
	killed.release()
	next := partial(t, path, "next")
	want[filepath.Base(next.partial)] = "next"
	wantFiles(t, path, want)

	for _, o := range []*outputFile{running, next} {
		if kept, err := o.finish(true); kept != "" || err != nil {
			t.Errorf("%q, %v", kept, err)
		}
		delete(want, filepath.Base(o.partial))
	}
	want["answer"] = "next"
	wantFiles(t, path, want)
}

// TestOutputIsNotStale: commands that begin and end at the same time keep their
// results.
func TestOutputIsNotStale(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "answer")
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 100 {
				o, err := createPartial(path)
				if err != nil {
					t.Error(err)
					return
				}
				if kept, err := o.finish(true); kept != "" || err != nil {
					t.Errorf("%q, %v", kept, err)
				}
			}
		})
	}
	all.Wait()
	wantFiles(t, path, map[string]string{"answer": ""})
}
