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

// Registry returns a registry with the runtimes of base and those that the
// user's preferences describe; see [Snapshot.Registry]. The error says what is
// wrong with the preferences file.
func Registry(ctx context.Context, base *registry.Registry) (_ *registry.Registry, warnings []string, err error) {
	s, err := Read(ctx)
	if err != nil {
		return nil, nil, err
	}
	all, warnings := s.Registry(base)
	return all, warnings, nil
}

// Runtimes returns the stored descriptions of runtimes by ID. Whether they
// describe runtimes is for the caller to check; see [described.Runtime].
func (s *Snapshot) Runtimes() map[string]json.RawMessage {
	found := make(map[string]json.RawMessage)
	for key, value := range s.values {
		if id, ok := strings.CutPrefix(key, runner.KeyRuntimes+"."); ok {
			found[id] = value
		}
	}
	return found
}

// Registry returns a registry with the runtimes of base, which is not changed,
// and those the snapshot describes; base itself where it describes none.
//
// A description that is wrong, or whose ID base has, is left out: a warning
// names its key and says why, and so does the error of whoever asks the
// registry for that ID.
func (s *Snapshot) Registry(base *registry.Registry) (_ *registry.Registry, warnings []string) {
	found := s.Runtimes()
	if len(found) == 0 {
		return base, nil
	}
	all := base.Clone()
	for _, id := range slices.Sorted(maps.Keys(found)) {
		rt, err := described.Runtime(id, found[id], base)
		if err == nil {
			err = all.Register(rt)
		}
		if err != nil {
			err = fmt.Errorf("preference %s.%s: %w", runner.KeyRuntimes, id, err)
			all.Refuse(id, err)
			warnings = append(warnings, err.Error()+"; it is left out")
		}
	}
	return all, warnings
}
