package control

import (
	"context"
	"slices"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/runner"
	"github.com/busdk/bus-agent/session"
)

// ReportCrashes notifies the hooks of sessions whose process has died without doing so:
// OnError and, for a session that had started, SessionStop, once for each crash. The
// hooks are those of the session's settings and sinks; commands have the environment
// environ. The crash is in the entry of the session then. warn receives each problem as
// one line; none of them is an error.
func (c *Client) ReportCrashes(ctx context.Context, environ []string, sinks []SinkSpec, warn func(string)) {
	store, err := c.store()
	if err != nil {
		warn(err.Error())
		return
	}
	store.reportCrashes(ctx, environ, nil, sinks, warn)
}

// reportCrashes is [Client.ReportCrashes], which also notifies shared.
func (s *Store) reportCrashes(ctx context.Context, environ []string, shared *Hooks, sinks []SinkSpec, warn func(string)) {
	crashed, _, err := s.List(Filter{State: session.StateCrashed})
	if err != nil {
		return // the caller fails for the same reason
	}
	for _, e := range crashed {
		if !e.found || e.version != entryVersion {
			continue
		}
		e, first, err := s.markCrashed(ctx, e.SessionID)
		if err != nil {
			warn(err.Error())
		}
		if !first {
			continue
		}
		environ := runner.CleanPath(environ, e.Workdir, e.TrustWorkspace, e.AddDirs...)
		hooks, _ := openHooks(ctx, environ, slices.Concat(sinks, e.Hooks), nil, warn)
		emit := func(event Event, data map[string]string) {
			shared.Emit(e.payload(event, data))
			hooks.Emit(e.payload(event, data))
		}
		emit(OnError, map[string]string{"message": e.Reason, "kind": agent.KindOf(agent.ErrAgent)})
		if !e.Ready.IsZero() {
			emit(SessionStop, map[string]string{"message": e.Reason})
		}
		closing, cancel := context.WithTimeout(ctx, commandTimeout)
		hooks.Close(closing)
		cancel()
	}
}

// markCrashed writes into the entry of a session that it has crashed. It reports whether
// it did so, and no other process before.
func (s *Store) markCrashed(ctx context.Context, id string) (Entry, bool, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return Entry{}, false, err
	}
	defer unlock()
	e, err := s.read(id)
	if err != nil {
		return e, false, nil // it has been removed
	}
	if s.settle(&e); !e.found {
		return e, false, nil
	}
	return e, true, s.write(e)
}

// payload returns an event of the session.
func (e Entry) payload(event Event, data map[string]string) Payload {
	return Payload{
		Event: event, Runtime: e.Runtime, SessionID: e.SessionID, Workdir: e.Workdir,
		Rig: e.Rig, Role: e.Role, Bead: e.Bead, Actor: e.Actor, Timestamp: Timestamp{now()}, Data: data,
	}
}
