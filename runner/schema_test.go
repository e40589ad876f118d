package runner_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/session"
)

const citySchema = `{"type":"object","properties":{"city":{"type":"string"}}}`

// withSchemas makes the bench's runtimes pass on the schemas for which takes returns
// true, as the argument --schema.
func (b *bench) withSchemas(t *testing.T, takes func(registry.Invocation) bool) {
	t.Helper()
	rt := fakeRuntime("alpha")
	rt.Run.Options.Schema = takes
	command := rt.Run.Command
	rt.Run.Command = func(inv registry.Invocation) (agent.Command, error) {
		c, err := command(inv)
		c.Args = append(c.Args, "--schema="+string(inv.Schema))
		return c, err
	}
	b.Registry = new(registry.Registry)
	if err := b.Registry.Register(rt); err != nil {
		t.Fatal(err)
	}
}

func TestSchemaIsPassedOnOrPutIntoThePrompt(t *testing.T) {
	t.Parallel()
	const schema = "\n" + citySchema + "\n"
	for name, c := range map[string]struct {
		takes  func(registry.Invocation) bool
		native bool
	}{
		"no option":                      {nil, false},
		"an option that takes it":        {func(r registry.Invocation) bool { return string(r.Schema) == citySchema }, true},
		"an option that does not":        {func(registry.Invocation) bool { return false }, false},
		"an option of another variant":   {func(r registry.Invocation) bool { return r.Variant == "" }, false},
		"an option of this variant":      {func(r registry.Invocation) bool { return r.Variant == "local" }, true},
		"an option that asks the access": {func(r registry.Invocation) bool { return r.Access == agent.AccessWrite }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, "alpha")
			b.withSchemas(t, c.takes)
			req := b.request("argv", "stdin", "say ok:")
			req.Runtime, req.Schema = "alpha:local", json.RawMessage(schema)
			var texts []string
			var out agent.Output
			out.Events = func(e *agent.Event) error {
				if e.Kind == agent.KindText {
					texts = append(texts, e.Text)
				}
				return nil
			}
			if _, err := b.Run(t.Context(), req, out); err != nil || len(texts) != 2 {
				t.Fatalf("%q, %v", texts, err)
			}
			native := strings.Contains(texts[0], "--schema="+citySchema)
			prompt, instruction, _ := strings.Cut(texts[1], "⏎⏎")
			if native != c.native || prompt != "do it" || strings.HasSuffix(instruction, "⏎⏎"+citySchema) == c.native {
				t.Errorf("arguments %s\nprompt %s", texts[0], texts[1])
			}
			if string(req.Schema) != schema {
				t.Error("the caller's schema was changed")
			}
		})
	}
}

func TestSchemaCountsForThePromptLimit(t *testing.T) {
	t.Parallel()
	b := newBench(t, "alpha")
	req := b.request("say ok:")
	req.Runtime, req.Prompt = "alpha", strings.Repeat("x", 100_000)
	if _, err := b.Run(t.Context(), req, agent.Output{}); err != nil {
		t.Fatal(err)
	}
	req.Schema = json.RawMessage(citySchema)
	if _, err := b.Run(t.Context(), req, agent.Output{}); !errors.Is(err, agent.ErrUsage) || !strings.Contains(err.Error(), "its limit is 100000") {
		t.Errorf("got %v", err)
	}
}

func TestInvalidSchema(t *testing.T) {
	t.Parallel()
	b := newBench(t, "alpha")
	for _, schema := range []string{" ", "{", "true", "[]", `"x"`, `{} {}`} {
		req := b.request("say ok:")
		req.Runtime, req.Schema = "alpha", json.RawMessage(schema)
		if _, err := b.DryRun(t.Context(), req); !errors.Is(err, agent.ErrUsage) || !strings.Contains(err.Error(), "schema is not a JSON object") {
			t.Errorf("%q: got %v", schema, err)
		}
	}
	req := b.request()
	req.Runtime, req.Schema = "alpha", json.RawMessage(citySchema)
	if _, err := b.StartSession(t.Context(), req, session.Options{}); !errors.Is(err, agent.ErrUsage) || !strings.Contains(err.Error(), "Request.Schema") {
		t.Errorf("session: got %v", err)
	}
}
