//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
)

// TestOutputs compares what runs make of each recorded output of a CLI: the events, the text,
// the result and the error, when the CLI then succeeds and when it fails. (Tests of the
// engines replay recorded sessions; make frozen runs them.)
func TestOutputs(t *testing.T) {
	t.Parallel()
	recordings, err := filepath.Glob("../../backends/*/testdata/*.ndjson")
	if err != nil {
		t.Fatal(err)
	}
	more, err := filepath.Glob("../../backends/more/testdata/*/*.ndjson")
	if err != nil {
		t.Fatal(err)
	}
	byRuntime := map[string][]string{}
	for _, path := range append(recordings, more...) {
		id := filepath.Base(filepath.Dir(path))
		if id == "testdata" {
			id = filepath.Base(filepath.Dir(filepath.Dir(path)))
		}
		byRuntime[id] = append(byRuntime[id], path)
	}
	if len(byRuntime) < 10 {
		t.Fatalf("recordings of %q only", sorted(byRuntime))
	}
	for id, paths := range byRuntime {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			rt, ok := registry.Default().Lookup(id)
			if !ok {
				t.Fatal("no such runtime")
			}
			w := newWorld(t, rt, play{})
			var lines []string
			for _, path := range paths {
				lines = append(lines, "== "+filepath.Base(path))
				lines = append(lines, w.output(t, path)...)
			}
			golden(t, filepath.Join("outputs", id+".txt"), lines)
		})
	}
}

// ended is how an error reports the end of the process.
var ended = regexp.MustCompile(`exit code \d: |; the agent was ended$`)

// output returns what runs make of the output in the file path.
func (w *world) output(t *testing.T, path string) (lines []string) {
	t.Helper()
	output, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, code := range []int{0, 1} {
		w.plays(t, play{Output: string(output), Code: code})
		var events []byte
		var text bytes.Buffer
		result, err := w.runner(nil).Run(t.Context(), w.req, agent.Output{Text: &text, Events: func(e *agent.Event) error {
			events = append(e.AppendJSON(events), '\n')
			return nil
		}})
		failure := fmt.Sprint(err)
		if errors.Is(err, agent.ErrAuthentication) {
			// The runner ends such an agent, which may have ended already.
			result.ExitCode, result.Signal = 0, ""
			failure = ended.ReplaceAllString(failure, "")
		}
		whole, jsonErr := json.Marshal(result)
		if jsonErr != nil {
			t.Fatal(jsonErr)
		}
		if code == 0 {
			for line := range strings.Lines(string(events)) {
				lines = append(lines, "event: "+strings.TrimSuffix(line, "\n"))
			}
			lines = append(lines, shown("text", text.String())...)
		}
		exit := fmt.Sprintf("exit code %d", code)
		lines = append(lines, exit+": result "+string(whole))
		if err != nil {
			lines = append(lines, fmt.Sprintf("%s: error %s: %v", exit, agent.KindOf(err), failure))
		}
	}
	for i, line := range lines {
		lines[i] = strings.ReplaceAll(line, w.root, "$ROOT")
	}
	w.warnings = nil // they are in the result
	return lines
}
