package backendtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/busdk/bus-agent/internal/unix"
)

// Files next to the executable of an agent: its steps and its notes.
const (
	playSuffix = ".play"
	seenSuffix = ".seen"
)

// forkFlag begins the argument that makes a fake agent one that was forked.
const forkFlag = "--backendtest-fork="

// maxLife bounds the life of whatever a failing test leaves behind.
const maxLife = 2 * caseTime

// notePart bounds what is noted of one file, in bytes.
const notePart = 2 << 20

// Main is for TestMain: it plays the fake agent when the test binary was started
// as one, and runs the tests otherwise. It does not return.
func Main(m *testing.M) {
	PlayAgent()
	os.Exit(m.Run())
}

// PlayAgent does not return when the program was started as an agent that
// [Install] made: it performs its steps and exits. Otherwise it does
// nothing. Programs call it first; Main does so.
func PlayAgent() {
	called := os.Args[0]
	if !filepath.IsAbs(called) {
		return
	}
	if _, err := os.Stat(called + playSuffix); err != nil {
		return
	}
	// Before anything is opened, so that what is open was inherited.
	descriptors := readDescriptors()
	time.AfterFunc(maxLife, func() { os.Exit(99) })
	if err := play(called, descriptors); err != nil {
		fmt.Fprintln(os.Stderr, "fake agent:", err)
		os.Exit(98)
	}
	os.Exit(0)
}

func play(called string, descriptors [][]byte) error {
	if len(os.Args) == 2 && strings.HasPrefix(os.Args[1], forkFlag) {
		return playFork(strings.TrimPrefix(os.Args[1], forkFlag))
	}
	text, err := os.ReadFile(called + playSuffix)
	if err != nil {
		return err
	}
	var steps []Step
	if err := json.Unmarshal(text, &steps); err != nil {
		return err
	}
	if err := note(called, descriptors); err != nil {
		return err
	}
	return perform(steps)
}

func perform(steps []Step) error {
	for _, s := range steps {
		if err := s.perform(); err != nil {
			return fmt.Errorf("%s: %w", s.Do, err)
		}
	}
	return nil
}

// An Invocation is how an agent was called.
type Invocation struct {
	// Args are the arguments after the executable.
	Args []string
	// Env is the environment, as "NAME=value".
	Env []string
	// Dir is the current directory without symlinks.
	Dir string
	// Stdin is all of standard input.
	Stdin []byte
	// Descriptors are the contents of the inherited files, beginning with
	// descriptor 3.
	Descriptors [][]byte
	// Files are the files in Dir and in TMPDIR by their absolute path: the
	// content of regular files, the target of links after "-> ". What is in a
	// .git is left out.
	Files map[string][]byte
}

// getenv returns the value of a variable of the agent.
func (i *Invocation) getenv(name string) string {
	value, _ := i.lookup(name)
	return value
}

func (i *Invocation) lookup(name string) (string, bool) {
	for _, entry := range i.Env {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value, true
		}
	}
	return "", false
}

// note keeps how the agent was called.
func note(called string, descriptors [][]byte) error {
	stdin, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	dir, err := os.Getwd()
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return err
	}
	seen := Invocation{
		Args: os.Args[1:], Env: os.Environ(), Dir: dir,
		Stdin: stdin, Descriptors: descriptors, Files: map[string][]byte{},
	}
	for _, tree := range []string{dir, os.Getenv("TMPDIR")} {
		noteFiles(tree, seen.Files)
	}
	text, err := json.Marshal(&seen)
	if err != nil {
		return err
	}
	return writeWhole(called+seenSuffix, text)
}

// writeWhole writes a file in one step: an agent can be ended at any time, and
// what it noted is then there whole or not at all.
func writeWhole(name string, text []byte) error {
	part := fmt.Sprintf("%s.%d", name, os.Getpid())
	if err := os.WriteFile(part, text, 0o600); err != nil {
		return err
	}
	return os.Rename(part, name)
}

func noteFiles(tree string, files map[string][]byte) {
	if tree == "" {
		return
	}
	filepath.WalkDir(tree, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil // another run has just removed it
		case entry.IsDir() && entry.Name() == ".git":
			return fs.SkipDir
		case entry.Type()&fs.ModeSymlink != 0:
			target, _ := os.Readlink(name)
			files[name] = []byte("-> " + target)
		case entry.Type().IsRegular():
			if info, err := entry.Info(); err == nil && info.Size() <= notePart {
				files[name], _ = os.ReadFile(name)
			}
		}
		return nil
	})
}

// readDescriptors returns the contents of the inherited files without moving
// their position.
func readDescriptors() (contents [][]byte) {
	for fd := 3; ; fd++ {
		var stat unix.Stat_t
		if unix.Fstat(fd, &stat) != nil || stat.Mode&unix.S_IFMT != unix.S_IFREG {
			return contents
		}
		content := make([]byte, stat.Size)
		n, err := unix.Pread(fd, content, 0)
		if err != nil {
			n = 0
		}
		contents = append(contents, content[:n])
	}
}

// An Agent is an installed fake agent.
type Agent struct {
	// Path is its executable.
	Path string
}

// Install makes dir and in it an executable with the given name. It records how
// it is called, performs steps, and exits with 0 after the last. Installing an
// agent again replaces its steps and clears its record.
//
// Its environment should have GORACE=atexit_sleep_ms=0: without it the race
// detector keeps each process for a second.
func Install(dir, name string, steps ...Step) (*Agent, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(steps)
	if err != nil {
		return nil, err
	}
	a := &Agent{Path: filepath.Join(dir, name)}
	err = os.MkdirAll(dir, 0o700)
	if err == nil {
		err = os.WriteFile(a.Path+playSuffix, text, 0o600)
	}
	if err == nil {
		err = os.Symlink(self, a.Path)
	}
	if errors.Is(err, fs.ErrExist) {
		err = nil
	}
	if removeErr := os.Remove(a.Path + seenSuffix); err == nil && !errors.Is(removeErr, fs.ErrNotExist) {
		err = removeErr
	}
	return a, err
}

// Invocation returns how the agent was last called; nil if it was not.
func (a *Agent) Invocation() (*Invocation, error) {
	text, err := os.ReadFile(a.Path + seenSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var seen Invocation
	if err := json.Unmarshal(text, &seen); err != nil {
		return nil, fmt.Errorf("what the fake agent noted: %w", err)
	}
	return &seen, nil
}

// A Step is one thing a fake agent does; functions like [Print] make one.
type Step struct {
	Do    string
	Text  string `json:",omitempty"`
	More  string `json:",omitempty"`
	N     int    `json:",omitempty"`
	Steps []Step `json:",omitempty"`
}

// Print writes text to standard output, as it is.
func Print(text string) Step { return Step{Do: "print", Text: text} }

// PrintErr writes text to standard error, as it is.
func PrintErr(text string) Step { return Step{Do: "print error", Text: text} }

// PrintRun writes a run of n bytes "x" between before and after to standard
// output.
func PrintRun(before string, n int, after string) Step {
	return Step{Do: "print run", Text: before, N: n, More: after}
}

// printEnv writes the value of a variable to standard output.
func printEnv(name string) Step { return Step{Do: "print variable", Text: name} }

// WriteFile writes a file with its parents. $NAME in its name is a variable; a
// relative name is relative to the workdir.
func WriteFile(name, text string) Step { return Step{Do: "write", Text: name, More: text} }

// makeDir makes a directory with its parents; see [WriteFile] for its name.
func makeDir(name string) Step { return Step{Do: "make directory", Text: name} }

// Wait waits until the gate is opened.
func Wait(g *Gate) Step { return Step{Do: "wait", Text: g.path} }

// Hang does nothing until a signal ends the agent.
func Hang() Step { return Step{Do: "hang"} }

// ignoreTerm ignores SIGTERM from now on.
func ignoreTerm() Step { return Step{Do: "ignore SIGTERM"} }

// Exit ends the agent with code.
func Exit(code int) Step { return Step{Do: "exit", N: code} }

// Fork starts a process that does steps and shares the output of the agent. It
// holds lock, see [Locked], from before this step is over until it ends.
func Fork(lock string, steps ...Step) Step { return Step{Do: "fork", Text: lock, Steps: steps} }

// ForkSession is [Fork] in a new session, and so in a new process group.
func ForkSession(lock string, steps ...Step) Step {
	return Step{Do: "fork", Text: lock, N: 1, Steps: steps}
}

func (s Step) perform() error {
	switch s.Do {
	case "print":
		_, err := io.WriteString(os.Stdout, s.Text)
		return err
	case "print error":
		_, err := io.WriteString(os.Stderr, s.Text)
		return err
	case "print run":
		_, err := io.WriteString(os.Stdout, s.Text+strings.Repeat("x", s.N)+s.More)
		return err
	case "print variable":
		_, err := io.WriteString(os.Stdout, os.Getenv(s.Text))
		return err
	case "write":
		name := os.ExpandEnv(s.Text)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			return err
		}
		return os.WriteFile(name, []byte(s.More), 0o600)
	case "make directory":
		return os.MkdirAll(os.ExpandEnv(s.Text), 0o777)
	case "wait":
		return awaitGate(s.Text)
	case "hang":
		time.Sleep(maxLife)
		return nil
	case "ignore SIGTERM":
		signal.Ignore(syscall.SIGTERM)
		return nil
	case "exit":
		os.Exit(s.N)
	case "fork":
		return s.fork()
	case "spoil":
		return s.spoil()
	case "replace":
		return s.replace()
	}
	return errors.New("no such step")
}

// fork starts a child and waits until it holds its lock: then it closes the pipe
// it was given as descriptor 3.
func (s Step) fork() error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	ready, held, err := os.Pipe()
	if err != nil {
		return err
	}
	defer ready.Close()
	attr := &os.ProcAttr{Files: []*os.File{nil, os.Stdout, os.Stderr, held}}
	if s.N == 1 {
		attr.Sys = unix.NewSession()
	}
	child, err := os.StartProcess(os.Args[0], []string{os.Args[0], forkFlag + string(text)}, attr)
	held.Close()
	if err != nil {
		return err
	}
	if _, err := io.ReadAll(ready); err != nil {
		return err
	}
	return child.Release()
}

func playFork(text string) error {
	var s Step
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return err
	}
	lock, err := os.OpenFile(s.Text, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return err
	}
	if err := syscall.Close(3); err != nil {
		return fmt.Errorf("telling that the lock is held: %w", err)
	}
	err = perform(s.Steps)
	lock.Close()
	return err
}

// Locked reports whether a process that was forked with lock is alive. It is an
// error if none was forked.
func Locked(lock string) (bool, error) {
	f, err := os.Open(lock)
	if err != nil {
		return false, err
	}
	defer f.Close()
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	// Explicitly, because a process that is being started holds a copy of the
	// descriptor for a moment.
	return false, unix.Flock(int(f.Fd()), unix.LOCK_UN)
}

// A Gate is where agents wait for the test.
type Gate struct {
	path string
	file *os.File
}

// NewGate makes a gate, a FIFO at path. The caller closes it.
func NewGate(path string) (*Gate, error) {
	if err := unix.Mkfifo(path, 0o600); err != nil {
		return nil, &fs.PathError{Op: "mkfifo", Path: path, Err: err}
	}
	// For reading too: so it opens, and what is written stays, with no reader.
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	return &Gate{path: path, file: file}, nil
}

// Open lets one agent continue, also one that arrives later.
func (g *Gate) Open() error {
	_, err := g.file.Write([]byte{'\n'})
	return err
}

// Close removes the gate; waiting agents continue.
func (g *Gate) Close() error { return g.file.Close() }

func awaitGate(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.Read(make([]byte, 1))
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
