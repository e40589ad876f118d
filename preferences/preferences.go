package preferences

// Of bus-preferences only the functions that its published contract names are
// used, so that this works with every implementation of it.
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

// User returns the user's preferences as the source of a runner's defaults. It
// reads the file anew for every operation of the runner.
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

// A Snapshot is what the preferences file held at one moment. It is a source of
// a runner's defaults like [User], only that it never changes. Its methods may
// be called by several goroutines at once.
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

// List returns the preferences of bus-agent, sorted by key. It includes those
// that this version does not know.
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

// Unset removes a preference of bus-agent, given by its whole key. A key that
// is not set is no error; one of another module is.
func Unset(ctx context.Context, key string) error {
	name, ok := strings.CutPrefix(key, namespace+".")
	if !ok {
		return agent.Usagef("preference %q is not one of bus-agent; its keys begin with %q", key, namespace+".")
	}
	for segment := range strings.SplitSeq(name, ".") {
		if segment == "" || strings.Trim(segment, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return agent.Usagef("%q is no preference key; write segments of a-z, 0-9, - and _ joined by single dots", key)
		}
	}
	if err := checkLocation(); err != nil {
		return err
	}
	return preferences.Unset(ctx, key)
}
