// Package perplexity asks the models of Perplexity, which search the web and name
// their sources at the end of the answer.
//
// Importing it registers the runtime "perplexity". It is not part of backends/all
// unless that is built with the tag rest. How it is run, its options, instructions
// and errors are those of package rest.
//
// # Address, model and token
//
// PERPLEXITY_BASE_URL replaces the address https://api.perplexity.ai. Without a
// model in the request PERPLEXITY_MODEL counts, and without that sonar-reasoning.
// The token is in PERPLEXITY_API_KEY.
package perplexity

import (
	"github.com/busdk/bus-agent/backends/rest"
	"github.com/busdk/bus-agent/registry"
)

// ID is the runtime's ID.
const ID = "perplexity"

func init() { registry.Register(Runtime()) }

// Runtime returns the description of Perplexity.
func Runtime() registry.Runtime {
	return rest.Runtime(rest.Service{ID: ID, Name: "Perplexity", Provider: "perplexity", TokenEnv: "PERPLEXITY_API_KEY"})
}
