package runner

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/busdk/bus-agent/agent"
)

// A Setting is a value and the name of its source: "call", a variable, a preference
// key, or "built-in" for the default of bus-agent; "" if it is not set.
type Setting[T any] struct {
	Value  T
	Source string
}

// The sources that are neither a variable nor a preference.
const (
	SourceCall           = "call"
	SourceBuiltIn        = "built-in"
	SourceFirstAvailable = "first available"
)

// lookup reads sources for one operation. After one warning, an unreadable preferences
// file counts as empty.
type lookup struct {
	ctx     context.Context
	environ []string
	prefs   Preferences
	warn    func(string)
	path    pathRule
}

func (r *Runner) lookup(ctx context.Context, warn func(string)) *lookup {
	l := &lookup{ctx: ctx, environ: r.environ(), prefs: r.Preferences, warn: warn}
	l.path = newPathRule(r.Workdir, l.environ, r.TrustWorkspace)
	if s, ok := r.Preferences.(Snapshotter); ok {
		var err error
		if l.prefs, err = s.Snapshot(ctx); err != nil {
			l.unreadable(err)
		}
	}
	return l
}

// unreadable warns and ignores the preferences from then on.
func (l *lookup) unreadable(err error) {
	l.prefs = nil
	l.warn(fmt.Sprintf("preferences cannot be read; ignoring them: %v", err))
}

// env returns the value of a variable; an empty one counts as not set.
func (l *lookup) env(s Source) (string, bool) {
	value, _ := agent.LookupEnv(l.environ, s.Env)
	return value, s.Env != "" && value != ""
}

// preference returns the JSON value of a key.
func (l *lookup) preference(key string) (json.RawMessage, bool) {
	if key == "" || l.prefs == nil {
		return nil, false
	}
	value, ok, err := l.prefs.Get(l.ctx, key)
	if err != nil {
		l.unreadable(err)
		return nil, false
	}
	return value, ok
}

// text returns the first value of sources that is set, as a string, for the
// runtime with the given ID.
func (l *lookup) text(sources []Source, runtimeID, model string) (value string, source string, err error) {
	for _, s := range sources {
		if s.Runtime != "" && s.Runtime != runtimeID {
			continue
		}
		if value, ok := l.env(s); ok {
			return value, s.Env, nil
		}
		key := s.Key
		if s.ForModel {
			key = KeyForModel(s.Key, model)
		}
		raw, ok := l.preference(key)
		if !ok {
			continue
		}
		if json.Unmarshal(raw, &value) != nil {
			return "", "", agent.Usagef("preference %s is not a string; set it again or unset it", key)
		}
		if value == "" {
			return "", "", agent.Usagef("preference %s is empty; set it again or unset it", key)
		}
		return value, key, nil
	}
	return "", "", nil
}

// list returns the first list of sources that is set: comma lists in
// variables, JSON arrays of strings in preferences.
func (l *lookup) list(sources []Source) (values []string, source string, err error) {
	for _, s := range sources {
		if value, ok := l.env(s); ok {
			return splitList(value), s.Env, nil
		}
		raw, ok := l.preference(s.Key)
		if !ok {
			continue
		}
		if json.Unmarshal(raw, &values) != nil || values == nil { // null
			return nil, "", agent.Usagef("preference %s is not a list of strings; set it again or unset it", s.Key)
		}
		return values, s.Key, nil
	}
	return nil, "", nil
}

func splitList(text string) []string {
	values := []string{}
	for v := range strings.SplitSeq(text, ",") {
		if v = strings.TrimSpace(v); v != "" {
			values = append(values, v)
		}
	}
	return values
}

// parsed returns one setting: the call's value, or the first source's, or the built-in
// default.
func parsed[T ~string](call T, sources []Source, l *lookup, runtimeID, model string, builtIn T, parse func(string) (T, error)) (Setting[T], error) {
	value, source := string(call), SourceCall
	if call == "" {
		var err error
		if value, source, err = l.text(sources, runtimeID, model); err != nil {
			return Setting[T]{}, err
		}
	}
	if value == "" {
		if builtIn == "" {
			return Setting[T]{}, nil
		}
		return Setting[T]{builtIn, SourceBuiltIn}, nil
	}
	word, err := parse(value)
	if err != nil {
		if source != SourceCall {
			return Setting[T]{}, agent.Usagef("%s: %w", source, err)
		}
		return Setting[T]{}, err
	}
	return Setting[T]{word, source}, nil
}
