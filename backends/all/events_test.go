package all_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/backendtest"
	"github.com/busdk/bus-agent/registry"
)

const docs = "../../docs"

func compileSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	schema, err := jsonschema.NewCompiler().Compile(filepath.Join(docs, "events.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

func TestEventsFollowTheSchema(t *testing.T) {
	t.Parallel()
	schema := compileSchema(t)
	for _, rt := range registry.Default().All() {
		for file, output := range recordings(t, rt) {
			for _, e := range backendtest.Decode(t, rt, output) {
				line, err := json.Marshal(e)
				if err != nil {
					t.Fatal(err)
				}
				value, err := jsonschema.UnmarshalJSON(bytes.NewReader(line))
				if err != nil {
					t.Fatal(err)
				}
				if err := schema.Validate(value); err != nil {
					t.Errorf("%s: %s\n%v", file, line, err)
				}
			}
		}
	}
}

func TestSchemaRefusesOtherThanEvents(t *testing.T) {
	t.Parallel()
	schema := compileSchema(t)
	for _, line := range []string{
		`{}`, `[]`, `{"kind":"new"}`, `{"kind":"text","txt":"x"}`, `{"kind":"tool_call"}`, `{"kind":"usage","usage":{"input":1}}`,
		`{"kind":"result","failed":false}`, `{"kind":"file_change","changes":[{"path":"x","action":"rename"}]}`,
	} {
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(line))
		if err != nil {
			t.Fatal(err)
		}
		if schema.Validate(value) == nil {
			t.Errorf("accepted: %s", line)
		}
	}
}

// The schema has every member and every kind of an event; the page has every kind.
func TestEventsAreDocumented(t *testing.T) {
	t.Parallel()
	schema := compileSchema(t)
	page, err := os.ReadFile(filepath.Join(docs, "events.md"))
	if err != nil {
		t.Fatal(err)
	}
	one, cost := 1, 0.5
	whole, err := json.Marshal(agent.Event{
		Kind: agent.KindRaw, SessionID: "x", Model: "x", MessageID: "x", Text: "x", Delta: true,
		Tool:    &agent.Tool{ID: "x", Name: "x", Input: json.RawMessage(`1`), Output: agent.Plain("x"), ExitCode: &one},
		Plan:    []agent.PlanStep{{Text: "x", Status: "pending"}},
		Changes: []agent.FileChange{{Path: "x", Action: "add", Diff: "@@ -0,0 +1,1 @@\n+x\n", Truncated: true}},
		Usage:   &agent.Usage{Input: 1, Cached: 1, Output: 1, Reasoning: 1, CostUSD: &cost, Cumulative: true},
		Attempt: 1, MaxAttempts: 1, Failed: true, Failure: agent.FailureQuota, Subagent: "x",
		Background: &one, Truncated: true, Size: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range agent.Kinds() {
		line := bytes.Replace(whole, []byte(`"raw"`), []byte(`"`+kind+`"`), 1)
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(line))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(value); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		if !bytes.Contains(page, []byte("| `"+kind+"` |")) {
			t.Errorf("events.md does not say what %s is", kind)
		}
	}
}

// Events of version 1 stay events: the schema has all that it had at first.
func TestSchemaKeepsVersion1(t *testing.T) {
	t.Parallel()
	read := func(file string) (schema map[string]any) {
		text, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(text, &schema)
		}
		if err != nil {
			t.Fatal(err)
		}
		return schema
	}
	current := read(filepath.Join(docs, "events.schema.json"))
	if current["version"] != float64(agent.EventsVersion) {
		t.Errorf("the schema has version %v, events %d", current["version"], agent.EventsVersion)
	}
	keeps(t, "", read("testdata/events.v1.schema.json"), current)
}

// keeps checks that a schema has the properties, types and values of a former one and
// requires what that required.
func keeps(t *testing.T, at string, former, current any) {
	t.Helper()
	switch former := former.(type) {
	case map[string]any:
		current, _ := current.(map[string]any)
		for name, value := range former {
			if !slices.Contains([]string{"description", "title", "additionalProperties"}, name) {
				keeps(t, at+"/"+name, value, current[name])
			}
		}
	case []any:
		current, _ := current.([]any)
		for _, value := range former {
			if !slices.ContainsFunc(current, func(v any) bool { return reflect.DeepEqual(v, value) }) {
				t.Errorf("%s lacks %v", at, value)
			}
		}
	default:
		if former != current {
			t.Errorf("%s is %v, not %v", at, current, former)
		}
	}
}

// The same conversation, some text, a command and an answer, is the same
// sequence of events in every runtime. Only thinking and signs of life depend on
// the runtime.
func TestOneConversationIsOneSequence(t *testing.T) {
	t.Parallel()
	want := []agent.Kind{
		agent.KindSessionStarted, agent.KindText, agent.KindToolCall, agent.KindToolResult,
		agent.KindText, agent.KindUsage, agent.KindResult,
	}
	for id, file := range map[string]string{
		"claude": "tool-allowed", "codex": "exec-tool-gpt-5.5", "cursor": "tool", "gemini": "tool-yolo",
	} {
		rt, ok := registry.Default().Lookup(id)
		if !ok {
			t.Fatalf("%s is not registered", id)
		}
		output, err := os.ReadFile(filepath.Join("..", id, "testdata", file+".ndjson"))
		if err != nil {
			t.Fatal(err)
		}
		var got []agent.Kind
		for _, e := range backendtest.Decode(t, rt, output) {
			if e.Kind != agent.KindHeartbeat && e.Kind != agent.KindThinking {
				got = append(got, e.Kind)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s:\n%s", id, diff)
		}
	}
}
