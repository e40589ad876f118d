//go:build acceptance

package acceptance

import (
	"context"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/testwait"
	"github.com/busdk/bus-agent/modeltest"
	"github.com/busdk/bus-agent/session"
)

// An interrupt right after a message ends the turn of that message and not the next one,
// whether or not the message was delivered.
func TestSessionIsInterruptedAtOnce(t *testing.T) {
	t.Parallel()
	script := func(r *modeltest.Request) modeltest.Reply {
		if strings.Contains(lastPrompt(r), "say nothing") {
			return modeltest.Reply{modeltest.Silence{}}
		}
		return answer("again")
	}
	for name, setup := range map[string]setupFunc{"codex": newCodex, "claude": newClaude, "gemini": newGemini} {
		for _, moment := range []string{"sent", "delivered", "asked"} {
			t.Run(name+"/"+moment, func(t *testing.T) {
				t.Parallel()
				w := setup(t, script, nil)
				d := w.startSession(session.Options{}, withAccess(agent.AccessFull))
				ctx, cancel := context.WithTimeout(t.Context(), w.limit)
				defer cancel()
				for round := range 3 {
					turn := d.session.Send(session.Message{Text: "say nothing"})
					switch moment {
					case "delivered":
						testwait.Receive(t, moment, turn.Delivered())
					case "asked":
						if _, err := w.model.Await(ctx, 2*round+1); err != nil {
							t.Fatal(err)
						}
					}
					if err := d.session.Interrupt(ctx); err != nil {
						t.Error(err)
					}
					_, err := d.wait(turn)
					wantErrorIs(t, err, agent.ErrCanceled)
					d.sendWant("once more", "again")
				}
				d.stop()
			})
		}
	}
}
