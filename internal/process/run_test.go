package process

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/busdk/bus-agent/internal/testwait"
)

// agent returns a Spec that performs the steps.
func agent(t *testing.T, steps ...step) Spec {
	t.Helper()
	return Spec{
		Path: executable(),
		Args: fakeArgs(steps),
		Env:  append(os.Environ(), "GORACE=atexit_sleep_ms=0"), // the race detector sleeps a second at exit
		Dir:  t.TempDir(),
	}
}

// result runs s and fails the test when that takes long.
func result(t *testing.T, s Spec) (exit Exit, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	s.Stdout, s.Stderr = &out, &errs
	exit, err := Run(soon(t), s)
	if err != nil {
		t.Fatal(err)
	}
	return exit, out.String(), errs.String()
}

// soon returns a context that ends when a run has hung for long enough to fail.
func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	timer := time.AfterFunc(testwait.Limit, func() {
		t.Error("the run does not end")
		cancel()
	})
	t.Cleanup(func() { timer.Stop(); cancel() })
	return ctx
}

func TestRunReportsHowTheProcessEnded(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		last step
		want Exit
	}{
		"exit":         {step{Do: "exit"}, Exit{}},
		"exit code":    {step{Do: "exit", N: 3}, Exit{Code: 3}},
		"signal":       {step{Do: "signal", N: int(syscall.SIGKILL)}, Exit{Code: -1, Signal: "SIGKILL"}},
		"other signal": {step{Do: "signal", N: int(syscall.SIGTERM)}, Exit{Code: -1, Signal: "SIGTERM"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			exit, stdout, stderr := result(t, agent(t, step{Do: "print", Text: "out"}, step{Do: "warn", Text: "err"}, test.last))
			if exit != test.want || stdout != "out" || stderr != "err" {
				t.Errorf("got %+v, %q, %q; want %+v", exit, stdout, stderr, test.want)
			}
		})
	}
}

func TestRunPassesDirArgumentsAndNullStdin(t *testing.T) {
	t.Parallel()
	s := agent(t, step{Do: "read", Text: "here"}, step{Do: "cat"})
	if err := os.WriteFile(filepath.Join(s.Dir, "here"), []byte("in dir"), 0o600); err != nil {
		t.Fatal(err)
	}
	if exit, stdout, _ := result(t, s); exit != (Exit{}) || stdout != "in dir" {
		t.Errorf("got %+v, %q", exit, stdout)
	}
}

func TestStdinIsWrittenWholeAndClosed(t *testing.T) {
	t.Parallel()
	s := agent(t, step{Do: "cat"})
	s.Stdin = strings.Repeat("0123456789abcdef", 1<<16)
	exit, stdout, _ := result(t, s)
	if exit != (Exit{}) || stdout != s.Stdin {
		t.Errorf("got %+v and %d bytes, want %d", exit, len(stdout), len(s.Stdin))
	}
}

// What fits the pipe is in it before the process starts; the rest follows it.
func TestStdinAroundTheSizeOfAPipe(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1, 4 << 10, aheadSize - 1, aheadSize, aheadSize + 1, 3*aheadSize + 7} {
		t.Run(strconv.Itoa(size), func(t *testing.T) {
			t.Parallel()
			s := agent(t, step{Do: "cat"})
			s.Stdin = strings.Repeat("0123456789abcdef!", size/17+1)[:size]
			var out strings.Builder
			s.Stdout = &out
			p, err := Start(soon(t), s)
			if err != nil {
				t.Fatal(err)
			}
			if size == 1 && p.pipes.stdin != nil {
				t.Error("it waits to be written")
			}
			if exit, err := p.Wait(); err != nil || exit != (Exit{}) || out.String() != s.Stdin {
				t.Errorf("got %+v, %v and %d bytes, want %d", exit, err, out.Len(), size)
			}
		})
	}
}

func TestUnreadStdinHangsNothing(t *testing.T) {
	t.Parallel()
	prompt := strings.Repeat("p", 8<<20)
	t.Run("exit", func(t *testing.T) {
		t.Parallel()
		s := agent(t, step{Do: "print", Text: "done"})
		s.Stdin = prompt
		if exit, stdout, _ := result(t, s); exit != (Exit{}) || stdout != "done" {
			t.Errorf("got %+v, %q", exit, stdout)
		}
	})
	t.Run("stop", func(t *testing.T) {
		t.Parallel()
		s := agent(t, step{Do: "trap", N: 4}, step{Do: "print", Text: "up"}, step{Do: "hang"})
		s.Stdin = prompt
		ctx, cancel := context.WithCancel(soon(t))
		s.Stdout = writerFunc(func(b []byte) (int, error) { cancel(); return len(b), nil })
		exit, err := Run(ctx, s)
		if err != nil || exit != (Exit{Code: 4, Stopped: true}) {
			t.Errorf("got %+v, %v", exit, err)
		}
	})
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

func TestLargeOutputArrivesWholeAndInOrder(t *testing.T) {
	t.Parallel()
	const lines = 1_000_000
	exit, stdout, _ := result(t, agent(t, step{Do: "flood", N: lines}))
	if exit != (Exit{}) {
		t.Error(exit)
	}
	i := 0
	for line := range strings.Lines(stdout) {
		if line != strconv.Itoa(i)+"\n" {
			t.Fatalf("line %d is %q", i, line)
		}
		i++
	}
	if i != lines {
		t.Errorf("%d lines, want %d", i, lines)
	}
}

func TestBlockedWriterSlowsAndLosesNothing(t *testing.T) {
	t.Parallel()
	const lines = 200_000
	file := filepath.Join(t.TempDir(), "written")
	s := agent(t, step{Do: "flood", N: lines}, step{Do: "report", Text: file})
	release := make(chan struct{})
	var first = true
	var got int
	s.Stdout = writerFunc(func(b []byte) (int, error) {
		if first {
			first = false
			<-release
		}
		got += bytes.Count(b, []byte("\n"))
		return len(b), nil
	})
	p, err := Start(soon(t), s)
	if err != nil {
		t.Fatal(err)
	}
	// The pipe is full when the process sleeps in a write, that is for good.
	n, last := 0, -1
	testwait.Until(t, "a full pipe", func() (int, bool) {
		if left := inPipe(t, p); left == last && left > 0 {
			n++
		} else {
			n, last = 0, left
		}
		return last, n == 20
	})
	if _, err := os.Stat(file); err == nil {
		t.Error("the process went on while its output was not taken")
	}
	close(release)
	if exit, err := p.Wait(); err != nil || exit != (Exit{}) || got != lines {
		t.Errorf("got %+v, %v, %d lines; want %d", exit, err, got, lines)
	}
}

// inPipe returns how much of the process's output waits to be read.
func inPipe(t *testing.T, p *Process) (n int) {
	t.Helper()
	conn, err := p.pipes.stdout.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	conn.Control(func(fd uintptr) { n, err = buffered(int(fd)) })
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestFailingWriterStopsTheProcess(t *testing.T) {
	t.Parallel()
	full := errors.New("disk full")
	var calls atomic.Int32
	for name, test := range map[string]struct {
		write writerFunc
		want  error
	}{
		"error":       {func([]byte) (int, error) { calls.Add(1); return 0, full }, full},
		"short write": {func(b []byte) (int, error) { return len(b) - 1, nil }, io.ErrShortWrite},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// It must be able to write on while it ends: more than a pipe holds.
			s := agent(t, step{Do: "trap", N: 5}, step{Do: "flood", N: 100_000}, step{Do: "hang"})
			s.Stdout = test.write
			exit, err := Run(soon(t), s)
			if !errors.Is(err, test.want) || exit != (Exit{Code: 5, Stopped: true}) || calls.Load() > 1 {
				t.Errorf("got %+v, %v, %d calls", exit, err, calls.Load())
			}
		})
	}
}

func TestFilesAreDescriptorsWithoutAName(t *testing.T) {
	t.Parallel()
	s := agent(t,
		step{Do: "read", Text: "/dev/fd/4"},
		step{Do: "read", Text: "/dev/fd/3"},
		step{Do: "read", Text: "/dev/fd/3"},
		step{Do: "descriptor", N: 5})
	large := strings.Repeat("x", 1<<20)
	s.Files = [][]byte{[]byte("three"), []byte(large), []byte("five")}
	exit, stdout, stderr := result(t, s)
	want := large + "three" + "three" + "five"
	if !reopens {
		want = large + "three" + "five"
	}
	if exit != (Exit{}) || stdout != want {
		t.Errorf("got %+v, %d bytes, %q", exit, len(stdout), stderr)
	}
}

func TestEndedContextStartsNothing(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "started")
	s := agent(t, step{Do: "report", Text: file})
	why := errors.New("why")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if exit, err := Run(ctx, s); err != nil || exit != (Exit{Code: -1, Stopped: true}) {
		t.Errorf("Run: got %+v, %v", exit, err)
	}
	if p, err := Start(ctx, s); p != nil || err != why {
		t.Errorf("Start: got %v, %v", p, err)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("the process ran")
	}
}

func TestStartErrorSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	script := filepath.Join(dir, "script")
	if err := os.WriteFile(script, []byte("#!/no/such/interpreter\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		change func(*Spec)
		want   string
		is     error
	}{
		"relative path":  {func(s *Spec) { s.Path = "agent" }, "not absolute", nil},
		"relative dir":   {func(s *Spec) { s.Dir = "." }, "not an absolute path", nil},
		"missing path":   {func(s *Spec) { s.Path = "/no/such/agent" }, "no such file", fs.ErrNotExist},
		"missing dir":    {func(s *Spec) { s.Dir = "/no/such/dir" }, "working directory", fs.ErrNotExist},
		"dir is a file":  {func(s *Spec) { s.Dir = text }, "working directory", syscall.ENOTDIR},
		"interpreter":    {func(s *Spec) { s.Path = script }, "interpreter", fs.ErrNotExist},
		"not executable": {func(s *Spec) { s.Path = text }, "permission denied", fs.ErrPermission},
		"NUL argument":   {func(s *Spec) { s.Args = []string{"a", "secret\x00"} }, "argument 2 holds a NUL byte", nil},
		"NUL variable":   {func(s *Spec) { s.Env = []string{"KEY=secret\x00"} }, `"KEY" holds a NUL byte`, nil},
		"long argument":  {func(s *Spec) { s.Args = []string{strings.Repeat("x", 8<<20)} }, "too long", syscall.E2BIG},
		"empty dir":      {func(s *Spec) { s.EmptyDirs = []string{"../x"} }, "not the name of a directory", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := agent(t)
			s.Stdin, s.Stdout, s.Files = "x", io.Discard, [][]byte{nil}
			test.change(&s)
			_, err := Run(t.Context(), s)
			var start *StartError
			if !errors.As(err, &start) || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("got %v, want %q", err, test.want)
			}
			if test.is != nil && !errors.Is(err, test.is) {
				t.Errorf("%v is not %v", err, test.is)
			}
		})
	}
}

func TestEnvironmentIsGivenWholeAndTagged(t *testing.T) {
	t.Parallel()
	s := agent(t, step{Do: "env", Text: "A"}, step{Do: "print", Text: " "}, step{Do: "env", Text: TagVariable})
	s.Env = []string{"GORACE=atexit_sleep_ms=0", "A=1", TagVariable + "=old", "A=2", TagVariable + "=outer,middle"}
	_, stdout, _ := result(t, s)
	value, tag, _ := strings.Cut(stdout, " ")
	entries := strings.Split(tag, ",")
	if value != "2" || len(entries) != 3 {
		t.Fatalf("got %q", stdout)
	}
	if diff := cmp.Diff([]string{"outer", "middle"}, entries[:2]); diff != "" {
		t.Error(diff)
	}
}

func TestWaitMayBeCalledAgain(t *testing.T) {
	t.Parallel()
	p, err := Start(soon(t), agent(t, step{Do: "exit", N: 7}))
	if err != nil {
		t.Fatal(err)
	}
	if p.Pid() <= 0 {
		t.Error("no PID")
	}
	<-p.Done()
	for range 2 {
		if exit, err := p.Wait(); err != nil || exit != (Exit{Code: 7}) {
			t.Errorf("got %+v, %v", exit, err)
		}
	}
	p.Stop() // does nothing now
}

func TestProcessHasItsOwnSession(t *testing.T) {
	t.Parallel()
	p, err := Start(soon(t), agent(t, step{Do: "hang"}))
	if err != nil {
		t.Fatal(err)
	}
	if seen, err := readProcess(p.Pid()); err != nil || seen.session != p.Pid() {
		t.Errorf("got %+v, %v", seen, err)
	}
	p.Stop()
	p.Wait()
}
