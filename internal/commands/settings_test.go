package commands_test

import (
	"bytes"
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/internal/commands"
	"github.com/busdk/bus-agent/internal/commands/run"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/runner"
)

// values are preferences.
type values map[string]json.RawMessage

func (v values) Get(_ context.Context, key string) (json.RawMessage, bool, error) {
	value, ok := v[key]
	return value, ok, nil
}

// Config and doctor report a value that cannot be used, of every variable and
// preference, with its repair.
func TestEveryBadSettingIsReported(t *testing.T) {
	t.Parallel()
	sources := run.RecordSources()
	all := reflect.ValueOf(runner.BusAgent())
	for i := range all.NumField() {
		sources = append(sources, all.Field(i).Interface().([]runner.Source)...)
	}
	if len(sources) < 25 {
		t.Fatalf("only %d sources", len(sources))
	}
	for _, source := range sources {
		if source.Runtime != "" {
			continue // it is of another runtime
		}
		t.Run(source.String(), func(t *testing.T) {
			t.Parallel()
			environ, stored, key := []string{"PATH="}, values{}, source.Key
			repair := "; change or unset " + source.Env
			if source.Env != "" {
				environ = append(environ, source.Env+"=\x01,\x01")
			} else {
				subject := ""
				switch {
				case source.ForModel:
					subject = "." + runner.DefaultModel
				case source.ForRuntime:
					subject = ".alpha"
					stored[runner.KeyRuntime] = json.RawMessage(`"alpha"`)
				}
				key += subject
				stored[key] = json.RawMessage("5")
				repair = `remove it with "bus-agent unset ` + key + `"`
			}
			var r registry.Registry
			if err := r.Register(plain("alpha")); err != nil {
				t.Fatal(err)
			}
			calls := map[string]func(out, errs string) bool{
				"config": func(out, errs string) bool {
					return strings.Contains(out, "(cannot be used; see the warnings)") && strings.Contains(errs, repair)
				},
				"doctor": func(out, errs string) bool {
					return strings.Contains(out, "problem: ") && strings.Contains(out, repair) && !strings.Contains(out, "all can be used")
				},
			}
			for command, ok := range calls {
				var out, errs bytes.Buffer
				commands.Main(t.Context(), &commands.Env{
					Args: []string{command}, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs,
					Environ: append(environ, "HOME="+t.TempDir()), Dir: t.TempDir(), Registry: &r, Preferences: stored,
				})
				if !ok(out.String(), errs.String()) {
					t.Errorf("%s prints %s%s", command, &out, &errs)
				}
			}
		})
	}
}
