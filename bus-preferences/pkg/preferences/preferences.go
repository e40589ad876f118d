package preferences

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// An Item is one preference. Value is in canonical form on one line.
type Item struct {
	Key   string
	Value json.RawMessage
}

// Get returns the value of key in canonical form on one line, and whether it is
// set. The value belongs to the caller.
func Get(ctx context.Context, key string) (value json.RawMessage, ok bool, err error) {
	return userStore().get(ctx, key)
}

// GetString returns the value of key as text, and whether it is set. A value
// that is not a JSON string is an [ErrNotString] error beside ok true.
func GetString(ctx context.Context, key string) (value string, ok bool, err error) {
	return userStore().getString(ctx, key)
}

// SetString sets key to value as a JSON string. The value must be valid UTF-8.
func SetString(ctx context.Context, key, value string) error {
	return userStore().setString(ctx, key, value)
}

// SetJSON sets key to raw, one JSON text of any type with at most 256 levels of
// nesting; it is stored in canonical form. The file and its directory are created where they do not exist, for the
// user alone.
func SetJSON(ctx context.Context, key string, raw json.RawMessage) error {
	return userStore().setJSON(ctx, key, raw)
}

// Unset removes key. A key that is not set is no error, and then nothing is
// written.
func Unset(ctx context.Context, key string) error {
	return userStore().unset(ctx, key)
}

// List returns the preferences whose first segments are those of prefix, sorted
// by key; all of them for an empty prefix. "bus-agent" matches
// "bus-agent.model" and not "bus-agents.model". Keys in the file that do not
// follow the grammar are left out.
func List(ctx context.Context, prefix string) (items []Item, err error) {
	return userStore().list(ctx, prefix)
}

func (s store) get(ctx context.Context, key string) (json.RawMessage, bool, error) {
	if err := checkKey(key); err != nil {
		return nil, false, err
	}
	doc, err := s.read(ctx)
	if err != nil {
		return nil, false, err
	}
	value, ok := doc.values[key]
	return value, ok, nil
}

func (s store) getString(ctx context.Context, key string) (string, bool, error) {
	raw, ok, err := s.get(ctx, key)
	if err != nil || !ok {
		return "", false, err
	}
	if raw[0] != '"' {
		return "", true, fmt.Errorf("%w: %s", ErrNotString, key)
	}
	var value string
	err = json.Unmarshal(raw, &value)
	return value, true, err
}

func (s store) setString(ctx context.Context, key, value string) error {
	if err := checkKey(key); err != nil {
		return err
	}
	raw, err := encodeString(value)
	if err != nil {
		return fmt.Errorf("%w for %s: %w", ErrInvalidJSON, key, err)
	}
	return s.setJSON(ctx, key, raw)
}

func (s store) setJSON(ctx context.Context, key string, raw json.RawMessage) error {
	if err := checkKey(key); err != nil {
		return err
	}
	value, err := canonical(raw, maxDepth)
	if err != nil {
		return fmt.Errorf("%w for %s: %w", ErrInvalidJSON, key, err)
	}
	return s.update(ctx, func(doc *document) { doc.values[key] = value })
}

func (s store) unset(ctx context.Context, key string) error {
	if _, ok, err := s.get(ctx, key); err != nil || !ok {
		return err
	}
	return s.update(ctx, func(doc *document) { delete(doc.values, key) })
}

func (s store) list(ctx context.Context, prefix string) ([]Item, error) {
	if prefix != "" {
		if err := checkKey(prefix); err != nil {
			return nil, err
		}
	}
	doc, err := s.read(ctx)
	if err != nil {
		return nil, err
	}
	var items []Item
	for key, value := range doc.values {
		if isKey(key) && hasSegments(key, prefix) {
			items = append(items, Item{Key: key, Value: value})
		}
	}
	slices.SortFunc(items, func(a, b Item) int { return strings.Compare(a.Key, b.Key) })
	return items, nil
}
