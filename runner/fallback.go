package runner

import (
	"context"
	"slices"

	"github.com/busdk/bus-agent/agent"
)

// NoFallback, alone in a fallback list, means that there is no fallback.
const NoFallback = "none"

// Fallback returns the tokens of the runtimes that package fallback tries after the
// first, in order, and the source of the list. A list that is not nil is used as it is;
// nil means the first source that is set. An unknown runtime of call is an error; one of
// a source is left out with a warning, as [Runner.Lists] does. One that is listed twice
// is an error.
func (r *Runner) Fallback(ctx context.Context, call []string) Setting[[]string] {
	list := Setting[[]string]{Value: call, Source: SourceCall}
	l := r.lookup(ctx, r.warn)
	if call == nil {
		list = l.list(r.sources().Fallback)
	}
	if len(list.Value) == 1 && list.Value[0] == NoFallback {
		list.Value = []string{}
	}
	if call == nil {
		list = r.known(l, "fallback", list, true)
	}
	for i, token := range list.Value {
		_, _, err := r.registry().ParseToken(token)
		if err == nil && slices.Contains(list.Value[:i], token) {
			err = SourceError(list.Source, agent.Usagef("runtime %q is listed twice", token))
		}
		if err != nil {
			return Setting[[]string]{Source: list.Source, Err: err}
		}
	}
	return list
}
