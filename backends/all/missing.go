package all

import (
	"fmt"

	"github.com/busdk/bus-agent/registry"
)

// optional are the runtimes that a build tag adds or leaves out, each with the way to
// build with it.
var optional = map[string]string{
	"claude":     "without the tag busagent_no_claude",
	"codex":      "without the tag busagent_no_codex",
	"cursor":     "without the tag busagent_no_cursor",
	"gemini":     "without the tag busagent_no_gemini",
	"openai":     withREST,
	"perplexity": withREST,
	"xai":        withREST,
}

const withREST = "with -tags rest"

func init() { explainMissing(registry.Default()) }

// explainMissing records how to get the runtimes that r lacks.
func explainMissing(r *registry.Registry) {
	for id, how := range optional {
		if _, ok := r.Lookup(id); !ok {
			r.Refuse(id, fmt.Errorf("this build does not contain it; build %s, or import github.com/busdk/bus-agent/backends/%s", how, id))
		}
	}
}
