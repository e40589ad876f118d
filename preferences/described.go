package preferences

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/registry/described"
	"github.com/busdk/bus-agent/runner"
)

// Registry returns a registry with the runtimes of base and those in the user's
// preferences; see [Snapshot.Registry]. The error reports an unreadable preferences
// file.
func Registry(ctx context.Context, base *registry.Registry) (_ *registry.Registry, warnings []string, err error) {
	s, err := Read(ctx)
	if err != nil {
		return nil, nil, err
	}
	all, warnings := s.Registry(base)
	return all, warnings, nil
}

// Runtimes returns the stored descriptions of runtimes by ID. The caller checks them;
// see [described.Runtime].
func (s *Snapshot) Runtimes() map[string]json.RawMessage {
	found := make(map[string]json.RawMessage)
	for key, value := range s.values {
		if id, ok := strings.CutPrefix(key, runner.KeyRuntimes+"."); ok {
			found[id] = value
		}
	}
	return found
}

// Registry returns a registry with the runtimes of base, which is not changed, and
// those the snapshot describes; base itself if it describes none.
//
// A description takes the place of a runtime in base that is a Runtime.LastChoice. An
// invalid description, or one with the ID of another runtime in base, is left out: a
// warning names its key and the reason, and the registry returns the same error for that
// ID.
func (s *Snapshot) Registry(base *registry.Registry) (_ *registry.Registry, warnings []string) {
	found := s.Runtimes()
	if len(found) == 0 {
		return base, nil
	}
	all := base.Clone()
	for _, id := range slices.Sorted(maps.Keys(found)) {
		rt, err := described.Runtime(id, found[id], base)
		add := all.Register
		if _, ok := base.Lookup(id); ok {
			add = all.Replace
		}
		if err == nil {
			err = add(rt)
		}
		if err != nil {
			err = fmt.Errorf("preference %s.%s: %w", runner.KeyRuntimes, id, err)
			all.Refuse(id, err)
			warnings = append(warnings, err.Error()+"; it is left out")
		}
	}
	return all, warnings
}
