package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/busdk/bus-agent/agent"
)

// A Setting is a value and the name of its source: "call", a variable, a preference
// key, or "built-in" for the default of bus-agent; "" if it is not set. The key of a
// setting for one model ends in the name of the model as it is.
//
// Err is the agent.ErrUsage error of a source whose value is not allowed; Value is zero
// then. It fails only what needs the setting.
type Setting[T any] struct {
	Value  T
	Source string
	Err    error
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

// lookup begins one for the workdir and the added directories.
func (r *Runner) lookup(ctx context.Context, warn func(string), addDirs ...string) *lookup {
	l := &lookup{ctx: ctx, environ: r.environ(), prefs: r.Preferences, warn: warn}
	l.path = newPathRule(l.environ, r.TrustWorkspace, append([]string{r.Workdir}, addDirs...)...)
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
// runtime with the given ID, and its source, also with an error.
func (l *lookup) text(sources []Source, runtimeID, model string) (value string, source string, err error) {
	for _, s := range sources {
		if s.Runtime != "" && s.Runtime != runtimeID {
			continue
		}
		if value, ok := l.env(s); ok {
			return value, s.Env, nil
		}
		key, source := s.Key, s.Key
		switch {
		case s.ForModel:
			key, source = KeyForModel(s.Key, model), s.Key+"."+model
		case s.ForRuntime && runtimeID == "":
			continue
		case s.ForRuntime:
			key = KeyForModel(s.Key, runtimeID)
			source = key
		}
		raw, ok := l.preference(key)
		switch {
		case !ok:
			continue
		case json.Unmarshal(raw, &value) != nil:
			err = SourceError(source, errors.New("it is not a string"))
		case value == "":
			err = SourceError(source, errors.New("it is empty"))
		}
		return value, source, err
	}
	return "", "", nil
}

// list returns the first list of sources that is set: comma lists in variables, JSON
// arrays of strings in preferences.
func (l *lookup) list(sources []Source) Setting[[]string] {
	for _, s := range sources {
		if value, ok := l.env(s); ok {
			return Setting[[]string]{Value: splitList(value), Source: s.Env}
		}
		raw, ok := l.preference(s.Key)
		if !ok {
			continue
		}
		var values []string
		if json.Unmarshal(raw, &values) != nil || values == nil { // null
			return Setting[[]string]{Source: s.Key, Err: SourceError(s.Key, errors.New("it is not a list of strings"))}
		}
		return Setting[[]string]{Value: values, Source: s.Key}
	}
	return Setting[[]string]{}
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
func parsed[T ~string](call T, sources []Source, l *lookup, runtimeID, model string, builtIn T, parse func(string) (T, error)) Setting[T] {
	value, source := string(call), SourceCall
	if call == "" {
		var err error
		if value, source, err = l.text(sources, runtimeID, model); err != nil {
			return Setting[T]{Source: source, Err: err}
		}
	}
	if value == "" {
		if builtIn == "" {
			return Setting[T]{}
		}
		return Setting[T]{Value: builtIn, Source: SourceBuiltIn}
	}
	word, err := parse(value)
	if err != nil {
		return Setting[T]{Source: source, Err: SourceError(source, err)}
	}
	return Setting[T]{Value: word, Source: source}
}

// SourceError returns the error of a value of a source, with the source and how to repair
// it. Source is that of a [Setting]; the error of a value of the call is returned as it
// is.
func SourceError(source string, err error) error {
	if source == SourceCall {
		return err
	}
	what := source
	if strings.HasPrefix(source, "bus-agent.") {
		what = "preference " + source
	}
	return agent.Usagef("%s: %w; %s", what, err, repair(source))
}

// repair says how to repair the value of a source.
func repair(source string) string {
	switch {
	case strings.HasPrefix(source, "bus-agent."):
		return fmt.Sprintf("set it again, or remove it with \"bus-agent unset %s\"", shellWord(source))
	case strings.HasPrefix(source, "/"):
		return "change or remove the file"
	case strings.Contains(source, "."): // a preference of another program
		return "set it again"
	}
	return "change or unset " + source
}

// shellWord returns a key, which can end in the name of a model, as one word of a shell.
func shellWord(key string) string {
	if strings.Trim(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:") == "" {
		return key
	}
	return "'" + strings.ReplaceAll(key, "'", `'\''`) + "'"
}
