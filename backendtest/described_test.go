package backendtest_test

import (
	"testing"

	"github.com/busdk/bus-agent/backendtest"
	"github.com/busdk/bus-agent/registry"
)

// Runtimes that are described in JSON, one for each way of the prompt.
func TestDescribedRuntimesConform(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		description string
		harness     backendtest.Harness
	}{
		"stdin and text": {`{"executables":["mine"],"install_url":"https://example.com/mine","slash_commands":true}`,
			backendtest.Harness{Lines: backendtest.Lines{Text: "{text}"}}},
		"argument and options": {`{"executables":["mine"],"install_url":"https://example.com/mine","prompt":"argument",
			"args":["run",["--model","{model}"],"--resume={resume}","{access}","--","{prompt}"],
			"access":{"read":["--look"],"full":["--all"]},"instructions":"none","env":{"MINE_COLOR":"0","LANG":null}}`,
			backendtest.Harness{Prompt: backendtest.PromptArgument, Lines: backendtest.Lines{Text: "{text}"}}},
		"descriptor": {`{"executables":["mine"],"install_url":"https://example.com/mine","prompt":"file","args":["--from={prompt-file}"]}`,
			backendtest.Harness{Prompt: backendtest.PromptDescriptor, Lines: backendtest.Lines{Text: "{text}"}}},
		"native": {`{"executables":["mine","mine-cli"],"install_url":"https://example.com/mine","instructions":"native","executed":[".mine/hooks.json"]}`,
			backendtest.Harness{NativeInstructions: true, Lines: backendtest.Lines{Text: "{text}"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rt, err := registry.Describe("mine", []byte(c.description), nil)
			if err != nil {
				t.Fatal(err)
			}
			c.harness.Runtime = rt
			backendtest.Run(t, c.harness)
		})
	}
}
