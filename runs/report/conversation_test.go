package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/runs"
)

// entriesOf are events a second apart.
func entriesOf(events ...agent.Event) iter.Seq2[runs.Event, error] {
	return func(yield func(runs.Event, error) bool) {
		for i, e := range events {
			if !yield(runs.Event{Time: madeAt.Add(time.Duration(i) * time.Second), Event: e}, nil) {
				return
			}
		}
	}
}

// outline is a line for each item.
func outline(c *conversation) string {
	var b strings.Builder
	for _, i := range c.Items {
		fmt.Fprintf(&b, "%d %s %s", i.At/1000, i.Kind, i.Text)
		if i.Tool != "" {
			fmt.Fprintf(&b, "%s(%s) = %q", i.Tool, i.Input, i.Output)
		}
		if i.Until != nil {
			fmt.Fprintf(&b, " until %d", *i.Until/1000)
		}
		if i.Subagent != "" {
			b.WriteString(" by " + i.Subagent)
		}
		if i.Failed {
			b.WriteString(" failed")
		}
		b.WriteString("\n")
	}
	return b.String()
}

func call(id, name, input string) agent.Event {
	return agent.Event{Kind: agent.KindToolCall, Tool: &agent.Tool{ID: id, Name: name, Input: json.RawMessage(input)}}
}

func answer(id, output string) agent.Event {
	return agent.Event{Kind: agent.KindToolResult, Tool: &agent.Tool{ID: id, Output: agent.Plain(output)}}
}

func TestConversation(t *testing.T) {
	t.Parallel()
	text := func(id, text string, delta bool) agent.Event {
		return agent.Event{Kind: agent.KindText, MessageID: id, Text: text, Delta: delta}
	}
	inner := text("", "inside", false)
	inner.Subagent = "2"
	failed := answer("1", "no such file")
	failed.Failed = true
	c := readConversation(entriesOf(
		agent.Event{Kind: runs.KindMessage, Text: "do it"},
		agent.Event{Kind: agent.KindSessionStarted, SessionID: "s", Model: "m"},
		agent.Event{Kind: agent.KindSessionStarted, SessionID: "s", Model: "m"},
		text("a", "one ", true), text("a", "two", true), text("b", "three", true),
		agent.Event{Kind: agent.KindHeartbeat}, agent.Event{Kind: agent.KindUsage},
		call("1", "read", `{"path":"x"}`), call("2", "task", `{}`), call("2", "task", `{}`), inner, failed, answer("2", "done"),
		call("3", "shell", `{"command":"sleep"}`),
		answer("unknown", "late"),
		text("", "the end", false),
		agent.Event{Kind: agent.KindResult, Text: "the end"},
		agent.Event{Kind: agent.KindResult, Failed: true, Text: "the end"},
		agent.Event{Kind: "later kind", Text: "x"},
	), madeAt, 1<<20)
	want := `0 message do it
1 session_started s, model m
3 text one two
5 text three
8 tool_call read({"path":"x"}) = "no such file" until 12 failed
9 tool_call task({}) = "done" until 13
11 text inside by task
14 tool_call shell({"command":"sleep"}) = ""
15 tool_result () = "late" until 15
16 text the end
17 result 
18 result the end failed
`
	want = strings.Replace(want, "15 tool_result () = \"late\" until 15", "15 tool_result  until 15", 1)
	if got := outline(c); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	tools := toolsOf(c)
	if tools["read"].Failed != 1 || tools["read"].Total() != "4.0 s" || tools["shell"].Calls != 1 || tools["shell"].Total() != "" {
		t.Errorf("%+v", tools)
	}
}

// A call that comes again with its command is one item.
func TestCallThatIsReportedTwiceIsOneItem(t *testing.T) {
	t.Parallel()
	again := call("t", "execute", `{"command":"ls"}`)
	again.Delta = true
	c := readConversation(entriesOf(call("t", "Terminal", `{}`), again, answer("t", "x")), madeAt, 1<<20)
	if got, want := outline(c), "0 tool_call execute({\"command\":\"ls\"}) = \"x\" until 2\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestDamagedRecordIsShown(t *testing.T) {
	t.Parallel()
	c := readConversation(func(yield func(runs.Event, error) bool) {
		_ = yield(runs.Event{Event: agent.Event{Kind: agent.KindText, Text: "half"}}, nil) &&
			yield(runs.Event{}, errors.New("line 2 is damaged\x1b[2J"))
	}, madeAt, 1<<20)
	if len(c.Items) != 1 || c.Problem != "line 2 is damaged␛[2J" || !c.Untimed {
		t.Errorf("%+v", c)
	}
}

// The reason why a record is not whole takes room of the end.
func TestLongDamagedRecordIsBounded(t *testing.T) {
	t.Parallel()
	const limit = 40_000
	c := readConversation(func(yield func(runs.Event, error) bool) {
		for range 1000 {
			if !yield(runs.Event{Time: madeAt, Event: agent.Event{Kind: agent.KindWarning, Text: strings.Repeat("x", 1900)}}, nil) {
				return
			}
		}
		yield(runs.Event{}, errors.New(strings.Repeat("<", 1000)))
	}, madeAt, limit)
	text, err := json.Marshal(c)
	if err != nil || len(text) > limit || len(c.ending) == 0 {
		t.Errorf("%d bytes, %d items at the end, %v", len(text), len(c.ending), err)
	}
}

func TestLongConversationKeepsBothEnds(t *testing.T) {
	t.Parallel()
	const limit = 40_000
	var events []agent.Event
	for i := range 1000 {
		events = append(events, call(fmt.Sprint(i), "shell", fmt.Sprintf(`{"n":%d}`, i)), answer(fmt.Sprint(i), strings.Repeat("<", 50)))
	}
	c := readConversation(entriesOf(events...), madeAt, limit)
	text, err := json.Marshal(c)
	if err != nil || len(text) > limit || len(text) < limit/2 {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	first, last := c.Items[0], c.Items[len(c.Items)-1]
	if first.Input != `{"n":0}` || last.Input != `{"n":999}` || last.Output == "" {
		t.Errorf("from %s to %s", first.Input, last.Input)
	}
	if len(c.Items)+c.Left != 1000 || c.From <= 0 || c.From >= len(c.Items) {
		t.Errorf("%d items, %d left out after %d", len(c.Items), c.Left, c.From)
	}
	if before, after := c.Items[c.From-1].Input, c.Items[c.From].Input; after != fmt.Sprintf(`{"n":%d}`, c.From+c.Left) {
		t.Errorf("the gap is shown between %s and %s", before, after)
	}
}

// All diffs of an item have the room of one text.
func TestDiffsAreBounded(t *testing.T) {
	t.Parallel()
	changes := make([]agent.FileChange, 100)
	for i := range changes {
		changes[i] = agent.FileChange{Path: "f", Action: "update", Diff: strings.Repeat("+\x1b\n", agent.MaxDiff/6)}
	}
	c := readConversation(entriesOf(agent.Event{Kind: agent.KindFileChange, Changes: changes}), madeAt, 1<<20)
	if len(c.Items) != 1 || len(c.Items[0].Changes) != len(changes) {
		t.Fatalf("%+v", c.Items)
	}
	total := 0
	for _, change := range c.Items[0].Changes {
		total += len(change.Diff)
		if strings.Contains(change.Diff, "\x1b") {
			t.Fatal("a control character")
		}
	}
	if total < longText*9/10 || total > longText+100*len(changes) || !strings.Contains(c.Items[0].Changes[99].Diff, "left out") {
		t.Errorf("%d bytes", total)
	}
	if text, err := json.Marshal(c.Items[0]); err != nil || len(text) > c.Items[0].size() {
		t.Errorf("%d bytes, %d expected, %v", len(text), c.Items[0].size(), err)
	}
}

func TestEndlessTextIsBounded(t *testing.T) {
	t.Parallel()
	piece := agent.Event{Kind: agent.KindText, MessageID: "a", Delta: true, Text: strings.Repeat("x", 100_000)}
	c := readConversation(entriesOf(piece, piece, piece, piece, piece, piece, piece, piece, piece, piece, piece, piece), madeAt, 1<<20)
	if len(c.Items) != 1 || len(c.Items[0].Text) > longText+200 || !strings.Contains(c.Items[0].Text, "left out") {
		t.Fatalf("%d items, %d bytes", len(c.Items), len(c.Items[0].Text))
	}
	// 1.2 MB came and 1 MiB was kept at a time.
	if text := c.Items[0].Text; !strings.HasSuffix(text, "… 151.4 kB left out …") {
		t.Errorf("it ends with %q", text[len(text)-40:])
	}
}

// Calls that ran at the same time: all of them come before the first result.
func TestOutputsOfParallelCallsAreBounded(t *testing.T) {
	t.Parallel()
	const limit, calls = 200_000, 400
	output := "begin" + strings.Repeat("<", 5000) + "end"
	var events []agent.Event
	for i := range calls {
		events = append(events, call(fmt.Sprint(i), "shell", fmt.Sprintf(`{"n":%d}`, i)))
	}
	for i := range calls {
		events = append(events, answer(fmt.Sprint(i), output))
	}
	c := readConversation(entriesOf(events...), madeAt, limit)
	text, err := json.Marshal(c)
	if err != nil || len(text) > limit || len(text) < limit/2 {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	if len(c.Items) != calls || c.Left != 0 {
		t.Fatalf("%d items, %d left out", len(c.Items), c.Left)
	}
	whole := 0
	for i, call := range c.Items {
		switch {
		case call.Until == nil:
			t.Errorf("call %d has no result", i)
		case call.Output == output:
			whole++
		case !strings.Contains(call.Output, "kB left out …"):
			t.Errorf("call %d does not say that its output is left out: %.60q", i, call.Output)
		}
	}
	if whole == 0 || c.Items[0].Output != output {
		t.Errorf("%d outputs are whole", whole)
	}
}

// There is room for the note at each call, even where calls take all other room.
func TestNotesAboutOutputsAreBounded(t *testing.T) {
	t.Parallel()
	const limit, calls = 100_000, 2000
	var events []agent.Event
	for i := range calls {
		events = append(events, call(fmt.Sprint(i), "shell", `{}`))
	}
	for i := range calls {
		events = append(events, answer(fmt.Sprint(i), strings.Repeat("x", 1000)))
	}
	c := readConversation(entriesOf(events...), madeAt, limit)
	if c.headSize > limit*3/4 || c.tailSize > limit/4 || c.Left == 0 || len(c.Items)+c.Left != calls {
		t.Errorf("the head takes %d bytes, the tail %d of %d; %d items are left out", c.headSize, c.tailSize, limit, c.Left)
	}
	for i, call := range c.Items[:c.From] {
		if !strings.Contains(call.Output, " left out …\n") {
			t.Fatalf("call %d does not say that its output is left out: %.60q", i, call.Output)
		}
	}
}

// What is left out of a conversation is not kept for a result that may come.
func TestCallsWithoutResultsAreNotKept(t *testing.T) {
	t.Parallel()
	const limit = 40_000
	var events []agent.Event
	for i := range 200 {
		events = append(events, call(fmt.Sprint(i), "shell", `{"text":"`+strings.Repeat("x", 2000)+`"}`))
	}
	events = append(events, answer("100", strings.Repeat("y", 2000)), answer("199", "late"))
	c := &conversation{limit: limit, start: madeAt, calls: map[string]*item{}, names: map[string]string{}}
	for entry := range entriesOf(events...) {
		c.add(&entry)
	}
	kept := 0
	for _, i := range c.calls {
		kept += len(i.Input) + len(i.Output)
	}
	if kept > limit {
		t.Errorf("%d bytes wait for results", kept)
	}
	if last := c.ending[len(c.ending)-1]; last.Output != "late" {
		t.Errorf("the last call is answered by %q", last.Output)
	}
}
