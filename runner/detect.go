package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
)

// A Detected is a registered runtime and whether it can be used here.
type Detected struct {
	Runtime registry.Runtime
	Path    string // absolute path of the executable; "" if there is none
	// Disabled says which list excludes the runtime, such as "disabled by
	// BUS_AGENT_DISABLE"; "" if none does.
	Disabled string
	Problem  error // why an executable that exists was refused
}

// Available reports whether the runtime can be used.
func (d Detected) Available() bool { return d.Path != "" && d.Disabled == "" }

// Automatic reports whether the runtime may be selected automatically: one that cannot run
// once is used only if it is named.
func (d Detected) Automatic() bool {
	return d.Available() && !d.Runtime.NamedOnly && d.Runtime.Run.Command != nil
}

// Detect returns every registered runtime in the order of automatic selection,
// available or not: a call that names no runtime gets the first that is Automatic. It
// starts no process. The error is that of an invalid list, see [Runner.Lists], which
// counts as not set; the runtimes are returned with it.
func (r *Runner) Detect(ctx context.Context) ([]Detected, error) {
	found, lists := r.detect(r.lookup(ctx, r.warn))
	return found, cmp.Or(lists.Enable.Err, lists.Disable.Err, lists.Order.Err)
}

func (r *Runner) detect(l *lookup) ([]Detected, Lists) {
	lists := r.lists(l)
	runtimes := r.registry().All()
	slices.SortStableFunc(runtimes, func(a, b registry.Runtime) int {
		return rank(lists.Order.Value, a) - rank(lists.Order.Value, b)
	})
	found := make([]Detected, len(runtimes))
	for i, rt := range runtimes {
		d := Detected{Runtime: rt, Disabled: lists.disabled(rt.ID)}
		d.Path, d.Problem = find(rt, l)
		found[i] = d
	}
	return found, lists
}

func rank(order []string, rt registry.Runtime) int {
	switch i := slices.Index(order, rt.ID); {
	case i >= 0:
		return i
	case rt.NamedOnly:
		return len(order) + 2
	case rt.LastChoice:
		return len(order) + 1
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

// disabled says which list excludes the runtime; disable wins over enable.
func (l Lists) disabled(id string) string {
	switch {
	case slices.Contains(l.Disable.Value, id):
		return "disabled by " + l.Disable.Source
	case l.Enable.Source != "" && l.Enable.Err == nil && !slices.Contains(l.Enable.Value, id):
		return "not enabled by " + l.Enable.Source
	}
	return ""
}

// Lists returns the lists in effect and where each came from. A runtime that the
// registry does not have is left out with a warning, because builds with different
// runtimes share their lists. A name that cannot be an ID is an error; see [Setting].
func (r *Runner) Lists(ctx context.Context) Lists {
	return r.lists(r.lookup(ctx, r.warn))
}

func (r *Runner) lists(l *lookup) (lists Lists) {
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
		list := Setting[[]string]{Value: item.call, Source: SourceCall}
		if item.call == nil {
			list = l.list(item.sources)
		}
		*item.setting = r.known(l, item.what, list, false)
	}
	return lists
}

// known returns list without the runtimes that the registry does not have, of which it
// warns. A name that cannot be a runtime, or is a variant where none is allowed, is an
// error.
func (r *Runner) known(l *lookup, what string, list Setting[[]string], variants bool) Setting[[]string] {
	if list.Source == "" || list.Err != nil {
		return list
	}
	known := make([]string, 0, len(list.Value))
	for _, name := range list.Value {
		id, variant, colon := strings.Cut(name, ":")
		_, _, unknown := r.registry().ParseToken(name)
		var err error
		switch {
		case !registry.ValidID(id) || colon && !registry.ValidID(variant):
			err = unknown
		case colon && !variants:
			err = agent.Usagef("runtime %q is a variant; name %s alone", name, id)
		case unknown != nil:
			warning := fmt.Sprintf("%s list (%s): %v; ignoring it", what, list.Source, unknown)
			if list.Source != SourceCall {
				warning += "; " + repair(list.Source)
			}
			l.warn(warning)
			continue
		}
		if err != nil {
			return Setting[[]string]{Source: list.Source, Err: SourceError(list.Source, err)}
		}
		known = append(known, name)
	}
	list.Value = known
	return list
}
