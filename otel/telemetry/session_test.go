package telemetry_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/otel/telemetry"
)

func say(t *testing.T, r agent.Recording, text string) {
	t.Helper()
	if err := r.Message(agent.UserMessage{Text: text}); err != nil {
		t.Fatal(err)
	}
}

func TestSessionHasTurns(t *testing.T) {
	t.Parallel()
	b := newRecorder(t, telemetry.WithContent(true))
	run := recordable()
	run.Session = true
	r := b.record(t.Context(), run)
	used := func(in, out int64, cost float64) agent.Event {
		return agent.Event{Kind: agent.KindUsage, Usage: &agent.Usage{Input: in, Output: out, CostUSD: &cost}}
	}
	b.send(r, agent.Event{Kind: agent.KindSessionStarted, SessionID: "s-1", Model: "m-2"}, agent.Event{Kind: agent.KindHeartbeat},
		by("task", call("setup", "prepare", "")), result("setup", ""))

	say(t, r, "first")
	b.send(r, agent.Event{Kind: agent.KindText, Text: "I will look."}, call("c1", "look", ""), result("c1", ""),
		agent.Event{Kind: agent.KindText, MessageID: "m", Text: "It is ", Delta: true})
	say(t, r, "added")
	b.send(r, agent.Event{Kind: agent.KindText, MessageID: "m", Text: "so.", Delta: true}, by("task", agent.Event{Kind: agent.KindText, Text: "aside"}),
		by("task", agent.Event{Kind: agent.KindResult}), used(10, 2, 0.5), agent.Event{Kind: agent.KindResult})

	say(t, r, "second")
	b.send(r, used(25, 5, 0.75), agent.Event{Kind: agent.KindResult, Failed: true, Failure: agent.FailureQuota, Text: "used up"})
	say(t, r, "third")
	b.send(r, agent.Event{Kind: agent.KindResult, Failed: true, Interrupted: true})

	say(t, r, "fourth")
	b.end(r, agent.Result{ExitCode: -1, SessionID: "s-1", RunID: "run-1"}, &agent.Error{Kind: agent.ErrAgent, Err: errors.New("it died")})

	session := b.span("session parrot")
	b.want(session, map[string]string{
		"gen_ai.operation.name": "", "gen_ai.agent.name": "parrot", "gen_ai.conversation.id": "s-1",
		"bus_agent.run.id": "run-1", "error.type": "agent", "bus_agent.project": "p",
	})
	if session.SpanKind != trace.SpanKindInternal {
		t.Errorf("the session is %v", session.SpanKind)
	}
	turns := b.spans("invoke_agent parrot")
	if len(turns) != 4 {
		t.Fatalf("%d turns, want 4", len(turns))
	}
	message := func(role, text, more string) string {
		return fmt.Sprintf(`[{"role":%q,"parts":[{"type":"text","content":%q}]%s}]`, role, text, more)
	}
	for i, want := range []map[string]string{
		{"gen_ai.input.messages": message("user", "first", ""), "gen_ai.output.messages": message("assistant", "It is so.", `,"finish_reason":"stop"`),
			"gen_ai.usage.input_tokens": "10", "gen_ai.usage.output_tokens": "2", "bus_agent.cost_usd": "0.5", "error.type": "", "gen_ai.response.model": "m-2", "gen_ai.conversation.id": "s-1"},
		{"gen_ai.usage.input_tokens": "15", "gen_ai.usage.output_tokens": "3", "bus_agent.cost_usd": "0.25", "error.type": "quota", "gen_ai.output.messages": ""},
		{"gen_ai.input.messages": message("user", "third", ""), "bus_agent.interrupted": "true", "error.type": "", "gen_ai.usage.input_tokens": ""},
		{"error.type": "agent"},
	} {
		b.want(turns[i], want)
		if turns[i].Parent.SpanID() != session.SpanContext.SpanID() || turns[i].EndTime.After(session.EndTime) {
			t.Errorf("the parent of turn %d is not the session", i)
		}
		if _, failed := want["error.type"]; failed && (want["error.type"] != "") != (turns[i].Status.Code == codes.Error) {
			t.Errorf("turn %d has the status %v", i, turns[i].Status)
		}
	}
	if events := turns[0].Events; len(events) != 1 || events[0].Name != "bus_agent.message" {
		t.Errorf("the first turn has the events %v, want the added message", events)
	}
	if b.span("execute_tool look").Parent.SpanID() != turns[0].SpanContext.SpanID() {
		t.Error("the parent of the call is not its turn")
	}
	if b.span("execute_tool prepare").Parent.SpanID() != session.SpanContext.SpanID() {
		t.Error("the parent of the call before any turn is not the session")
	}

	all := b.metrics()
	counts := map[string]uint64{}
	for name, v := range points(all["gen_ai.client.operation.duration"], "gen_ai.operation.name", "error.type") {
		counts[name] = v.count
	}
	if want := map[string]uint64{"invoke_agent": 2, "invoke_agent quota": 1, "invoke_agent agent": 1, "execute_tool": 2}; fmt.Sprint(counts) != fmt.Sprint(want) {
		t.Errorf("durations: %v, want %v: sessions are not counted", counts, want)
	}
	got := points(all["gen_ai.client.token.usage"], "gen_ai.token.type")
	if want := map[string]value{"input": {2, 25}, "output": {2, 5}}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("tokens: %v, want %v", got, want)
	}
}

// Its cumulative usage includes earlier runs.
func TestFirstTurnOfResumedSession(t *testing.T) {
	t.Parallel()
	b := newRecorder(t)
	run := recordable()
	run.Session, run.Request.Resume = true, "s-0"
	r := b.record(t.Context(), run)
	for _, total := range []int64{1000, 1010} {
		say(t, r, "continue")
		b.send(r, agent.Event{Kind: agent.KindUsage, Usage: &agent.Usage{Input: total, Cumulative: true}}, agent.Event{Kind: agent.KindResult})
	}
	b.end(r, agent.Result{}, nil)
	if got, want := points(b.metrics()["gen_ai.client.token.usage"], "gen_ai.token.type")["input"], (value{1, 10}); got != want {
		t.Errorf("tokens: %v, want %v", got, want)
	}
}

// Another goroutine records messages, so a message may arrive after events of its turn.
// One after a turn begins the next, also if that turn had no message.
func TestLateMessage(t *testing.T) {
	t.Parallel()
	b := newRecorder(t, telemetry.WithContent(true))
	run := recordable()
	run.Session = true
	r := b.record(t.Context(), run)
	over, failed := agent.Event{Kind: agent.KindResult}, agent.Event{Kind: agent.KindResult, Failed: true}
	words := agent.Event{Kind: agent.KindText, Text: "answer"}

	b.send(r, words)
	say(t, r, "during")
	b.send(r, over)

	b.send(r, failed, over) // no messages
	say(t, r, "new")
	b.send(r, words, over)
	say(t, r, "last")
	b.send(r, words, over)
	b.end(r, agent.Result{}, nil)

	var got []string
	for _, s := range b.spans("invoke_agent parrot") {
		text := attributesOf(s.Attributes)["gen_ai.input.messages"]
		for _, word := range []string{"during", "new", "last"} {
			if strings.Contains(text, word) {
				text = word
			}
		}
		got = append(got, text)
	}
	if want := []string{"during", "", "new", "last"}; !slices.Equal(got, want) {
		t.Errorf("the turns have the messages %q, want %q", got, want)
	}
}

// A turn has the same answer as in the result of a session: the last text after the last
// action, or else the text of the result.
func TestAnswerOfATurn(t *testing.T) {
	t.Parallel()
	b := newRecorder(t, telemetry.WithContent(true))
	run := recordable()
	run.Session = true
	r := b.record(t.Context(), run)
	text := func(id, s string) agent.Event { return agent.Event{Kind: agent.KindText, MessageID: id, Text: s} }
	over := agent.Event{Kind: agent.KindResult, Text: "from the result"}

	b.send(r, text("1", "begun"), text("1", " and ended"), over)
	b.send(r, text("2", "before"), agent.Event{Kind: agent.KindFileChange}, over)
	b.end(r, agent.Result{}, nil)

	var got []string
	for _, s := range b.spans("invoke_agent parrot") {
		got = append(got, attributesOf(s.Attributes)["gen_ai.output.messages"])
	}
	for i, want := range []string{"begun and ended", "from the result"} {
		if len(got) != 2 || !strings.Contains(got[i], want) {
			t.Fatalf("the answers are %q, want %q in span %d", got, want, i)
		}
	}
}

func TestConcurrentMessagesAndEvents(t *testing.T) {
	t.Parallel()
	b := newRecorder(t, telemetry.WithContent(true))
	run := recordable()
	run.Session = true
	r := b.record(t.Context(), run)
	var both sync.WaitGroup
	both.Go(func() {
		for i := range 200 {
			id := fmt.Sprint(i)
			b.send(r, agent.Event{Kind: agent.KindText, Text: "words"}, call(id, "look", "{}"), result(id, "x"), agent.Event{Kind: agent.KindResult})
		}
	})
	both.Go(func() {
		for range 200 {
			say(t, r, "hello")
		}
	})
	both.Wait()
	b.end(r, agent.Result{}, nil)
	if n := len(b.spans("execute_tool look")); n != 200 {
		t.Errorf("%d calls, want 200", n)
	}
}

func TestSessionIsStoppedDuringATurn(t *testing.T) {
	t.Parallel()
	b := newRecorder(t)
	run := recordable()
	run.Session = true
	r := b.record(t.Context(), run)
	say(t, r, "begin")
	b.end(r, agent.Result{}, nil)
	b.want(b.span("invoke_agent parrot"), map[string]string{"bus_agent.interrupted": "true", "error.type": ""})
}
