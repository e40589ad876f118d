package process

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/busdk/bus-agent/internal/testwait"
)

// The test binary is the agent of the tests, too: called with "fake" and steps
// in JSON it carries them out.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "fake" {
		var steps []step
		if err := json.Unmarshal([]byte(os.Args[2]), &steps); err != nil {
			panic(err)
		}
		time.AfterFunc(5*time.Minute, func() { os.Exit(99) }) // whatever a test leaves behind
		perform(steps)
		os.Exit(0)
	}
	os.Unsetenv(TagVariable) // the tests themselves may be part of a run
	os.Exit(m.Run())
}

type step struct {
	Do    string
	Text  string `json:",omitempty"`
	N     int    `json:",omitempty"`
	Child *child `json:",omitempty"`
}

type child struct {
	Session bool   // in a separate session
	Cleared bool   // without environment
	Output  string // file for its standard output, that of its parent by default
	Daemon  bool   // in a separate session, at the root, with no streams
	Steps   []step
}

func perform(steps []step) {
	for _, s := range steps {
		action, ok := actions[s.Do]
		if !ok {
			panic("no such step: " + s.Do)
		}
		action(s)
	}
}

var actions map[string]func(step)

func init() {
	actions = map[string]func(step){
		"print":      func(s step) { fmt.Print(s.Text) },
		"warn":       func(s step) { fmt.Fprint(os.Stderr, s.Text) },
		"exit":       func(s step) { os.Exit(s.N) },
		"signal":     func(s step) { syscall.Kill(os.Getpid(), syscall.Signal(s.N)); hang(s) },
		"hang":       hang,
		"ignore":     func(step) { signal.Ignore(syscall.SIGTERM) },
		"trap":       trap,
		"cat":        func(step) { io.Copy(os.Stdout, os.Stdin) },
		"env":        func(s step) { fmt.Print(os.Getenv(s.Text)) },
		"read":       func(s step) { b, err := os.ReadFile(s.Text); fmt.Print(string(b)); check(err) },
		"descriptor": func(s step) { io.Copy(os.Stdout, os.NewFile(uintptr(s.N), "descriptor")) },
		"mkdir":      func(s step) { check(os.MkdirAll(s.Text, 0o777)) },
		"link":       link,
		"flood":      flood,
		"spawn":      spawn,
		"marked":     marked,
		"report":     report,
		"await":      func(s step) { await(s.Text) },
		"outlive":    outlive,
		"nest":       nest,
		"chain":      func(s step) { forkChain(s.N) },
		"pulse":      func(s step) { forkPulse(s.N) },
		"claim":      claim,
		"clean":      clean,
		"sweep":      sweep,
	}
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(98)
	}
}

func hang(step) { time.Sleep(time.Hour) }

// link makes a link to a new empty directory.
func link(s step) {
	dir, err := os.MkdirTemp(os.Getenv("TMPDIR"), "")
	check(err)
	check(os.Symlink(dir, s.Text))
}

// trap makes SIGTERM print a line and exit with N.
func trap(s step) {
	trapWith(func() {
		fmt.Print(s.Text)
		os.Exit(s.N)
	})
}

func trapWith(act func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGTERM)
	go func() {
		<-c
		act()
	}()
}

// flood prints N numbered lines.
func flood(s step) {
	var b strings.Builder
	for i := range s.N {
		fmt.Fprintln(&b, i)
		if b.Len() > 32<<10 || i == s.N-1 {
			if _, err := os.Stdout.WriteString(b.String()); err != nil {
				os.Exit(97)
			}
			b.Reset()
		}
	}
}

func spawn(s step) {
	cmd := fake(s.Child.Steps)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if s.Child.Cleared {
		cmd.Env = []string{}
	}
	if s.Child.Daemon {
		cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = "/", nil, nil, nil
	}
	if s.Child.Output != "" {
		out, err := os.OpenFile(s.Child.Output, os.O_WRONLY, 0)
		check(err)
		cmd.Stdout = out
		defer out.Close()
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: s.Child.Session || s.Child.Daemon}
	check(cmd.Start())
}

func fake(steps []step) *exec.Cmd { return exec.Command(executable(), fakeArgs(steps)...) }

func fakeArgs(steps []step) []string {
	b, err := json.Marshal(steps)
	if err != nil {
		panic(err)
	}
	return []string{"fake", string(b)}
}

func executable() string {
	path, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return path
}

// An id identifies a process.
type id struct {
	PID  int
	Born uint64
}

// report writes the id of this process into a file.
func report(s step) {
	p, err := readProcess(os.Getpid())
	check(err)
	b, err := json.Marshal(id{p.pid, p.born})
	check(err)
	check(os.WriteFile(s.Text+".new", b, 0o600))
	check(os.Rename(s.Text+".new", s.Text))
}

func await(file string) {
	if !testwait.Exists(file) {
		panic(file + " does not appear")
	}
}

// marked waits until this process bears a mark, where there are marks.
func marked(step) {
	testwait.Poll(func() bool { return newMark(false) == 0 || ownMark() != 0 })
}

// outlive waits for the end of the process whose id is in a file.
func outlive(s step) {
	await(s.Text)
	testwait.Poll(func() bool { return !readID(s.Text).alive() })
}

// testContext is for runs within a step, which has no test.
var testContext = context.Background()

// nest runs the child as an agent of this process.
func nest(s step) {
	dir, err := os.Getwd()
	check(err)
	_, err = Run(testContext, Spec{
		Path: executable(), Args: fakeArgs(s.Child.Steps), Env: os.Environ(), Dir: dir,
		Stdout: os.Stdout, Stderr: os.Stderr,
	})
	check(err)
}

func readID(file string) id {
	b, err := os.ReadFile(file)
	check(err)
	var who id
	check(json.Unmarshal(b, &who))
	return who
}

// reported returns the id in a file; it waits for it.
func reported(t *testing.T, file string) id {
	t.Helper()
	if !testwait.Exists(file) {
		t.Fatalf("%s never started", filepath.Base(file))
	}
	return readID(file)
}

func (i id) alive() bool {
	p, err := readProcess(i.PID)
	return err == nil && p.born == i.Born && !p.dead
}

func (i id) kill() {
	if i.alive() {
		p, err := os.FindProcess(i.PID)
		check(err)
		p.Kill()
	}
}

// reaped reports whether nothing of the process is left, no zombie either.
func (i id) reaped() bool {
	p, err := readProcess(i.PID)
	return err != nil || p.born != i.Born
}

func expectEntries(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
