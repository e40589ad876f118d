package runner

import (
	"context"
	"errors"
	"io/fs"
	"slices"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
)

// A Detected is a registered runtime and whether it can be used here.
type Detected struct {
	Runtime registry.Runtime
	Path    string // absolute path of the executable; "" if there is none
	// Disabled reports that the enable or disable list excludes it.
	Disabled bool
	Problem  error // why an executable that exists was refused
}

// Available reports whether the runtime may be selected automatically.
func (d Detected) Available() bool { return d.Path != "" && !d.Disabled }

// Detect returns every registered runtime in the order of automatic selection,
// available or not: a call that names no runtime gets the first available one. It
// starts no process. An unknown name in a list is an agent.ErrUsage error.
func (r *Runner) Detect(ctx context.Context) ([]Detected, error) {
	return r.detect(r.lookup(ctx, r.warn))
}

func (r *Runner) detect(l *lookup) ([]Detected, error) {
	lists, err := r.lists(l)
	if err != nil {
		return nil, err
	}
	runtimes := r.registry().All()
	slices.SortStableFunc(runtimes, func(a, b registry.Runtime) int {
		return rank(lists.Order.Value, a.ID) - rank(lists.Order.Value, b.ID)
	})
	found := make([]Detected, len(runtimes))
	for i, rt := range runtimes {
		d := Detected{Runtime: rt, Disabled: lists.disabled(rt.ID)}
		d.Path, d.Problem = find(rt, l)
		found[i] = d
	}
	return found, nil
}

func rank(order []string, id string) int {
	if i := slices.Index(order, id); i >= 0 {
		return i
	}
	return len(order)
}

// find returns the path of the runtime's executable, "" if there is none. The error
// says why an executable that exists is refused.
func find(rt registry.Runtime, l *lookup) (string, error) {
	path, _ := agent.LookupEnv(l.environ, "PATH")
	var problem error
	for _, name := range rt.Executables {
		file, err := l.path.find(name, path)
		if err == nil {
			return file, nil
		}
		if problem == nil && !errors.Is(err, fs.ErrNotExist) {
			problem = err
		}
	}
	return "", problem
}

// Lists are the user's order, enable and disable lists of runtime IDs.
type Lists struct {
	Order, Enable, Disable Setting[[]string]
}

// disabled reports whether the lists exclude the runtime; disable wins over enable.
func (l Lists) disabled(id string) bool {
	if slices.Contains(l.Disable.Value, id) {
		return true
	}
	return l.Enable.Source != "" && !slices.Contains(l.Enable.Value, id)
}

// Lists returns the lists in effect and where each came from. An unknown name
// is an agent.ErrUsage error.
func (r *Runner) Lists(ctx context.Context) (Lists, error) {
	return r.lists(r.lookup(ctx, r.warn))
}

func (r *Runner) lists(l *lookup) (Lists, error) {
	var lists Lists
	sources := r.sources()
	for _, item := range []struct {
		setting *Setting[[]string]
		call    []string
		sources []Source
		what    string
	}{
		{&lists.Order, r.Order, sources.Order, "order"},
		{&lists.Enable, r.Enable, sources.Enable, "enable"},
		{&lists.Disable, r.Disable, sources.Disable, "disable"},
	} {
		values, source := item.call, SourceCall
		if item.call == nil {
			var err error
			if values, source, err = l.list(item.sources); err != nil {
				return Lists{}, err
			}
		}
		for _, id := range values {
			if _, ok := r.registry().Lookup(id); !ok {
				_, _, err := r.registry().ParseToken(id)
				if err == nil {
					err = agent.Usagef("runtime %q is a variant; name the runtime alone", id)
				}
				return Lists{}, agent.Usagef("%s list (%s): %w", item.what, source, err)
			}
		}
		*item.setting = Setting[[]string]{values, source}
	}
	return lists, nil
}
