package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/runner"
)

// stored is what the preferences add to the program. They are read once, when
// the program starts.
type stored struct {
	registry    *registry.Registry // of the program, with the runtimes described
	preferences runner.Preferences // nil: none
	warnings    []string
}

// describer is implemented by preferences that can describe runtimes, such as
// preferences.Snapshot.
type describer interface {
	Registry(base *registry.Registry) (_ *registry.Registry, warnings []string)
	Runtimes() map[string]json.RawMessage
}

// readStored reads what is stored. What is wrong with it is a warning, for the
// commands that use it.
func readStored(ctx context.Context, env *Env) stored {
	s := stored{registry: env.registry(), preferences: env.Preferences}
	source, ok := env.Preferences.(runner.Snapshotter)
	if !ok {
		return s
	}
	var err error
	if s.preferences, err = source.Snapshot(ctx); err != nil {
		s.preferences = nil
		s.warnings = []string{fmt.Sprintf("preferences cannot be read, going on without them: %v", err)}
		return s
	}
	if d, ok := s.preferences.(describer); ok {
		s.registry, s.warnings = d.Registry(s.registry)
	}
	return s
}

// describedIDs returns the IDs under which descriptions of runtimes are stored.
func (s *stored) describedIDs() []string {
	d, ok := s.preferences.(describer)
	if !ok {
		return nil
	}
	return slices.Sorted(maps.Keys(d.Runtimes()))
}
