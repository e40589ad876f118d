package streamjson_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/engine"
)

// livesAgent is an agent that reports the states of its messages.
type livesAgent struct {
	out  *io.PipeWriter
	ids  chan string // of the messages that it gets
	done chan struct{}
}

func (a *livesAgent) Stop()                 { _ = a.out.Close() }
func (a *livesAgent) Done() <-chan struct{} { return a.done }

func (a *livesAgent) say(line string) {
	if _, err := io.WriteString(a.out, line+"\n"); err != nil {
		panic(err) // the engine reads to the end
	}
}

// reports sends the state of a message.
func (a *livesAgent) reports(id, state string) {
	a.say(fmt.Sprintf(`{"type":"command_lifecycle","command_uuid":%q,"state":%q}`, id, state))
}

func (a *livesAgent) listen(in io.Reader) {
	defer close(a.done)
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		var line struct {
			Type      string `json:"type"`
			RequestID string `json:"request_id"`
			UUID      string `json:"uuid"`
		}
		if json.Unmarshal(lines.Bytes(), &line) != nil {
			continue
		}
		if line.Type == "control_request" {
			a.say(fmt.Sprintf(`{"type":"control_response","response":{"subtype":"success","request_id":%q}}`, line.RequestID))
		} else {
			a.ids <- line.UUID
		}
	}
	a.Stop()
}

// TestTurnsOfTheAgentItself, as those that it begins when a background task has
// ended, are not taken for those of messages that wait meanwhile.
func TestTurnsOfTheAgentItself(t *testing.T) {
	t.Parallel()
	for name, wait := range map[string]func(a *livesAgent, id string){
		"a message is queued":              func(a *livesAgent, id string) { a.reports(id, "queued") },
		"a message is not yet seen":        func(*livesAgent, string) {},
		"another one was begun by mistake": func(a *livesAgent, _ string) { a.reports("other", "started") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				in, input := io.Pipe()
				output, out := io.Pipe()
				a := &livesAgent{out: out, ids: make(chan string, 9), done: make(chan struct{})}
				go a.listen(in)
				s, err := session.Open(t.Context(), "test", newEngine(), a, engine.Transport{Input: input, Output: output}, engine.Start{}, session.Options{})
				if err != nil {
					t.Fatal(err)
				}
				defer s.Stop(context.Background(), "")

				first := s.Send(session.Message{Text: "first"})
				id := <-a.ids
				a.reports(id, "queued")
				a.reports(id, "started")
				a.say(one)
				a.say(result)
				a.reports(id, "completed")
				if r, err := first.Wait(t.Context()); err != nil || r.Text != "one" {
					t.Errorf("%q, %v", r.Text, err)
				}

				a.say(`{"type":"result","subtype":"success","is_error":false,"result":"unexpected"}`)
				next := s.Send(session.Message{Text: "next"})
				id = <-a.ids
				wait(a, id)
				a.say(`{"type":"result","subtype":"success","is_error":false,"result":"nor for this"}`)
				synctest.Wait()
				select {
				case <-next.Done():
					t.Error("the message has got another turn's result")
				default:
				}
				a.reports(id, "started")
				a.say(two)
				a.say(result)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if r, err := next.Wait(ctx); err != nil || r.Text != "two" {
					t.Errorf("%q, %v", r.Text, err)
				}
			})
		})
	}
}
