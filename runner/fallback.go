package runner

import (
	"context"
	"slices"

	"github.com/busdk/bus-agent/agent"
)

// NoFallback, alone in a fallback list, means that there is no fallback.
const NoFallback = "none"

// Fallback returns the tokens of the runtimes that package fallback tries after the
// first, in order, and the source of the list. The argument is the list of the call;
// nil means the first source that is set. An unknown runtime, or one listed twice, is
// an agent.ErrUsage error.
func (r *Runner) Fallback(ctx context.Context, list []string) (Setting[[]string], error) {
	source := SourceCall
	if list == nil {
		var err error
		if list, source, err = r.lookup(ctx, r.warn).list(r.sources().Fallback); err != nil {
			return Setting[[]string]{}, err
		}
	}
	if len(list) == 1 && list[0] == NoFallback {
		list = []string{}
	}
	for i, token := range list {
		_, _, err := r.registry().ParseToken(token)
		if err == nil && slices.Contains(list[:i], token) {
			err = agent.Usagef("runtime %q is listed twice", token)
		}
		if err != nil {
			return Setting[[]string]{}, agent.Usagef("fallback list (%s): %w", source, err)
		}
	}
	return Setting[[]string]{list, source}, nil
}
