package acpagent_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
)

// A session that is closed while it restarts ends: what waits for the restart is not sent
// to the agent.
func TestCloseDuringRestart(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		before string // the prompt before the restart
		method string
		params string
		want   string // a part of the answer
	}{
		"prompt":  {"die", "session/prompt", `,"prompt":[{"type":"text","text":"wait"}]`, `"stopReason":"cancelled"`},
		"setting": {"say", "session/set_config_option", `,"configId":"effort","value":"high"`, "-32002 Message:the client has closed the session"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, "stub")
			resuming, resume := make(chan struct{}, 10), make(chan struct{})
			b.before = func(ctx context.Context, _ string) error {
				resuming <- struct{}{}
				select {
				case <-resume:
					return nil
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			}
			r := b.connectRaw(t.Context())
			id := r.opened(b.workdir)
			r.send(prompt(6, id, test.before))
			r.until(func(m message) bool { return string(m.ID) == "6" })

			r.send(line(7, test.method, fmt.Sprintf(`{"sessionId":%q%s}`, id, test.params)))
			<-resuming
			r.send(prompt(8, id, "wait")) // which waits for the restart
			r.send(line(9, "session/close", fmt.Sprintf(`{"sessionId":%q}`, id)))
			if m := r.until(func(m message) bool { return string(m.ID) == "9" }); string(m.Result) != "{}" {
				t.Errorf("session/close: %s, %+v", m.Result, m.Error)
			}
			close(resume)
			for range 2 {
				m := r.until(func(m message) bool { return m.ID != nil || strings.Contains(string(m.Params), "waiting") })
				want := `"stopReason":"cancelled"`
				switch {
				case m.Method != "":
					t.Fatalf("the agent gets a prompt: %s", m.Params)
				case string(m.ID) == "7":
					want = test.want
				}
				if got := fmt.Sprintf("%s %+v", m.Result, m.Error); !strings.Contains(got, want) {
					t.Errorf("request %s: %s, want %s", m.ID, got, want)
				}
			}
			if e, err := b.store.Get(id); err != nil || !e.State.Ended() {
				t.Errorf("the session is %s, %v", e.State, err)
			} else if running, err := e.Running(); running || err != nil {
				t.Errorf("its agent is running: %v, %v", running, err)
			}
			if len(resuming) > 0 {
				t.Error("the session starts again")
			}
		})
	}
}
