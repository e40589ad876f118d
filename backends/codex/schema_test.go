package codex

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/backendtest"
	"github.com/busdk/bus-agent/registry"
)

const closedSchema = `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object",
 "properties":{"city":{"type":"string"},"degrees":{"type":["integer","null"]}},
 "required":["city","degrees"],"additionalProperties":false}`

func TestTakesSchema(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*registry.Invocation)
		want   bool
	}{
		"closed": {func(*registry.Invocation) {}, true},
		"optional property": {func(inv *registry.Invocation) {
			inv.Schema = json.RawMessage(strings.Replace(closedSchema, `,"degrees"]`, `]`, 1))
		}, false},
		"open": {func(inv *registry.Invocation) {
			inv.Schema = json.RawMessage(strings.Replace(closedSchema, `,"additionalProperties":false`, ``, 1))
		}, false},
		"pattern": {func(inv *registry.Invocation) {
			inv.Schema = json.RawMessage(strings.Replace(closedSchema, `"string"`, `"string","pattern":"^a"`, 1))
		}, false},
		"local model":  {func(inv *registry.Invocation) { inv.Variant = VariantLocal }, false},
		"a home given": {func(inv *registry.Invocation) { inv.Env = []string{"CODEX_HOME=/home/me/.codex"} }, false},
	} {
		r := registry.Invocation{Schema: json.RawMessage(closedSchema)}
		c.change(&r)
		if got := takesSchema(r); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// Codex reads the schema from a file of its home, which others cannot read and
// which is gone after the run.
func TestSchemaIsAFileOfTheHome(t *testing.T) {
	t.Parallel()
	workdir := t.TempDir()
	w := backendtest.Workspace(t, workdir)
	r := registry.Invocation{Workdir: workdir, Schema: json.RawMessage(closedSchema), Root: workdir}
	setup, err := prepare(t.Context(), r, w)
	if err != nil {
		t.Fatal(err)
	}
	at := slices.Index(setup.Args, "--output-schema")
	if at < 0 || at+1 == len(setup.Args) {
		t.Fatalf("arguments %q", setup.Args)
	}
	file := setup.Args[at+1]
	data, err := os.ReadFile(file)
	if err != nil || strings.Contains(string(data), "$schema") || !strings.HasPrefix(string(data), `{"type":"object","properties":{"city":`) {
		t.Errorf("%s, %v", data, err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 || filepath.Base(filepath.Dir(filepath.Dir(file))) != "bus" {
		t.Errorf("%s: %v, %v", file, info, err)
	}
	if warnings := setup.Close(t.Context()); len(warnings) > 0 {
		t.Error(warnings)
	}
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("it is left behind: %v", err)
	}
}
