package agent_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/jsonline"
)

// everything is an event with each member set.
func everything() agent.Event {
	code, open, cost := 0, 0, 1e-9
	text := "a\"\\\n\r\t\b\f\x00\x1f\x7f\xff<é😀\u2028\u2029"
	return agent.Event{
		Kind: "new", SessionID: text, Model: text, MessageID: text, Text: text, Delta: true,
		Tool: &agent.Tool{ID: text, Name: text, Input: json.RawMessage(`{"a":[1,"<"]}`), Output: agent.Plain(text), ExitCode: &code,
			Kind: "k", Files: []string{text, "b"}, Command: text},
		Policy: &agent.PolicyAnswer{Decision: text, Rule: 3},
		Plan:   []agent.PlanStep{{Text: text}, {Status: text}}, Changes: []agent.FileChange{{Path: text, Diff: text}, {Action: text, Truncated: true}},
		Usage:     &agent.Usage{Input: 1, Cached: -2, Output: 1 << 60, CostUSD: &cost, Cumulative: true, Context: 5, ContextSize: 6},
		Questions: []agent.Question{{Header: text, Text: text, Options: []agent.Option{{Label: text, Description: text}, {}}, Multiple: true, FreeText: true}, {Optional: true, Secret: true}},
		Turn:      4, Attempt: 1, MaxAttempts: 2, Failed: true, Failure: "f", Interrupted: true, ApprovalID: text, Subagent: text, Background: &open, Truncated: true, Size: 9, LineType: text,
	}
}

func TestAppendJSONIsWhatEncodingJSONGives(t *testing.T) {
	t.Parallel()
	all := everything()
	events := []agent.Event{all, {}, {Kind: agent.KindToolCall, Tool: &agent.Tool{}}, {Kind: agent.KindUsage, Usage: &agent.Usage{}}}
	// Each member alone, so that none hides behind another.
	for i := range reflect.TypeFor[agent.Event]().NumField() {
		var one agent.Event
		reflect.ValueOf(&one).Elem().Field(i).Set(reflect.ValueOf(all).Field(i))
		events = append(events, one)
	}
	for _, e := range events {
		var want bytes.Buffer
		encoder := json.NewEncoder(&want)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(&e); err != nil {
			t.Fatal(err)
		}
		if got, safe := string(e.AppendJSON([]byte("> "))), string(jsonline.EscapeControls(want.Bytes(), 0)); "> "+strings.TrimSpace(safe) != got {
			t.Errorf("got  %s\nwant %s", got, want.String())
		}
	}
}

func TestAppendJSONIsAlwaysALine(t *testing.T) {
	t.Parallel()
	for _, input := range []string{`{`, "{\n}", "{\r}", "\"\xff\"", `"a`, `null`} {
		e := agent.Event{Tool: &agent.Tool{Input: json.RawMessage(input), Output: quoted(t, "\"\xff\"")}}
		line := e.AppendJSON(nil)
		if !json.Valid(line) || bytes.ContainsAny(line, "\n\r") {
			t.Errorf("%q becomes %q", input, line)
		}
	}
}

func TestEverythingIsSet(t *testing.T) {
	t.Parallel()
	value := reflect.ValueOf(everything())
	for i := range value.NumField() {
		if value.Field(i).IsZero() {
			t.Errorf("%s is not", value.Type().Field(i).Name)
		}
	}
}
