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

// Get returns the value of key, in canonical form on one line, and reports
// whether it is set. The caller may modify the value.
func Get(ctx context.Context, key string) (value json.RawMessage, ok bool, err error) {
	return userStore().get(ctx, key)
}

// GetString returns the value of key, a JSON string, and reports whether it is
// set. For a value of another type, ok is true and the error is [ErrNotString].
func GetString(ctx context.Context, key string) (value string, ok bool, err error) {
	return userStore().getString(ctx, key)
}

// SetString sets key to value as a JSON string. The value must be valid UTF-8.
func SetString(ctx context.Context, key, value string) error {
	return userStore().setString(ctx, key, value)
}

// SetJSON sets key to raw, a JSON value of any type with at most 256 levels of
// nesting. It creates the file, and its directory, if they do not exist, with
// access for the user only. The file may have up to 4 MiB.
func SetJSON(ctx context.Context, key string, raw json.RawMessage) error {
	return userStore().setJSON(ctx, key, raw)
}

// Unset removes key. It does nothing if key is not set.
func Unset(ctx context.Context, key string) error {
	return userStore().unset(ctx, key)
}

// List returns the preferences under prefix, sorted by key. The prefix matches
// whole segments: "bus-agent" matches "bus-agent.model" but not
// "bus-agents.model". The empty prefix matches all keys. Invalid keys in the
// file are skipped.
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
