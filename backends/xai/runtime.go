// Package xai asks the models of xAI.
//
// Importing it registers the runtime "xai". It is not part of backends/all unless
// that is built with the tag rest. How it is run, its options, instructions and
// errors are those of package rest.
//
// # Address, model and token
//
// The first of XAI_API_ENDPOINT, XAI_BASE_URL and XAI_API_BASE that is set replaces
// the address https://api.x.ai. Without a model in the request XAI_MODEL counts,
// and without that grok-4. The token is in XAI_API_KEY.
package xai

import (
	"github.com/busdk/bus-agent/backends/rest"
	"github.com/busdk/bus-agent/registry"
)

// ID is the runtime's ID.
const ID = "xai"

func init() { registry.Register(Runtime()) }

// Runtime returns the description of xAI.
func Runtime() registry.Runtime {
	return rest.Runtime(rest.Service{ID: ID, Name: "xAI", Provider: "x_ai", TokenEnv: "XAI_API_KEY"})
}
