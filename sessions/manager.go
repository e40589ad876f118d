package sessions

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/runner"
	"github.com/busdk/bus-agent/session"
)

// A Manager starts sessions and holds them until they end. Its methods may be
// called concurrently; its fields are set before the first call.
type Manager struct {
	// Runner starts the agents. Nil means one without preferences. ModeTmux is
	// there when package session/tmux is imported or Runner.OpenTerminal is set.
	Runner *runner.Runner

	// Store is where the sessions are kept. Nil means the user's state folder.
	Store *Store

	// Hooks are told what happens. It may be nil.
	Hooks *Hooks

	// Warn receives each warning as one line, from any goroutine. Nil means that
	// of the runner.
	Warn func(string)

	mu   sync.Mutex
	held map[string]*held // by session ID
}

func (m *Manager) runner() *runner.Runner {
	if m.Runner != nil {
		return m.Runner
	}
	return &runner.Runner{}
}

func (m *Manager) environ() []string {
	if r := m.runner(); r.Environ != nil {
		return r.Environ
	}
	return os.Environ()
}

func (m *Manager) store() (*Store, error) {
	if m.Store != nil {
		return m.Store, nil
	}
	dir, err := DefaultDir(m.environ())
	if err != nil {
		return nil, err
	}
	return NewStore(dir), nil
}

func (m *Manager) warn(line string) {
	if m.Warn != nil {
		m.Warn(line)
		return
	}
	m.runnerWarn(line)
}

func (m *Manager) runnerWarn(line string) {
	if r := m.runner(); r.Warn != nil {
		r.Warn(line)
		return
	}
	fmt.Fprintf(os.Stderr, "bus-agent: %s\n", line)
}

// Start starts a session and returns when it can take messages. Its InitialPrompt
// is the first of them; what becomes of it is told to the hooks.
func (m *Manager) Start(ctx context.Context, opts StartOptions) (SessionHandle, error) {
	p, err := m.plan(ctx, opts)
	if err != nil {
		return SessionHandle{}, err
	}
	store, err := m.store()
	if err != nil {
		return SessionHandle{}, err
	}
	if err := p.claim(ctx, store); err != nil {
		return SessionHandle{}, err
	}
	h, err := m.open(ctx, store, p, "")
	if err != nil {
		if err := store.discard(context.WithoutCancel(ctx), p.entry.SessionID); err != nil {
			m.warn(fmt.Sprintf("the entry of session %s is left behind: %v", p.entry.SessionID, err))
		}
		return SessionHandle{}, err
	}
	return h, nil
}

// Resume goes on with a session that has ended, as it was started, but for what
// the state folder does not keep: see [Manager.ResumeWith].
func (m *Manager) Resume(ctx context.Context, handle SessionHandle) error {
	_, err := m.ResumeWith(ctx, handle, StartOptions{})
	return err
}

// ResumeWith goes on with a session that has ended. What opts leaves open is as it
// was: runtime, workdir, account, mode, model, access and identity. The state
// folder keeps neither Env nor trust in the workspace nor any other setting. A
// session that has no entry is taken for one of the runtime's own: then the handle
// or opts name its runtime and workdir. The error of one that runs is ErrRunning.
func (m *Manager) ResumeWith(ctx context.Context, handle SessionHandle, opts StartOptions) (SessionHandle, error) {
	store, err := m.store()
	if err != nil {
		return SessionHandle{}, err
	}
	before, err := store.Get(handle.SessionID)
	switch {
	case errors.Is(err, ErrUnknown):
		before = Entry{SessionID: handle.SessionID, NativeID: handle.SessionID, Runtime: handle.Runtime, WorkDir: handle.WorkDir}
	case err != nil:
		return SessionHandle{}, err
	case before.NativeID == "":
		return SessionHandle{}, agent.Usagef("session %s cannot be resumed: it ended before %s gave it an ID", before.SessionID, before.Runtime)
	}
	p, err := m.plan(ctx, before.options(opts))
	if err != nil {
		return SessionHandle{}, err
	}
	if id, _, _ := strings.Cut(before.Runtime, ":"); id != "" && id != p.runtime.ID {
		return SessionHandle{}, agent.Usagef("session %s is of %s; %s cannot resume it", before.SessionID, before.Runtime, p.entry.Runtime)
	}
	p.entry.NativeID, p.entry.Created = before.NativeID, before.Created
	if err := store.Update(ctx, p.entry.SessionID, func(e *Entry) error {
		if err := e.inUse(); err != nil {
			return err
		}
		before, *e = *e, p.entry
		return nil
	}); err != nil {
		return SessionHandle{}, err
	}
	h, err := m.open(ctx, store, p, p.entry.NativeID)
	if err != nil {
		m.giveBack(context.WithoutCancel(ctx), store, before, p.entry)
		return SessionHandle{}, err
	}
	return h, nil
}

// giveBack restores the entry of a session that could not be resumed.
func (m *Manager) giveBack(ctx context.Context, store *Store, before, tried Entry) {
	var err error
	if before.SessionID == "" { // it had none
		err = store.discard(ctx, tried.SessionID)
	} else {
		err = store.Save(ctx, before)
	}
	if err != nil {
		m.warn(fmt.Sprintf("the entry of session %s is not restored: %v", tried.SessionID, err))
	}
}

// options returns opts with what it leaves open as the session had it.
func (e Entry) options(opts StartOptions) StartOptions {
	for _, field := range []struct {
		option *string
		was    string
	}{
		{&opts.RuntimeName, e.Runtime}, {&opts.WorkDir, e.WorkDir}, {&opts.AccountDir, e.AccountDir},
		{&opts.Bead, e.Bead}, {&opts.Request.Model, e.Model},
	} {
		if *field.option == "" {
			*field.option = field.was
		}
	}
	if opts.Mode == "" {
		opts.Mode = e.Mode
	}
	if opts.Request.Access == "" {
		opts.Request.Access = e.Access
	}
	was := Identity{Role: e.Role, Rig: e.Rig, Polecat: e.Polecat, Actor: e.Actor}
	opts.Identity = was.over(opts.Identity)
	opts.Identity.SessionID = e.SessionID
	return opts
}

// open starts the agent of a session whose entry says that it starts.
func (m *Manager) open(ctx context.Context, store *Store, p *plan, resume string) (SessionHandle, error) {
	h := newHeld(m, store, p)
	req, options := p.request, p.options
	req.Resume, options.Created, options.Mode = resume, p.entry.Created, p.entry.Mode
	s, err := p.runner.StartSession(ctx, req, h.listen(options))
	if err != nil {
		h.emit(OnError, errorData(err))
		return SessionHandle{}, err
	}
	if err := h.opened(ctx, s, resume != ""); err != nil {
		s.Stop(context.WithoutCancel(ctx), "its entry cannot be written")
		return SessionHandle{}, err
	}
	m.mu.Lock()
	if m.held == nil {
		m.held = make(map[string]*held)
	}
	m.held[p.entry.SessionID] = h
	m.mu.Unlock()
	go h.record()
	if p.prompt != "" {
		if _, err := h.send(session.Message{Text: p.prompt}); err != nil {
			return SessionHandle{}, err // it ended just now
		}
	}
	return h.handle(), nil
}

// find returns the session of a handle if this Manager holds it.
func (m *Manager) find(handle SessionHandle) *held {
	m.mu.Lock()
	defer m.mu.Unlock()
	if h := m.held[handle.SessionID]; h != nil {
		return h
	}
	for _, h := range m.held {
		if h.s.Info().SessionID == handle.SessionID && handle.SessionID != "" {
			return h
		}
	}
	return nil
}

// need returns the session of a handle, or why this Manager does not hold it.
func (m *Manager) need(handle SessionHandle) (*held, error) {
	if h := m.find(handle); h != nil {
		return h, nil
	}
	store, err := m.store()
	if err != nil {
		return nil, err
	}
	e, err := store.Get(handle.SessionID)
	switch {
	case err != nil:
		return nil, err
	case e.State == StateStopped:
		return nil, fmt.Errorf("%w: %s has stopped", ErrNotRunning, e.SessionID)
	case e.State == StateCrashed:
		return nil, fmt.Errorf("%w: %s has crashed: %s", ErrNotRunning, e.SessionID, e.Reason)
	}
	return nil, fmt.Errorf("%w: %s", ErrElsewhere, e.SessionID)
}

// Session returns the session of a handle that this Manager holds, for what the
// interface does not offer, such as Interrupt and Answer.
func (m *Manager) Session(handle SessionHandle) (*session.Session, error) {
	h, err := m.need(handle)
	if err != nil {
		return nil, err
	}
	return h.s, nil
}

// Handle returns the handle of a session as it is now.
func (m *Manager) Handle(id string) (SessionHandle, error) {
	store, err := m.store()
	if err != nil {
		return SessionHandle{}, err
	}
	e, err := store.Get(id)
	return e.Handle(), err
}

// Send queues a message for a turn of its own and returns the turn.
func (m *Manager) Send(handle SessionHandle, msg Message) (*session.Turn, error) {
	h, err := m.takes(handle, msg)
	if err != nil {
		return nil, err
	}
	return h.send(session.Message{Text: msg.Text, Timeout: msg.Timeout})
}

// Steer adds a message to the turn that is running, or makes it the next one, and
// returns the turn, like [session.Session.Steer].
func (m *Manager) Steer(ctx context.Context, handle SessionHandle, msg Message) (*session.Turn, error) {
	h, err := m.takes(handle, msg)
	if err != nil {
		return nil, err
	}
	return h.say(func() *session.Turn { return h.s.Steer(ctx, session.Message{Text: msg.Text, Timeout: msg.Timeout}) })
}

// takes returns the session of a handle if it can take a message.
func (m *Manager) takes(handle SessionHandle, msg Message) (*held, error) {
	h, err := m.need(handle)
	if err != nil {
		return nil, err
	}
	if err := h.plan.checkDelivery(msg.Delivery); err != nil {
		return nil, err
	}
	return h, checkText(msg.Text, h.plan.runtime)
}

// SendMessage queues a message and returns when the agent has got it, or with the
// reason why it never will. A message that is still waiting when ctx ends waits
// on, for the time of its Timeout: the error is that of ctx then.
func (m *Manager) SendMessage(ctx context.Context, handle SessionHandle, msg Message) error {
	turn, err := m.Send(handle, msg)
	if err != nil {
		return err
	}
	select {
	case <-turn.Delivered():
		return nil
	case <-turn.Done():
	case <-ctx.Done():
		return fmt.Errorf("the message still waits to be delivered: %w", context.Cause(ctx))
	}
	select {
	case <-turn.Delivered():
		return nil
	default:
		_, err := turn.Wait(ctx)
		return err
	}
}

// Stop ends a session for a reason, which is for people, and returns when nothing
// of its agent is left. One that has ended is no error.
func (m *Manager) Stop(ctx context.Context, handle SessionHandle, reason string) error {
	h, err := m.need(handle)
	if errors.Is(err, ErrNotRunning) {
		return nil
	}
	if err != nil {
		return err
	}
	h.stop(ctx, reason)
	return nil
}

// IsReady reports whether a message to the session would begin a turn at once.
func (m *Manager) IsReady(_ context.Context, handle SessionHandle) (bool, error) {
	h, err := m.need(handle)
	switch {
	case err == nil:
		return h.s.IsReady(), nil
	case errors.Is(err, ErrNotRunning):
		return false, nil
	case !errors.Is(err, ErrElsewhere):
		return false, err
	}
	store, err := m.store()
	if err != nil {
		return false, err
	}
	e, err := store.Get(handle.SessionID)
	return err == nil && e.State == StateReady, err
}

// DetectRunning reports whether the agent's process is alive: that one, not
// another one with its PID. Of a session that is not known it is not. The error
// says that this cannot be told from here.
func (m *Manager) DetectRunning(_ context.Context, handle SessionHandle) (bool, error) {
	store, err := m.store()
	if err != nil {
		return false, err
	}
	e, err := store.Get(handle.SessionID)
	if errors.Is(err, ErrUnknown) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return e.Running()
}

// ListSessions returns the sessions that filter selects, those started last
// first, also those that have ended. Files of the state folder that cannot be used
// are warned of.
func (m *Manager) ListSessions(_ context.Context, filter Filter) ([]SessionHandle, error) {
	store, err := m.store()
	if err != nil {
		return nil, err
	}
	entries, problems, err := store.List(filter)
	for _, p := range problems {
		m.warn(p.String())
	}
	handles := make([]SessionHandle, len(entries))
	for i, e := range entries {
		handles[i] = e.Handle()
	}
	return handles, err
}

// Close stops all sessions that the Manager holds, and waits until the hooks have
// been told, or until ctx ends.
func (m *Manager) Close(ctx context.Context, reason string) error {
	m.mu.Lock()
	all := make([]*held, 0, len(m.held))
	for _, h := range m.held {
		all = append(all, h)
	}
	m.mu.Unlock()
	var stopping sync.WaitGroup
	for _, h := range all {
		stopping.Go(func() { h.stop(ctx, reason) })
	}
	stopping.Wait()
	return m.Hooks.Flush(ctx)
}

// checkText refuses a message that the runtime cannot take.
func checkText(text string, rt registry.Runtime) error {
	limit := rt.PromptLimit
	switch {
	case text == "":
		return agent.Usagef("the message is empty")
	case !utf8.ValidString(text):
		return agent.Usagef("the message is not valid UTF-8")
	case limit.Bytes > 0 && len(text) > limit.Bytes:
		return agent.Usagef("%s cannot take a message of %d bytes, its limit is %d", rt.Name, len(text), limit.Bytes)
	case limit.Runes > 0 && len(text) > limit.Runes && utf8.RuneCountInString(text) > limit.Runes:
		return agent.Usagef("%s cannot take a message of %d characters, its limit is %d", rt.Name, utf8.RuneCountInString(text), limit.Runes)
	}
	return nil
}

// isDirectory returns why path is no directory.
func isDirectory(path string) error {
	info, err := os.Stat(path)
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		return pathErr.Err
	}
	if err == nil && !info.IsDir() {
		err = errors.New("not a directory")
	}
	return err
}

// now returns the time as it is read again from an entry.
func now() time.Time { return time.Now().UTC().Round(0) }
