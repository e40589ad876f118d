package backendtest

import (
	"slices"
	"testing"

	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/registry/described"
)

// ndjson is a registry with the runtime whose output described ones print.
func ndjson(t *testing.T) *registry.Registry {
	t.Helper()
	r := new(registry.Registry)
	if err := r.Register(sample().Runtime); err != nil {
		t.Fatal(err)
	}
	return r
}

// Runtimes that are described in JSON, one for each way of the prompt and of
// the output.
func TestDescribedRuntimesConform(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		description string
		harness     Harness
	}{
		"stdin and text": {`{"executables":["mine"],"install_url":"https://example.com/mine","slash_commands":true}`,
			Harness{Lines: Lines{Text: "{text}"}}},
		"argument and options": {`{"executables":["mine"],"install_url":"https://example.com/mine","prompt":"argument",
			"args":["run",["--model","{model}"],"--resume={resume}","{access}","--","{prompt}"],
			"access":{"read":["--look"],"full":["--all"]},"instructions":"none","env":{"MINE_COLOR":"0","LANG":null}}`,
			Harness{Prompt: PromptArgument, Lines: Lines{Text: "{text}"}}},
		"descriptor": {`{"executables":["mine"],"install_url":"https://example.com/mine","prompt":"file","args":["--from={prompt-file}"]}`,
			Harness{Prompt: PromptDescriptor, Lines: Lines{Text: "{text}"}}},
		"native": {`{"executables":["mine","mine-cli"],"install_url":"https://example.com/mine","instructions":"native","executed":[".mine/hooks.json"]}`,
			Harness{NativeInstructions: true, Lines: Lines{Text: "{text}"}}},
		"another's output": {`{"executables":["mine"],"install_url":"https://example.com/mine","output":"ndjson:sample",
			"args":["run",["--resume","{resume}"],["--model","{model}"]],"slash_commands":true}`,
			Harness{Lines: sample().Lines}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rt, err := described.Runtime("mine", []byte(c.description), ndjson(t))
			if err != nil {
				t.Fatal(err)
			}
			c.harness.Runtime = rt
			if slices.Contains([]string{"descriptor", "another's output"}, name) { // with the files of "stdin and text"
				run(t, c.harness, withoutFiles())
				return
			}
			Run(t, c.harness)
		})
	}
}
