package runner_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/testwait"
	"github.com/busdk/bus-agent/registry"
)

const (
	// tooLong is a limit that no run reaches.
	tooLong = testwait.Limit
	// ample is long enough for an agent to start and print its first lines.
	ample = 3 * time.Second
)

// tethers are what an agent holds open until it ends.
var tethers []*os.File

// hangStep does the steps of an agent that does not exit.
func hangStep(verb, arg string) error {
	switch verb {
	case "hold": // a tether, see newTether
		f, err := os.OpenFile(arg, os.O_WRONLY, 0)
		tethers = append(tethers, f)
		return err
	case "leave": // a child in a new session, which holds a tether and the output
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), "FAKE_AGENT=hold "+arg+"\nhang")
		child.Stdout, child.Stderr = os.Stdout, os.Stderr
		child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		return child.Start()
	case "wait": // until a FIFO is written to
		f, err := os.Open(arg)
		if err == nil {
			_, err = f.Read(make([]byte, 1))
		}
		return err
	case "pid":
		fmt.Printf("text:%d\n", os.Getpid())
		return nil
	case "deaf": // closes its standard input
		return os.Stdin.Close()
	case "forever": // a line every few milliseconds
		for {
			if _, err := fmt.Println(arg); err != nil {
				return err
			}
			time.Sleep(5 * time.Millisecond)
		}
	case "flood": // lines as fast as they are taken
		for line := []byte(arg + "\n"); ; {
			if _, err := os.Stdout.Write(line); err != nil {
				return err
			}
		}
	}
	return fmt.Errorf("unknown step %q", verb)
}

// A tether shows whether the process that holds it is alive, however it ends.
type tether struct {
	path string
	held chan struct{} // closed when a process holds it
	gone chan struct{} // closed when no process holds it any more
}

func newTether(t *testing.T) *tether {
	t.Helper()
	h := &tether{filepath.Join(t.TempDir(), "tether"), make(chan struct{}), make(chan struct{})}
	if err := syscall.Mkfifo(h.path, 0o600); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(h.gone)
		if f, err := os.Open(h.path); err == nil { // when the agent opens it too
			close(h.held)
			io.Copy(io.Discard, f)
			f.Close()
		}
	}()
	return h
}

// expectGone waits until no process holds the tether. Every process that can hold it
// has been started before.
func (h *tether) expectGone(t *testing.T, what string) {
	t.Helper()
	// A process that ended before it opened the tether has never unblocked the reader.
	if f, err := os.OpenFile(h.path, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
		f.Close()
	}
	testwait.Receive(t, what+" is alive", h.gone)
}

// newGate returns a FIFO that a step can wait for, and a function that opens it.
func newGate(t *testing.T) (path string, open func()) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "gate")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return path, func() { f.WriteString("\n") }
}

// An ending is what Run returned.
type ending struct {
	result agent.Result
	err    error
}

// start runs req in the background and sends what Run returns to the channel.
func (b *bench) start(ctx context.Context, req agent.Request, out agent.Output) <-chan ending {
	ended := make(chan ending, 1)
	go func() {
		result, err := b.Run(ctx, req, out)
		ended <- ending{result, err}
	}()
	return ended
}

// within returns what Run returned, and fails the test if that takes too long.
func within(t *testing.T, ended <-chan ending) ending {
	t.Helper()
	return testwait.Receive(t, "the end of the run", ended)
}

// takesAnyPrompt adds a runtime without a limit and installs it.
func (b *bench) takesAnyPrompt(t *testing.T) {
	t.Helper()
	rt := fakeRuntime("delta")
	rt.PromptLimit = registry.Limit{}
	if err := b.Registry.Register(rt); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err == nil {
		err = os.Symlink(self, filepath.Join(b.path, "delta"))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// kinds returns a callback, and a function that returns the kinds of its events after
// the run.
func kinds() (callback func(*agent.Event) error, list func() string) {
	var all []string
	return func(e *agent.Event) error {
			all = append(all, string(e.Kind))
			return nil
		}, func() string {
			return strings.Join(all, " ")
		}
}
