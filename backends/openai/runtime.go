// Package openai asks a model behind any OpenAI-compatible endpoint: that of
// OpenAI, of another service, or of a model server on this machine, such as those
// of llama.cpp, Ollama, vLLM and LM Studio.
//
// Importing it registers the runtime "openai". It is not part of backends/all
// unless that is built with the tag rest. How it is run, its options, instructions
// and errors are those of package rest.
//
// # Address, model and token
//
// OPENAI_BASE_URL, or OPENAI_API_BASE, is the address, for example
// http://127.0.0.1:11434/v1; without either it is that of OpenAI. Without a model
// in the request OPENAI_MODEL counts, and without that the server chooses, if it
// can. The token is in OPENAI_API_KEY; a local server needs none. It is sent to
// whatever address is set.
package openai

import (
	"github.com/busdk/bus-agent/backends/rest"
	"github.com/busdk/bus-agent/registry"
)

// ID is the runtime's ID.
const ID = "openai"

func init() { registry.Register(Runtime()) }

// Runtime returns the description of any OpenAI-compatible endpoint.
func Runtime() registry.Runtime {
	rt := rest.Runtime(rest.Service{ID: ID, Name: "OpenAI-compatible endpoint", TokenEnv: "OPENAI_API_KEY"})
	rt.ProviderEnv = []string{"OPENAI_ORG_ID"}
	return rt
}
