package cli

import (
	"context"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/sessions"
)

// heldSession is a session that this process holds, with the hooks that are told
// about it.
type heldSession struct {
	session *session.Session
	manager *sessions.Manager
	handle  sessions.SessionHandle
}

// hold starts a session, or goes on with one. Its settings are those of opts where
// opts has any, as its callbacks.
func (inv *invocation) hold(ctx context.Context, store *sessions.Store, id string, s *sessionSettings, opts sessions.StartOptions, warn func(string)) (*heldSession, error) {
	hooks, err := inv.hooks(ctx, s, warn)
	if err != nil {
		return nil, err
	}
	r := inv.sessionRunner(s.Workdir, warn)
	r.RequireConfigured = s.RequireConfigured
	r.Recorder = agent.Recorders(s.Record.recorder(), r.Recorder)
	h := &heldSession{manager: &sessions.Manager{Runner: r, Store: store, Hooks: hooks, Warn: warn}}
	s.complete(&opts, id)
	err = h.open(ctx, store, id, s, opts)
	if err == nil {
		h.session, err = h.manager.Session(h.handle)
	}
	if err != nil {
		h.tellHooks(ctx)
		return nil, err
	}
	return h, nil
}

// send says something to the agent.
func (h *heldSession) send(text string) (*session.Turn, error) {
	return h.manager.Send(h.handle, sessions.Message{Text: text})
}

// stop ends the session and returns when nothing of it is left.
func (h *heldSession) stop(ctx context.Context, reason string) {
	if err := h.manager.Stop(ctx, h.handle, reason); err != nil {
		h.session.Stop(ctx, reason)
	}
	h.tellHooks(ctx)
}

func (h *heldSession) open(ctx context.Context, store *sessions.Store, id string, s *sessionSettings, opts sessions.StartOptions) (err error) {
	switch {
	case s.Resume == "":
		h.handle, err = h.manager.Start(ctx, opts)
		return err
	case id == "":
		id = s.Resume
	default:
		if err := remember(ctx, store, id, s); err != nil {
			return err
		}
	}
	h.handle, err = h.manager.ResumeWith(ctx, sessions.SessionHandle{SessionID: id, Runtime: s.Runtime, WorkDir: s.Workdir}, opts)
	return err
}

// remember makes the store know which of the runtime's sessions is gone on with:
// it may have forgotten, or know another one by this ID, which is over.
func remember(ctx context.Context, store *sessions.Store, id string, s *sessionSettings) error {
	return store.Update(ctx, id, func(e *sessions.Entry) error {
		if e.SessionID == "" || e.NativeID != s.Resume && e.State.Ended() {
			*e = sessions.Entry{NativeID: s.Resume, Runtime: s.Runtime, WorkDir: s.Workdir, State: sessions.StateStopped}
		}
		return nil
	})
}

// complete fills in what the settings say.
func (s *sessionSettings) complete(opts *sessions.StartOptions, id string) {
	opts.Request = s.request()
	opts.RuntimeName, opts.WorkDir, opts.Env = s.Runtime, s.Workdir, map[string]string{}
	for _, entry := range s.Env {
		name, value, _ := strings.Cut(entry, "=")
		opts.Env[name] = value
	}
	opts.Identity.SessionID, opts.Bead = id, s.Bead
	opts.Mode = s.Mode
	opts.Session.ApprovalTimeout = s.ApprovalTimeout
}
