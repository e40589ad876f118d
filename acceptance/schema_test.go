//go:build acceptance

package acceptance

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/modeltest"
)

const (
	// closedSchema is supported by every CLI that supports schemas.
	closedSchema = `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object",
		"properties":{"city":{"type":"string"},"degrees":{"type":"integer"}},
		"required":["city","degrees"],"additionalProperties":false}`
	// openSchema must be passed with the prompt.
	openSchema = `{"type":"array","items":{"type":"string","pattern":"^[a-z]+$"}}`
	// asksAgain is part of the prompt after an invalid answer.
	asksAgain = "does not follow the JSON Schema it has to follow"
)

// newSchemaFixture returns a fixture with both schemas.
func newSchemaFixture(t *testing.T, setup setupFunc, replies ...modeltest.Reply) *fixture {
	t.Helper()
	return setup(t, modeltest.Replies(replies...), map[string]string{"closed.json": closedSchema, "open.json": openSchema})
}

// wantJSON fails the test unless the run answered with value, as text and as JSON.
func (w *fixture) wantJSON(value string, r report, o outcome) {
	w.t.Helper()
	var output struct{ Structured json.RawMessage }
	if err := json.Unmarshal([]byte(o.stdout), &output); err != nil {
		w.t.Fatal(err)
	}
	var compact, want strings.Builder
	for _, c := range []struct {
		to   *strings.Builder
		text string
	}{{&compact, string(output.Structured)}, {&want, value}} {
		for _, word := range strings.Fields(c.text) {
			c.to.WriteString(word)
		}
	}
	if o.code != 0 || r.Text != value || compact.String() != want.String() {
		w.t.Fatalf("want the answer %s, got %+v with %s\n%v", value, r, output.Structured, o)
	}
}

// codexFormat returns the format of the answer in a request of Codex.
func codexFormat(t *testing.T, r *modeltest.Request) (schema string, strict bool) {
	t.Helper()
	var body struct {
		Text struct {
			Format struct {
				Strict bool
				Schema json.RawMessage
			}
		}
	}
	if err := json.Unmarshal(r.Body, &body); err != nil {
		t.Fatal(err)
	}
	return string(body.Text.Format.Schema), body.Text.Format.Strict
}

func TestCodexSchemaOption(t *testing.T) {
	t.Parallel()
	w := newSchemaFixture(t, newCodex, answer(`{"city":"Turku"}`), answer(`{"city":"Turku","degrees":3}`))
	r, o := w.run("How is the weather?", "--schema", "closed.json")
	w.wantJSON(`{"city":"Turku","degrees":3}`, r, o)
	asked := w.wantRequests(2)
	for _, request := range asked {
		schema, strict := codexFormat(t, request)
		if !strict || !strings.HasPrefix(schema, `{"type":"object","properties":{"city":`) {
			t.Errorf("the API got %s, strict %v", schema, strict)
		}
	}
	if got := lastPrompt(asked[0]); got != "How is the weather?" {
		t.Errorf("the prompt is %q", got)
	}
	if again := asked[1]; !strings.Contains(lastPrompt(again), asksAgain) || !strings.Contains(lastPrompt(again), `- lacks the property "degrees"`) || again.Count("How is the weather?") != 1 {
		t.Errorf("the retry is not in the session: %q", again.Texts("user"))
	}
}

func TestCodexSchemaInPrompt(t *testing.T) {
	t.Parallel()
	w := newSchemaFixture(t, newCodex, answer("Here:\n```json\n[\"a\"]\n```"))
	r, o := w.run("Name one.", "--schema", "open.json")
	w.wantJSON(`["a"]`, r, o)
	request := w.wantRequests(1)[0]
	if schema, _ := codexFormat(t, request); schema != "" {
		t.Errorf("the API got %s", schema)
	}
	if got := lastPrompt(request); !strings.HasPrefix(got, "Name one.\n\n") || !strings.HasSuffix(got, openSchema) {
		t.Errorf("the prompt is %q", got)
	}
}

// structuredOutput returns an answer with the schema option of Claude Code.
func structuredOutput(value string) modeltest.Reply {
	return modeltest.Reply{modeltest.Text{"I have it."}, modeltest.ToolCall{Name: "StructuredOutput", Arguments: value}}
}

func TestClaudeSchemaOption(t *testing.T) {
	t.Parallel()
	for _, access := range []string{"read", "write", "full"} {
		t.Run(access, func(t *testing.T) {
			t.Parallel()
			// The CLI retries after the first answer. Text after the second one is
			// ignored.
			w := newSchemaFixture(t, newClaude, structuredOutput(`{"city":"Turku"}`),
				append(structuredOutput(`{"city":"Turku","degrees":3}`), modeltest.Text{"There you are."}))
			r, o := w.run("How is the weather?", "--schema", "closed.json", "--access", access)
			w.wantJSON(`{"city":"Turku","degrees":3}`, r, o)
			asked := w.wantRequests(2)
			if got := lastPrompt(asked[0]); !strings.HasSuffix(got, "How is the weather?") || strings.Contains(got, "JSON Schema") {
				t.Errorf("the prompt is %q", got)
			}
			if results := asked[1].ToolResults(); len(results) != 1 || !strings.Contains(results[0].Output, "degrees") {
				t.Errorf("the tool results are %+v", results)
			}
		})
	}
}

// A text answer is retried by the CLI, and then by bus-agent in the same session.
func TestClaudeSchemaTextAnswer(t *testing.T) {
	t.Parallel()
	w := newSchemaFixture(t, newClaude, answer("It is cold."), answer("Cold."), structuredOutput(`{"city":"Turku","degrees":3}`))
	r, o := w.run("How is the weather?", "--schema", "closed.json")
	w.wantJSON(`{"city":"Turku","degrees":3}`, r, o)
	again := w.wantRequests(3)[2]
	if !strings.Contains(lastPrompt(again), asksAgain) || again.Count("It is cold.") != 1 {
		t.Errorf("the retry is not in the session: %q", again.Texts())
	}
	if len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "holds no JSON value; asking once more") {
		t.Errorf("warnings %q", r.Warnings)
	}
}

// If the CLI gives up, the run fails with the error of its validator.
func TestClaudeSchemaFailure(t *testing.T) {
	t.Parallel()
	w := newClaude(t, modeltest.Always(structuredOutput(`{"city":"Turku"}`)), map[string]string{"closed.json": closedSchema})
	r, o := w.run("How is the weather?", "--schema", "closed.json")
	if o.code != 1 || r.Kind != "agent" || !strings.Contains(r.Error, "must have required property 'degrees'") {
		t.Errorf("got %+v\n%v", r, o)
	}
	w.wantRequests(5)
}

func TestClaudeSchemaInPrompt(t *testing.T) {
	t.Parallel()
	w := newSchemaFixture(t, newClaude, answer(`["A"]`), answer(`["a"]`))
	r, o := w.run("Name one.", "--schema", "open.json")
	w.wantJSON(`["a"]`, r, o)
	asked := w.wantRequests(2)
	if got := lastPrompt(asked[0]); !strings.Contains(got, "Name one.\n\n") || !strings.HasSuffix(got, openSchema) {
		t.Errorf("the prompt is %q", got)
	}
	if got := lastPrompt(asked[1]); !strings.Contains(got, asksAgain) || !strings.Contains(got, `- /0: must match the pattern "^[a-z]+$"`) || asked[1].Count("Name one.") != 1 {
		t.Errorf("the prompt of the retry is %q", got)
	}
}

func TestGeminiSchemaInPrompt(t *testing.T) {
	t.Parallel()
	w := newSchemaFixture(t, newGemini, answer("It is cold."), answer("```json\n{\"city\": \"Turku\", \"degrees\": 3}\n```"))
	r, o := w.run("How is the weather?", "--schema", "closed.json")
	w.wantJSON(`{"city": "Turku", "degrees": 3}`, r, o)
	asked := w.wantRequests(2)
	if got := lastPrompt(asked[0]); !strings.Contains(got, "How is the weather?\n\n") || !strings.Contains(got, closedSchema) {
		t.Errorf("the prompt is %q", got)
	}
	if again := asked[1]; !strings.Contains(lastPrompt(again), asksAgain) || !strings.Contains(lastPrompt(again), closedSchema) || again.Count("How is the weather?") != 1 {
		t.Errorf("the retry is not in the session: %q", again.Texts("user"))
	}
}

// An invalid answer after the retry is a failure.
func TestSchemaNotFollowed(t *testing.T) {
	t.Parallel()
	for name, setup := range map[string]setupFunc{"codex": newCodex, "claude": newClaude, "gemini": newGemini} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newSchemaFixture(t, setup, answer(`["A"]`), answer(`["B"]`))
			r, o := w.run("Name one.", "--schema", "open.json")
			if o.code != 1 || r.Kind != "agent" || r.Text != `["B"]`+w.answerSuffix || !strings.Contains(r.Error, `still invalid after one retry: /0: must match the pattern "^[a-z]+$", not the string "B"`) {
				t.Errorf("got %+v\n%v", r, o)
			}
			w.wantRequests(2)
		})
	}
}
