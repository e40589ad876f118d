package commands_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/busdk/bus-agent/internal/commands"
	"github.com/busdk/bus-agent/registry"
)

// pipeName makes a named pipe without a writer.
func pipeName(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// Releases readers that still wait for a writer.
		if f, err := os.OpenFile(name, os.O_RDWR, 0); err == nil {
			f.Close()
		}
	})
	return name
}

// finishes runs the command line and fails when it waits for something.
func finishes(ctx context.Context, t *testing.T, in io.Reader, args ...string) (code int, stderr string) {
	t.Helper()
	var r registry.Registry
	if err := r.Register(plain("alpha")); err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	env := &commands.Env{Args: args, Stdin: in, Stdout: io.Discard, Stderr: &errs, Dir: t.TempDir(), Registry: &r, Environ: []string{}}
	done := make(chan int, 1)
	go func() { done <- commands.Main(ctx, env) }()
	select {
	case code := <-done:
		return code, errs.String()
	case <-time.After(time.Minute):
		t.Fatalf("%q has not ended", args)
		return 0, ""
	}
}

// A named pipe without a writer can be waited for, but not for longer than the
// user wants.
func TestWaitForAWriterCanBeStopped(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("interrupt"))
	for _, args := range [][]string{{"run", "--prompt"}, {"run", "--template"}, {"render", "--template"}} {
		code, errs := finishes(ctx, t, strings.NewReader(""), append(args, pipeName(t))...)
		if code != 1 || errs != "bus-agent: stopped: interrupt\n" {
			t.Errorf("%q: exit code %d, %q", args, code, errs)
		}
	}
}

// A named pipe is not a directory; this is known without opening it.
func TestPipeIsNotADirectory(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args []string
		code int
	}{
		{[]string{"detect", "--chdir"}, 1},
		{[]string{"instructions", "show", "--workdir"}, 2},
		{[]string{"run", "--text", "x", "--workdir"}, 2},
		{[]string{"run", "--text", "x", "--add-dir"}, 2},
	} {
		code, errs := finishes(t.Context(), t, strings.NewReader(""), append(test.args, pipeName(t))...)
		if code != test.code || !strings.Contains(errs, ": not a directory") {
			t.Errorf("%q: exit code %d, %q", test.args, code, errs)
		}
	}
}

// An endless stream is noticed before it fills the memory.
func TestInputIsBounded(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"run", "--prompt", "-"},
		{"run", "--prompt", "/dev/zero"},
		{"render", "--template", "-"},
		{"set", "runtime-definition", "mine", "-"},
	} {
		code, errs := finishes(t.Context(), t, endless{}, args...)
		if code != 2 || !strings.HasSuffix(errs, ": it is longer than 64 MiB\n") || strings.Count(errs, "\n") != 1 {
			t.Errorf("%q: exit code %d, %q", args, code, errs)
		}
	}
}

type endless struct{}

func (endless) Read(b []byte) (int, error) { return len(b), nil }
