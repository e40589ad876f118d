package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/process"
	"github.com/busdk/bus-agent/runner"
)

// Callback returns a sink that calls f.
func Callback(f func(context.Context, Payload) error) Sink { return callback(f) }

type callback func(context.Context, Payload) error

func (f callback) Deliver(ctx context.Context, p Payload) error { return f(ctx, p) }
func (f callback) String() string                               { return "function" }

// commandTimeout is how long a command may take for one event.
const commandTimeout = 10 * time.Second

// A Command runs a program for each event, with the JSON form on its standard
// input. It is for programs that the user names; no shell is involved.
// Processes that the program leaves running are ended too.
type Command struct {
	// Argv is the program, by its absolute path or a name to find in PATH, and
	// its arguments.
	Argv []string
	// Environ is its whole environment; nil means that of this process.
	Environ []string
	// Dir is its working directory, absolute; empty means the root directory,
	// which does not contain files of a repository.
	Dir string
	// Timeout is how long it may take; zero means 10 seconds.
	Timeout time.Duration
}

func (c Command) String() string {
	if len(c.Argv) == 0 {
		return "command"
	}
	return "command " + filepath.Base(c.Argv[0])
}

// find returns the command with the absolute path of its program.
func (c Command) find() (Command, error) {
	if len(c.Argv) == 0 {
		return c, errors.New("it names no program")
	}
	if c.Environ == nil {
		c.Environ = os.Environ()
	}
	search, _ := agent.LookupEnv(c.Environ, "PATH")
	path, err := process.LookPath(c.Argv[0], search)
	if err != nil {
		return c, err
	}
	c.Argv = append([]string{path}, c.Argv[1:]...)
	return c, nil
}

// Deliver runs the command. A command that does not exit with 0 has failed; the
// error includes its standard error, with the secrets of its environment masked.
func (c Command) Deliver(ctx context.Context, p Payload) error {
	c, err := c.find()
	if err != nil {
		return err
	}
	line, err := p.JSON()
	if err != nil {
		return err
	}
	timeout := cmp.Or(c.Timeout, commandTimeout)
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	said := &lastWords{}
	masked := runner.NewMaskWriter(said, c.Environ)
	exit, err := process.Run(ctx, process.Spec{
		Path: c.Argv[0], Args: c.Argv[1:], Env: c.Environ, Dir: cmp.Or(c.Dir, "/"),
		Stdin: string(line) + "\n", Stdout: io.Discard, Stderr: masked,
		Grace: time.Second, Settle: -1,
	})
	_ = masked.Flush() // lastWords never fails
	switch {
	case err != nil:
		return err
	case exit.Stopped && !errors.Is(context.Cause(ctx), context.DeadlineExceeded):
		return context.Cause(ctx)
	case exit.Stopped:
		return fmt.Errorf("it took longer than %v", timeout)
	case exit.Signal != "":
		return fmt.Errorf("it was ended by %s%s", exit.Signal, said)
	case exit.Code != 0:
		return fmt.Errorf("exit code %d%s", exit.Code, said)
	}
	return nil
}

// lastWords keeps the beginning of what a program says, for an error.
type lastWords struct{ text []byte }

func (w *lastWords) Write(b []byte) (int, error) {
	w.text = append(w.text, b[:min(len(b), 500-len(w.text))]...)
	return len(b), nil
}

func (w *lastWords) String() string {
	text := strings.Join(strings.Fields(string(w.text)), " ")
	if text == "" {
		return ""
	}
	return ": " + text
}
