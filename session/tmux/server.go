package tmux

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/busdk/bus-agent/internal/process"
	"github.com/busdk/bus-agent/runner"
	"github.com/busdk/bus-agent/session/engine"
)

const (
	// callLimit bounds a call of tmux. Calls take milliseconds.
	callLimit = 30 * time.Second
	// hangUpTime is how long an agent may take to end once its terminal is closed.
	hangUpTime = 2 * time.Second
	// maxSocket is the longest socket name that all systems allow.
	maxSocket = 100
)

// A server is a tmux server with one session, in which the agent runs. It is the
// engine.Process of the session.
type server struct {
	tmux     string // the executable
	env      []string
	mask     *runner.Masker
	folder   string // of the socket; only the user can open it
	claim    *process.Claim
	process  *process.Process
	said     tail
	stopping atomic.Bool
	exit     process.Exit // valid once done is closed
	over     func(survived int)
	done     chan struct{}
}

// startServer starts a server for a program in dir. It keeps running when ctx ends.
func startServer(ctx context.Context, tmux, dir string, p *engine.Program) (*server, error) {
	s := &server{tmux: tmux, env: withoutTmux(p.Env), mask: runner.NewMasker(slices.Concat(p.Env, p.Secrets)), over: p.Ended, done: make(chan struct{})}
	var err error
	parent := os.TempDir()
	if len(parent) > maxSocket-2*len(process.TempPrefix) {
		parent = "/tmp"
	}
	if s.folder, s.claim, err = process.MakeTempDir(parent, ""); err != nil {
		return nil, err
	}
	s.process, err = process.Start(context.WithoutCancel(ctx), process.Spec{
		Path: s.tmux,
		// -D keeps it a child of this process. It reads no configuration file.
		Args:      []string{"-D", "-u", "-f", os.DevNull, "-S", s.Socket()},
		Env:       s.env,
		Dir:       dir,
		Stdout:    &s.said,
		Stderr:    &s.said,
		Settle:    hangUpTime,
		EmptyDirs: p.EmptyDirs,
	})
	if err != nil {
		s.cleanUp()
		return nil, fmt.Errorf("tmux: %w", err)
	}
	go s.wait()
	return s, nil
}

// withoutTmux returns env without the variables that name another tmux server.
func withoutTmux(env []string) (kept []string) {
	for _, entry := range env {
		switch name, _, _ := strings.Cut(entry, "="); name {
		case "TMUX", "TMUX_PANE", "TMUX_TMPDIR":
		default:
			kept = append(kept, entry)
		}
	}
	return kept
}

// Socket is for session.Session.Socket.
func (s *server) Socket() string { return filepath.Join(s.folder, "socket") }

// Stop ends the server and the agent.
func (s *server) Stop() {
	s.stopping.Store(true)
	s.process.Stop()
}

// PID returns the PID of the server: that of the agent can pass to another program
// before the session is over.
func (s *server) PID() int { return s.process.Pid() }

// Done returns a channel that is closed when all processes have ended.
func (s *server) Done() <-chan struct{} { return s.done }

func (s *server) wait() {
	s.exit, _ = s.process.Wait() // a tail does not fail
	s.cleanUp()
	if s.over != nil {
		s.over(s.exit.Survived)
	}
	close(s.done)
}

func (s *server) cleanUp() {
	_ = os.RemoveAll(s.folder) // what cannot be removed is stale once the claim is gone
	s.claim.Release()
}

// ended returns why the server has ended, nil when it was stopped.
func (s *server) ended() error {
	<-s.done
	switch {
	case s.exit.Stopped:
		return nil
	case s.exit.Signal != "":
		return fmt.Errorf("tmux was ended by %s", s.exit.Signal)
	}
	return fmt.Errorf("tmux ended with status %d: %s", s.exit.Code, s.said.text())
}

// lost is ended for a server that cannot be reached. One that runs without its socket is
// ended: nothing would learn of the end of its agent.
func (s *server) lost() error {
	select {
	case <-s.done:
		return s.ended()
	case <-time.After(hangUpTime):
	}
	if s.stopping.Swap(true) {
		return s.ended()
	}
	s.process.Stop()
	return cmp.Or(s.ended(), errors.New("the socket of tmux is gone"))
}

// errNoServer is the error of a call that did not reach the server.
var errNoServer = errors.New("the tmux server does not answer")

// call runs commands in the server and returns their output. The client runs in dir,
// which becomes the working directory of a new session.
func (s *server) call(ctx context.Context, dir, stdin string, commands ...[]string) (string, error) {
	var stdout, stderr bytes.Buffer
	exit, err := process.Run(ctx, process.Spec{
		Path:   s.tmux,
		Args:   append([]string{"-u", "-N", "-S", s.Socket()}, commandLine(commands...)...),
		Env:    s.env, // a new session takes PATH from it
		Dir:    dir,
		Stdin:  stdin,
		Stdout: &stdout,
		Stderr: &stderr,
	})
	said := strings.TrimSpace(stderr.String())
	switch {
	case err != nil && s.isGone():
		return "", errNoServer
	case err != nil:
		return "", fmt.Errorf("tmux: %w", err)
	case exit.Stopped:
		return "", context.Cause(ctx)
	case exit.Code == 0:
		return stdout.String(), nil
	case strings.HasPrefix(said, "no server running") || strings.HasPrefix(said, "error connecting") ||
		strings.HasPrefix(said, "server exited") || strings.HasPrefix(said, "lost server"):
		return "", fmt.Errorf("%w: %s", errNoServer, said)
	}
	return "", fmt.Errorf("tmux %s: %s", commands[len(commands)-1][0], said)
}

// isGone reports whether the server has ended and its folder with it.
func (s *server) isGone() bool {
	_, err := os.Stat(s.folder)
	return errors.Is(err, fs.ErrNotExist)
}

// ask is call with a time limit.
func (s *server) ask(ctx context.Context, stdin string, commands ...[]string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	return s.call(ctx, s.folder, stdin, commands...)
}

// await repeats a call until the server, which was just started, answers.
func (s *server) await(ctx context.Context, dir string, commands ...[]string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	for pause := 2 * time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		out, err := s.call(ctx, dir, "", commands...)
		if !errors.Is(err, errNoServer) {
			return out, err
		}
		select {
		case <-time.After(pause):
		case <-s.done:
			if err := s.ended(); err != nil {
				return "", err
			}
			return "", errNoServer
		case <-ctx.Done():
			return "", err
		}
	}
}

// A tail is a writer that keeps the last maxTail bytes.
type tail struct {
	mu   sync.Mutex
	kept []byte
}

const maxTail = 2 << 10

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, b...)
	t.kept = t.kept[max(0, len(t.kept)-maxTail):]
	return len(b), nil
}

func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(strings.ToValidUTF8(string(t.kept), ""))
}
