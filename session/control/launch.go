package control

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/process"
	"github.com/busdk/bus-agent/internal/statefile"
	"github.com/busdk/bus-agent/session"
)

// A Program is a program that holds sessions in the background: run with these
// arguments, it calls Serve.
type Program struct {
	Path    string   // absolute
	Args    []string // with the name of the program
	Environ []string // nil means that of this process
}

// A Report is what a session reports while it is being started.
type Report struct {
	Warning string   `json:"warning,omitempty"`
	Runtime string   `json:"runtime,omitempty"` // what is about to start
	Model   string   `json:"model,omitempty"`
	RunID   string   `json:"run_id,omitempty"` // of its record; alone if the agent did not start
	Ready   bool     `json:"ready,omitempty"`
	Failure *Failure `json:"failure,omitempty"`
}

// Start starts a session that a process of Host holds, which outlives this one, and
// returns when the session takes messages. The Workdir of opts must be absolute. If
// ctx ends first, or the session cannot be started, nothing is left behind.
func (c *Client) Start(ctx context.Context, opts StartOptions) (Entry, error) {
	store, err := c.store()
	if err != nil {
		return Entry{}, err
	}
	if err := checkName(opts.Name); err != nil {
		return Entry{}, err
	}
	var environ []string
	for name, value := range opts.Env {
		environ = append(environ, name+"="+value)
	}
	opts.Identity = or(opts.Identity, identityOf(environ, ""))
	id := cmp.Or(opts.Identity.SessionID, newID())
	e := Entry{
		SessionID: id, Name: opts.Name, Settings: opts.Settings, Folder: folderName(id),
		State: session.StateStarting, Fresh: true, Owner: process.Self(), OwnerPID: os.Getpid(), Host: hostName(), Started: now(),
	}
	if err := store.claim(ctx, &e, opts.Identity.SessionID != "", ""); err != nil {
		return Entry{}, err
	}
	opts.Identity.SessionID = e.SessionID
	if err := c.launch(ctx, store, order{Entry: e, Options: opts}); err != nil {
		_ = store.discard(context.WithoutCancel(ctx), e) // what stays is shown as crashed
		return Entry{}, err
	}
	return store.Get(e.SessionID)
}

// Resume resumes a session that has ended in a process of Host. Stale processes of a
// crashed session are ended first.
func (c *Client) Resume(ctx context.Context, e Entry, opts ResumeOptions) (Entry, error) {
	store, err := c.store()
	if err != nil {
		return Entry{}, err
	}
	if now, err := store.Get(e.SessionID); err == nil {
		e = now // what the caller has can be of before its end
	}
	store.settle(&e)
	e = c.awaitEnd(ctx, store, e)
	switch {
	case !e.State.Ended() && e.State != session.StateElsewhere:
		return Entry{}, usage(ErrRunning, "session %s has not ended", e.Label())
	case e.State == session.StateElsewhere:
		return Entry{}, notServed(e)
	case !e.resumable():
		return Entry{}, notResumable(e)
	case e.State == session.StateCrashed:
		if err := endStale(ctx, e); err != nil {
			return Entry{}, err
		}
	}
	ending, cancel := c.bounded(ctx, e)
	err = c.gone(ending, e)
	cancel()
	if err != nil {
		return Entry{}, err
	}
	if e.Folder == "" {
		e.Folder = folderName(e.SessionID)
	}
	start := StartOptions{Settings: opts.Settings, Env: opts.Env, UnsavedMCPServers: opts.UnsavedMCPServers, InitialPrompt: opts.Prompt, InitialAttachments: opts.Attachments}
	if err := c.launch(ctx, store, order{Entry: e, Options: start, Resume: true}); err != nil {
		return Entry{}, err
	}
	return store.Get(e.SessionID)
}

// endingLimit bounds the wait for the end of a session that is ending.
const endingLimit = 8 * time.Second

// awaitEnd returns the entry of a session after its end if it is ending: its agent has
// ended, or is being stopped, and the process that holds it has not yet written so.
func (c *Client) awaitEnd(ctx context.Context, store *Store, e Entry) Entry {
	ctx, cancel := context.WithTimeout(ctx, endingLimit)
	defer cancel()
	for e.Served() && ctx.Err() == nil {
		status, err := c.Show(ctx, e)
		if err != nil || status.State != session.StateStopping && !e.dead(e.Process) {
			break
		}
		time.Sleep(endPoll)
		now, err := store.Get(e.SessionID)
		if err != nil {
			break
		}
		e = now
	}
	return e
}

// An order is what a process that holds a session reads on standard input.
type order struct {
	Version int          `json:"v"`
	Dir     string       `json:"dir"` // of the store
	Entry   Entry        `json:"entry"`
	Options StartOptions `json:"options"`
	Resume  bool         `json:"resume,omitempty"`
}

// launch starts the process that holds a session and returns when the session is ready.
func (c *Client) launch(ctx context.Context, store *Store, what order) error {
	what.Version, what.Dir = protocolVersion, store.dir
	if c.Host.Path == "" {
		return agent.Usagef("no program is known that could hold the session")
	}
	input, err := json.Marshal(what)
	if err != nil {
		return err
	}
	e := what.Entry
	if err := os.MkdirAll(store.folder(e), 0o700); err != nil {
		return err
	}
	log, err := statefile.Append(store.logFile(e))
	if err != nil {
		return err
	}
	defer log.Close()
	if err := log.Truncate(0); err != nil {
		return err
	}
	environ := c.Host.Environ
	if environ == nil {
		environ = os.Environ()
	}
	child, err := process.StartDetached(process.Detached{
		Path: c.Host.Path, Args: c.Host.Args, Env: environ, Dir: "/", Input: input, Log: log,
	})
	if err != nil {
		return fmt.Errorf("start the process that holds the session: %w", err)
	}
	defer child.Report.Close()
	defer context.AfterFunc(ctx, child.Stop)()
	for lines := bufio.NewReader(child.Report); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			child.Wait()
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return &agent.Error{Kind: agent.ErrAgent, Err: &because{"the process that holds the session has ended before the session was ready",
				&agent.ExitError{Code: -1, Stderr: logTail(store.logFile(e))}}}
		}
		var r Report
		if err := json.Unmarshal(line, &r); err != nil {
			child.Stop()
			child.Wait()
			return fmt.Errorf("the process that holds the session is not understood: %w", err)
		}
		switch {
		case r.Ready:
			go child.Wait() // when it ends, it is reaped
			return nil
		case r.Failure != nil:
			child.Wait()
			return r.Failure.err()
		case c.Report != nil:
			c.Report(r)
		}
	}
}

// logTail returns the last lines of a log.
func logTail(path string) string {
	const size = 4 << 10
	f, err := statefile.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > size {
		_, _ = f.Seek(-size, io.SeekEnd)
	}
	text, _ := io.ReadAll(io.LimitReader(f, size)) // as much as can be read
	return string(text)
}

// maxLog is how long the log of a session gets, in bytes, before it begins
// anew.
const maxLog = 1 << 20

// boundedLog writes to a log that is opened for appending.
type boundedLog struct {
	file *os.File
	size int
}

// Write never fails: a log that cannot be written does not stop an agent.
func (l *boundedLog) Write(b []byte) (int, error) {
	if l.size += len(b); l.size > maxLog {
		_ = l.file.Truncate(0)
		l.size = len(b)
	}
	_, _ = l.file.Write(b)
	return len(b), nil
}
