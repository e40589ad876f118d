package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"slices"
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
	// available if package session/tmux is imported or Runner.OpenTerminal is
	// set.
	Runner *runner.Runner

	// Store is where the sessions are kept. Nil means the user's state folder.
	Store *Store

	// Hooks is notified of the events of all sessions; it may be nil. Sinks are
	// opened for each session, in addition to the hooks of its settings; a sink that
	// cannot be opened causes a warning.
	Hooks *Hooks
	Sinks []SinkSpec

	// Serve lets other processes of this user reach the sessions, by a [Client]: each
	// gets a log and a socket in the state folder.
	Serve bool

	// Warn receives each warning as one line, from any goroutine. Nil means that
	// of the runner.
	Warn func(string)

	mu   sync.Mutex
	held map[string]*held // by session ID

	ends    bool  // the process ends with its session
	logSize int64 // set by tests, like peer
	peer    func(net.Conn) bool
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
	return userStore(m.environ())
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
// is the first of them; its outcome is reported to the hooks.
func (m *Manager) Start(ctx context.Context, opts StartOptions) (SessionHandle, error) {
	return m.StartWith(ctx, opts, session.Options{})
}

// StartWith is Start with the callbacks of options and its CloseGrace. The other fields
// must not be set.
func (m *Manager) StartWith(ctx context.Context, opts StartOptions, options session.Options) (SessionHandle, error) {
	h, err := m.start(ctx, opts, options, "")
	if err != nil {
		return SessionHandle{}, err
	}
	return h.current().Handle(), nil
}

// Check returns the usage error of Start that is in opts and the settings alone. It starts
// and writes nothing. Warnings of the runner reach Runner.Warn, those of the agent's request
// only with an error.
func (m *Manager) Check(ctx context.Context, opts StartOptions) error {
	p, err := m.prepare(ctx, opts, session.Options{})
	if err != nil {
		return err
	}
	return p.refused(ctx)
}

// CheckResume is Check for a session that is resumed.
func (m *Manager) CheckResume(ctx context.Context, e Entry, opts ResumeOptions) error {
	return m.Check(ctx, e.options(opts))
}

// start starts a session. claimed is the owner of an entry that was made for it, ""
// for none.
func (m *Manager) start(ctx context.Context, opts StartOptions, options session.Options, claimed string) (*held, error) {
	p, err := m.prepare(ctx, opts, options)
	if err != nil {
		return nil, err
	}
	if claimed == "" {
		if err := p.refused(ctx); err != nil {
			return nil, err
		}
	}
	store, err := m.store()
	if err != nil {
		return nil, err
	}
	if err := p.claim(ctx, store, claimed); err != nil {
		return nil, err
	}
	h, err := m.open(ctx, store, p, "")
	if err != nil && claimed == "" {
		if err := store.discard(context.WithoutCancel(ctx), p.entry); err != nil {
			m.warn(fmt.Sprintf("the entry of session %s is left behind: %v", p.entry.SessionID, err))
		}
	}
	return h, err
}

// Resume resumes a session that has ended, as it was started, except for
// its environment: see [Manager.ResumeWith].
func (m *Manager) Resume(ctx context.Context, handle SessionHandle) error {
	_, err := m.ResumeWith(ctx, handle, ResumeOptions{}, session.Options{})
	return err
}

// ResumeWith resumes a session that has ended, with its name, identity and settings.
// options is that of StartWith. A session without an entry is taken as one that the
// runtime created itself; the handle or opts must then name its runtime and workdir. If
// the session is running, the error is ErrRunning; if another one with its name is, ErrNameTaken.
func (m *Manager) ResumeWith(ctx context.Context, handle SessionHandle, opts ResumeOptions, options session.Options) (SessionHandle, error) {
	h, err := m.resume(ctx, handle, opts, options)
	if err != nil {
		return SessionHandle{}, err
	}
	return h.current().Handle(), nil
}

func (m *Manager) resume(ctx context.Context, handle SessionHandle, opts ResumeOptions, options session.Options) (*held, error) {
	store, err := m.store()
	if err != nil {
		return nil, err
	}
	m.reportCrashes(ctx, store)
	before, err := store.Get(handle.SessionID)
	switch {
	case errors.Is(err, ErrUnknown):
		before = Entry{SessionID: handle.SessionID, NativeID: handle.SessionID, Settings: Settings{Runtime: handle.Runtime, Workdir: handle.Workdir}}
	case err != nil:
		return nil, err
	case !before.resumable():
		return nil, notResumable(before)
	}
	p, err := m.prepare(ctx, before.options(opts), options)
	if err != nil {
		return nil, err
	}
	if id, _, _ := strings.Cut(before.Runtime, ":"); id != "" && id != p.runtime.ID {
		return nil, agent.Usagef("session %s is of %s; %s cannot resume it", before.SessionID, before.Runtime, p.entry.Runtime)
	}
	if err := p.refused(ctx); err != nil {
		return nil, err
	}
	p.entry.NativeID, p.entry.Created, p.entry.RunID, p.entry.Fresh = before.NativeID, before.Created, before.RunID, before.Fresh
	p.request.Labels.Previous = cmp.Or(p.request.Labels.Previous, before.RunID)
	if m.Serve && before.Folder != "" {
		p.entry.Folder = before.Folder
	}
	if err := store.update(ctx, p.entry.SessionID, func(e *Entry) error {
		if err := e.inUse(); err != nil {
			return err
		}
		if p.entry.Name != "" {
			list, _, err := store.List(Filter{})
			if err != nil {
				return err
			}
			if err := checkResumable(list, p.entry); err != nil {
				return err
			}
		}
		before, *e = *e, p.entry
		return nil
	}); err != nil {
		return nil, err
	}
	h, err := m.open(ctx, store, p, p.entry.NativeID)
	if err != nil {
		m.giveBack(context.WithoutCancel(ctx), store, before, p.entry)
	}
	return h, err
}

// giveBack restores the entry of a session that could not be resumed.
func (m *Manager) giveBack(ctx context.Context, store *Store, before, tried Entry) {
	var err error
	if before.SessionID == "" { // it had none
		err = store.discard(ctx, tried)
	} else {
		err = store.save(ctx, before)
	}
	if err != nil {
		m.warn(fmt.Sprintf("the entry of session %s is not restored: %v", tried.SessionID, err))
	}
}

// options returns the options of a start that resumes the session.
func (e Entry) options(opts ResumeOptions) StartOptions {
	return StartOptions{
		Settings: opts.Settings.over(e.Settings), Name: e.Name,
		Identity: Identity{SessionID: e.SessionID, Role: e.Role, Rig: e.Rig, Polecat: e.Polecat, Actor: e.Actor},
		Env:      opts.Env, UnsavedMCPServers: opts.UnsavedMCPServers, InitialPrompt: opts.Prompt, InitialAttachments: opts.Attachments,
	}
}

// open starts the agent of a session whose entry shows that it starts.
func (m *Manager) open(ctx context.Context, store *Store, p *starting, resume string) (h *held, err error) {
	h = newHeld(m, store, p)
	if h.hooks, err = p.openHooks(ctx, h.warn); err != nil {
		return nil, err
	}
	if h.served, err = m.serve(store, p.entry); err != nil {
		h.closeHooks()
		return nil, err
	}
	for _, line := range p.warnings {
		h.served.record(LogRecord{Warning: line})
	}
	p.request.Resume, p.options.Created = resume, p.entry.Created
	s, err := p.runner.StartSession(ctx, p.request, h.listen(p.options))
	if err == nil {
		if err = h.opened(ctx, s, resume != ""); err != nil {
			s.Stop(context.WithoutCancel(ctx), "it cannot be reached, or its entry cannot be written")
			close(h.over)
		}
	}
	if err != nil {
		h.emit(OnError, errorData(err))
		h.closeHooks()
		h.served.fail(err)
		return nil, err
	}
	m.mu.Lock()
	if m.held == nil {
		m.held = make(map[string]*held)
	}
	m.held[p.entry.SessionID] = h
	m.mu.Unlock()
	go h.record()
	if p.first.Text != "" {
		_, _ = h.send(p.first) // it was checked; the hooks are notified if the session has just ended
	}
	return h, nil
}

// find returns the session of a handle if this Manager holds it.
func (m *Manager) find(handle SessionHandle) *held {
	m.mu.Lock()
	h, all := m.held[handle.SessionID], slices.Collect(maps.Values(m.held))
	m.mu.Unlock()
	if h != nil {
		return h
	}
	for _, h := range all { // whose callbacks may call the Manager
		if h.s.Info().SessionID == handle.SessionID && handle.SessionID != "" {
			return h
		}
	}
	return nil
}

// need returns the session of a handle, or why this Manager does not hold it.
func (m *Manager) need(handle SessionHandle) (*held, error) {
	h, e, err := m.look(handle)
	switch {
	case h != nil || err != nil:
		return h, err
	case e.State == session.StateStopped:
		return nil, fmt.Errorf("%w: %s has stopped", ErrNotRunning, e.SessionID)
	case e.State == session.StateCrashed:
		return nil, fmt.Errorf("%w: %s has crashed: %s", ErrNotRunning, e.SessionID, e.Reason)
	}
	return nil, fmt.Errorf("%w: %s", ErrElsewhere, e.SessionID)
}

// look returns the session of a handle if this Manager holds it, and its entry if
// not.
func (m *Manager) look(handle SessionHandle) (*held, Entry, error) {
	if h := m.find(handle); h != nil {
		return h, Entry{}, nil
	}
	store, err := m.store()
	if err != nil {
		return nil, Entry{}, err
	}
	e, err := store.Get(handle.SessionID)
	return nil, e, err
}

// reportCrashes notifies the hooks of crashes that no process has reported.
func (m *Manager) reportCrashes(ctx context.Context, store *Store) {
	store.reportCrashes(ctx, m.environ(), m.Hooks, m.Sinks, m.warn)
}

// client reaches the sessions that other processes hold.
func (m *Manager) client() *Client {
	store, err := m.store()
	if err != nil {
		return nil // look has failed before
	}
	return &Client{Store: store}
}

// Session returns the session with the given handle, which this Manager must hold,
// for calls that the interface does not offer, such as Interrupt and Answer. A
// [Client] offers those for served sessions.
func (m *Manager) Session(handle SessionHandle) (*session.Session, error) {
	h, err := m.need(handle)
	if err != nil {
		return nil, err
	}
	return h.s, nil
}

// Send queues a message for a separate turn and returns the turn. This Manager
// must hold the session.
func (m *Manager) Send(handle SessionHandle, msg Message) (*session.Turn, error) {
	h, err := m.need(handle)
	if err != nil {
		return nil, err
	}
	return h.send(msg)
}

// Steer adds a message to the running turn, or makes it the next turn, and returns
// the turn, like [session.Session.Steer]. This Manager must hold the session.
func (m *Manager) Steer(ctx context.Context, handle SessionHandle, msg Message) (*session.Turn, error) {
	h, err := m.need(handle)
	if err != nil {
		return nil, err
	}
	turn, _, err := h.steer(ctx, msg)
	return turn, err
}

// SendMessage queues a message and returns when the agent has received it, or
// with the reason why it never will. If ctx ends first, SendMessage returns the
// error of ctx, and the message stays queued until its Timeout.
func (m *Manager) SendMessage(ctx context.Context, handle SessionHandle, msg Message) error {
	h, e, err := m.look(handle)
	if err != nil {
		return err
	}
	if h == nil && e.Served() {
		_, err := m.client().call(ctx, e, sendCall(msg, untilDelivered), Watcher{})
		return err
	}
	turn, err := m.Send(handle, msg)
	if err != nil {
		return err
	}
	return delivered(ctx, turn)
}

// delivered waits until the agent has got the message of a turn.
func delivered(ctx context.Context, turn *session.Turn) error {
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

// Stop ends a session and returns when all processes of its agent have ended.
// The reason is text for users. Stopping a session that has ended is not an
// error.
func (m *Manager) Stop(ctx context.Context, handle SessionHandle, reason string) error {
	h, e, err := m.look(handle)
	if err == nil && h == nil && e.Served() {
		return m.client().Stop(ctx, e, reason)
	}
	if h, err = m.need(handle); errors.Is(err, ErrNotRunning) {
		return nil
	}
	if err != nil {
		return err
	}
	h.stop(ctx, reason)
	return nil
}

// IsReady reports whether a message to the session would begin a turn at once.
func (m *Manager) IsReady(ctx context.Context, handle SessionHandle) (bool, error) {
	h, e, err := m.look(handle)
	switch {
	case err != nil:
		return false, err
	case h != nil:
		return h.s.State() == session.StateReady, nil
	case e.Served():
		st, err := m.client().Show(ctx, e)
		return st.State == session.StateReady, err
	}
	return e.State == session.StateReady, nil
}

// DetectRunning reports whether the agent's process is alive; another process
// with the same PID does not count. For an unknown session it returns false. It
// returns an error if the state of the process is unknown here.
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

// ListSessions returns the sessions that filter selects, including ended ones,
// most recently started first. It warns about files of the state folder that
// cannot be used.
func (m *Manager) ListSessions(ctx context.Context, filter Filter) ([]SessionHandle, error) {
	store, err := m.store()
	if err != nil {
		return nil, err
	}
	m.reportCrashes(ctx, store)
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
// been notified or ctx ends.
func (m *Manager) Close(ctx context.Context, reason string) error {
	m.mu.Lock()
	all := slices.Collect(maps.Values(m.held))
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

// isDirectory returns why path is not a directory.
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
