//go:build acceptance

package acceptance

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/modeltest"
	"github.com/busdk/bus-agent/session"
)

// An interrupt right after a message ends the turn of that message and not the next one,
// whether or not the message was delivered.
func TestSessionIsInterruptedAtOnce(t *testing.T) {
	t.Parallel()
	script := func(r *modeltest.Request) modeltest.Reply {
		all := r.Messages()
		if len(all) == 0 {
			return answer("again")
		}
		texts := all[len(all)-1].Texts // Claude Code appends to a message without an answer
		if n := len(texts); n > 0 && strings.Contains(texts[n-1], "say nothing") {
			return modeltest.Reply{modeltest.Silence{}}
		}
		return answer("again")
	}
	for name, setup := range map[string]setupFunc{"codex": newCodex, "claude": newClaude, "gemini": newGemini} {
		for moment, wait := range map[string]func(*session.Turn){
			"0ms":       func(*session.Turn) {},
			"delivered": func(turn *session.Turn) { <-turn.Delivered() },
			"5ms":       func(*session.Turn) { time.Sleep(5 * time.Millisecond) },
			"50ms":      func(*session.Turn) { time.Sleep(50 * time.Millisecond) },
		} {
			t.Run(name+"/"+moment, func(t *testing.T) {
				t.Parallel()
				w := setup(t, script, nil)
				d := w.startSession(session.Options{}, withAccess(agent.AccessFull))
				ctx, cancel := context.WithTimeout(t.Context(), w.limit)
				defer cancel()
				for range 3 {
					turn := d.session.Send(session.Message{Text: "say nothing"})
					wait(turn)
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
