package cmdline

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/runner"
)

// Stored is what the preferences hold, read once when the program starts.
type Stored struct {
	Registry    *registry.Registry // the runtimes of the program and those described in JSON
	Preferences runner.Preferences // nil for none
	Warnings    []string
}

// describer is implemented by preferences that can describe runtimes, such as
// preferences.Snapshot.
type describer interface {
	Registry(base *registry.Registry) (_ *registry.Registry, warnings []string)
	Runtimes() map[string]json.RawMessage
}

// readStored reads the preferences. Problems are warnings, shown by the commands that
// use them.
func readStored(ctx context.Context, env *Env) Stored {
	s := Stored{Registry: env.registry(), Preferences: env.Preferences}
	source, ok := env.Preferences.(runner.Snapshotter)
	if !ok {
		return s
	}
	var err error
	if s.Preferences, err = source.Snapshot(ctx); err != nil {
		s.Preferences = nil
		s.Warnings = []string{fmt.Sprintf("preferences cannot be read; ignoring them: %v", err)}
		return s
	}
	if d, ok := s.Preferences.(describer); ok {
		s.Registry, s.Warnings = d.Registry(s.Registry)
	}
	return s
}

// DescribedIDs returns the IDs under which descriptions of runtimes are stored.
func (s *Stored) DescribedIDs() []string {
	if d, ok := s.Preferences.(describer); ok {
		return slices.Sorted(maps.Keys(d.Runtimes()))
	}
	return nil
}

// Preference returns a preference as text, "" when it is not set.
func (prog *Program) Preference(ctx context.Context, key string) string {
	if prog.Stored.Preferences == nil {
		return ""
	}
	raw, ok, err := prog.Stored.Preferences.Get(ctx, key)
	if err != nil || !ok {
		return ""
	}
	return PlainJSON(raw)
}

// SourceText returns the value of a variable or preference as text, "" when it is not
// set.
func (prog *Program) SourceText(ctx context.Context, source runner.Source) string {
	if source.Env != "" {
		return prog.Env.Getenv(source.Env)
	}
	return prog.Preference(ctx, source.Key)
}

// PlainJSON returns a string without its quotes, a list of strings joined by
// commas, and any other JSON as it is.
func PlainJSON(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var list []string
	if json.Unmarshal(raw, &list) == nil {
		return strings.Join(list, ",")
	}
	return string(raw)
}

// BuiltIn returns the runtimes of the program, without those described in JSON.
func (prog *Program) BuiltIn() *registry.Registry { return prog.Env.registry() }
