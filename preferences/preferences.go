package preferences

// Only functions in the published contract of bus-preferences are used, so this works
// with every implementation of it.
import (
	"context"
	"encoding/json"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/runner"
	"github.com/busdk/bus-preferences/pkg/preferences"
)

// namespace is the first segment of every key of bus-agent.
const namespace = "bus-agent"

// User returns the user's preferences as the defaults of a runner. Each operation of
// the runner reads the file again.
func User() runner.Preferences { return store{} }

type store struct{}

func (store) Get(ctx context.Context, key string) (json.RawMessage, bool, error) {
	if err := checkLocation(); err != nil {
		return nil, false, err
	}
	return preferences.Get(ctx, key)
}

// Snapshot reads the file once.
func (store) Snapshot(ctx context.Context) (runner.Preferences, error) {
	s, err := Read(ctx)
	if err != nil {
		return nil, err
	}
	return s, nil
}

var _ runner.Snapshotter = store{}

// A Snapshot is the content of the preferences file at one moment, for use as the
// defaults of a runner. It never changes. Its methods may be called by several
// goroutines at once.
type Snapshot struct {
	values map[string]json.RawMessage
}

// Read reads the preferences file once.
func Read(ctx context.Context) (*Snapshot, error) {
	if err := checkLocation(); err != nil {
		return nil, err
	}
	found, err := preferences.List(ctx, "")
	if err != nil {
		return nil, err
	}
	s := &Snapshot{values: make(map[string]json.RawMessage, len(found))}
	for _, item := range found {
		s.values[item.Key] = item.Value
	}
	return s, nil
}

// Get returns the JSON value of key and whether it is set. It never fails.
func (s *Snapshot) Get(_ context.Context, key string) (json.RawMessage, bool, error) {
	value, ok := s.values[key]
	return value, ok, nil
}

// An Item is one preference: its key and its JSON value on one line.
type Item struct {
	Key   string          `json:"key"`
	Value json.RawMessage `json:"value"`
}

// List returns the preferences of bus-agent, sorted by key, including unknown ones.
func List(ctx context.Context) ([]Item, error) {
	if err := checkLocation(); err != nil {
		return nil, err
	}
	found, err := preferences.List(ctx, namespace)
	if err != nil {
		return nil, err
	}
	items := make([]Item, len(found))
	for i, item := range found {
		items[i] = Item{Key: item.Key, Value: item.Value}
	}
	return items, nil
}

// Unset removes a preference of bus-agent, given by its whole key. A key that is not
// set is accepted; one of another module is an error.
func Unset(ctx context.Context, key string) error {
	name, ok := strings.CutPrefix(key, namespace+".")
	if !ok {
		return agent.Usagef("preference %q is not one of bus-agent; its keys begin with %q", key, namespace+".")
	}
	for segment := range strings.SplitSeq(name, ".") {
		if segment == "" || strings.Trim(segment, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return agent.Usagef("%q is not a preference key; write segments of a-z, 0-9, - and _ joined by single dots", key)
		}
	}
	if err := checkLocation(); err != nil {
		return err
	}
	return preferences.Unset(ctx, key)
}
