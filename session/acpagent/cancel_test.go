package acpagent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// cancel returns a line that cancels the turn of a session.
func cancel(session string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":%q}}`+"\n", session)
}

// setting returns a request that sets an option as a line.
func setting(id int, session, option, value string) string {
	return line(id, "session/set_config_option", fmt.Sprintf(`{"sessionId":%q,"configId":%q,"value":%q}`, session, option, value))
}

// limited ends the connection of a client that does not get what it waits for.
func limited(t *testing.T, r *raw) {
	limit := time.AfterFunc(20*time.Second, func() { r.closer.Close() })
	t.Cleanup(func() { limit.Stop() })
}

// A turn that is cancelled ends although the agent does not answer an earlier call.
func TestCancelWhileACallHangs(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		before, first, second string
	}{
		"steer":           {prompt(7, "ID", "wait"), prompt(8, "ID", "more"), ""},
		"steer at once":   {"", prompt(7, "ID", "wait"), prompt(8, "ID", "more")},
		"model":           {prompt(7, "ID", "wait"), setting(8, "ID", "model", "small"), ""},
		"access":          {prompt(7, "ID", "wait"), setting(8, "ID", "mode", "read"), ""},
		"model, no turn":  {"", setting(8, "ID", "model", "small"), prompt(7, "ID", "wait")},
		"access, no turn": {"", setting(8, "ID", "mode", "read"), prompt(7, "ID", "wait")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, "stub")
			b.server.SetTurnGrace(50 * time.Millisecond)
			b.before = func(ctx context.Context, _ string) error {
				<-ctx.Done()
				return context.Cause(ctx)
			}
			r := b.connectRaw(t.Context())
			limited(t, r)
			id := r.opened(b.workdir)
			send := func(lines string) { r.send(strings.ReplaceAll(lines, `"ID"`, `"`+id+`"`)) }
			if test.before != "" {
				send(test.before)
				r.until(func(m message) bool { return strings.Contains(string(m.Params), "waiting") })
			}
			send(test.first + test.second + cancel("ID"))
			for range 2 {
				m := r.until(func(m message) bool { return m.ID != nil })
				steered := strings.HasPrefix(name, "steer")
				switch {
				case string(m.ID) == "8" && !steered && m.Error == nil:
					t.Errorf("the setting: %s", m.Result)
				case (string(m.ID) == "7" || steered) && !strings.Contains(string(m.Result), `"cancelled"`):
					t.Errorf("prompt %s: %s, %+v", m.ID, m.Result, m.Error)
				}
			}
		})
	}
}

// A full queue takes a cancellation.
func TestCancelWithAFullQueue(t *testing.T) {
	t.Parallel()
	b := newBench(t, "stub")
	b.server.SetTurnGrace(time.Minute)
	called, release := make(chan struct{}), make(chan struct{})
	b.before = func(context.Context, string) error {
		close(called)
		<-release
		return errors.New("refused")
	}
	r := b.connectRaw(t.Context())
	limited(t, r)
	answered := func(id int) message {
		return r.until(func(m message) bool { return string(m.ID) == fmt.Sprint(id) })
	}
	id := r.opened(b.workdir)
	r.send(prompt(7, id, "wait"))
	r.until(func(m message) bool { return strings.Contains(string(m.Params), "waiting") })
	r.send(setting(8, id, "model", "small"))
	<-called
	for i := range 100 {
		r.send(setting(100+i, id, "none", "x"))
	}
	r.send(setting(200, id, "none", "x"))
	if m := answered(200); m.Error == nil || !strings.Contains(m.Error.Message, "a turn is running") {
		t.Errorf("the queue is not full: %s, %+v", m.Result, m.Error)
	}
	r.send(cancel(id) + cancel(id) + line(201, "session/list", "{}"))
	answered(201)
	close(release)
	if m := answered(7); !strings.Contains(string(m.Result), `"cancelled"`) {
		t.Errorf("the turn ends with %s, %+v", m.Result, m.Error)
	}
	r.send(prompt(9, id, "hello"))
	r.until(func(m message) bool {
		if strings.Contains(string(m.Params), "resume=") {
			t.Errorf("the session was restarted: %s", m.Params)
		}
		return string(m.ID) == "9"
	})
}
