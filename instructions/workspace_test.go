package instructions_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/busdk/bus-agent/instructions"
)

func TestReadFile(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	write(t, dir, map[string]string{"a/b": "12345", "empty": ""})
	must(t, os.Symlink("a/b", filepath.Join(dir, "inside")), os.Symlink("/etc/hostname", filepath.Join(dir, "outside")),
		syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600))
	w := open(t, dir, false)
	for name, test := range map[string]struct {
		want string
		err  error
	}{
		"a/b": {"12345", nil}, "empty": {"", nil}, "inside": {"12345", nil}, "missing": {"", fs.ErrNotExist},
		"a/missing": {"", fs.ErrNotExist}, "a": {"", instructions.ErrNotRegular}, "fifo": {"", instructions.ErrNotRegular},
	} {
		if got, err := w.ReadFile(name, 5); string(got) != test.want || !errors.Is(err, test.err) {
			t.Errorf("ReadFile(%s) = %q, %v, want %q, %v", name, got, err, test.want, test.err)
		}
	}
	if _, err := w.ReadFile("a/b", 4); !errors.Is(err, instructions.ErrTooLarge) {
		t.Errorf("ReadFile over the limit = %v, want ErrTooLarge", err)
	}
	if got, err := w.ReadFile("outside", 100); err == nil {
		t.Errorf("ReadFile followed a link out of the workdir: %q", got)
	}
}

func TestOpenNeedsAWorkdir(t *testing.T) {
	t.Parallel()
	if _, err := instructions.Open(instructions.Chain{Workdir: filepath.Join(tempDir(t), "missing")}, true); err == nil {
		t.Error("Open succeeded")
	}
}

// Make a private home for a run, here in a dry run.
func ExampleWorkspace_RunHome() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	chain, err := instructions.Discover(dir)
	if err != nil {
		panic(err)
	}
	w, err := instructions.Open(chain, true)
	if err != nil {
		panic(err)
	}
	defer w.Close()
	home, _, err := w.RunHome(".codex/bus", "", false)
	if err != nil {
		panic(err)
	}
	defer home.Remove()
	err = home.WriteFile("config.toml", []byte("model = \"x\"\n"), 0o600)
	for _, action := range w.Actions() {
		fmt.Println(action)
	}
	fmt.Println(err)
	// Output:
	// .codex/bus/<home>: private home, removed at the end of the run
	// .codex/bus/<home>/config.toml: 12 bytes
	// <nil>
}
