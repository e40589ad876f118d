package policy_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session/engine"
	"github.com/busdk/bus-agent/session/policy"
)

// The policy that the page on sessions shows does what the page says.
func TestDocumentedPolicy(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/sessions.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Policies\n")
	_, section, _ = strings.Cut(section, "```json\n")
	text, _, ok := strings.Cut(section, "```")
	if !ok {
		t.Fatal("the page shows no policy")
	}
	checkSchema(t, text, true)
	p := parse(t, text)
	for line, want := range map[string]string{
		"go test ./...":                "accept 1",
		"go test && git status":        "accept 1",
		"git status && git push":       "decline 3",
		"go test ./... > result":       "ask 0",
		"FLAGS=-race go test ./...":    "ask 0",
		"go test -exec /tmp/x ./...":   "accept 1", // as the page warns
		"go vet":                       "ask 0",
		"git -c alias.status=x status": "decline 3",
	} {
		if got := decide(t, p, tools(agent.ToolExecute, line), engine.Start{}); got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
	start, _ := ground(t)
	for name, want := range map[string]string{"src/a.KEY": "decline 5", "src/a": "ask 0"} {
		if got := decide(t, p, &agent.Tool{Kind: agent.ToolDelete, Files: []string{name}}, start); got != want {
			t.Errorf("delete %s: %s, want %s", name, got, want)
		}
	}
}

// The schema accepts what Parse accepts, apart from what a schema cannot say.
func TestSchemaFollowsParse(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{}`, `null`, `[]`, `{"rule":[]}`, `{"rules":[],"default":"ask"}`, `{"default":"accept"}`, `{"default":"decline"}`,
		`{"rules":[{}]}`, `{"rules":[{"kind":"read"}]}`, `{"rules":[{"decision":"decline"}]}`, `{"rules":[{"decision":"accept"}]}`,
		`{"rules":[{"decision":"accept","path":"a"}]}`, `{"rules":[{"decision":"accept","path":"a","kind":"edit"}]}`,
		`{"rules":[{"decision":"ask","path":"/a/**/b"}]}`, `{"rules":[{"decision":"ask","path":"a","kind":"fetch"}]}`,
		`{"rules":[{"decision":"ask","path":"a","command":["b"]}]}`, `{"rules":[{"decision":"accept","command":["b","c"]}]}`,
		`{"rules":[{"decision":"ask","command":["b"],"kind":"edit"}]}`, `{"rules":[{"decision":"ask","command":["b"],"kind":"execute"}]}`,
		`{"rules":[{"decision":"ask","command":[]}]}`, `{"rules":[{"decision":"ask","command":[""]}]}`, `{"rules":[{"decision":"ask","command":"b"}]}`,
		`{"rules":[{"decision":"ask","kind":"write"}]}`, `{"rules":[{"decision":"allow","kind":"read"}]}`, `{"rules":[{"decision":"ask","tool":"x"}]}`,
		`{"rules":[{"decision":"ask","path":"../a"}]}`, `{"rules":[{"decision":"ask","path":"a/../b"}]}`, `{"rules":[{"decision":"ask","path":"a/.."}]}`,
		`{"rules":[{"decision":"ask","path":"..a/b.."}]}`, `{"rules":[{"decision":"ask","path":"~/a"}]}`, `{"rules":[{"decision":"ask","path":"a\\b"}]}`,
	} {
		_, err := policy.Parse([]byte(text))
		checkSchema(t, text, err == nil)
	}
}

func checkSchema(t *testing.T, text string, want bool) {
	t.Helper()
	schema, err := jsonschema.NewCompiler().Compile("../../docs/policy.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(value); (err == nil) != want {
		t.Errorf("%s: %v by the schema, want %v", text, err, want)
	}
}
