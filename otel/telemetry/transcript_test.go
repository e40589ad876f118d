package telemetry_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"go.opentelemetry.io/otel/codes"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"

	_ "github.com/busdk/bus-agent/backends/all"
)

// Every call in the recorded output of real agents becomes a span that its result ends.
func TestTranscripts(t *testing.T) {
	t.Parallel()
	calls := 0
	for _, rt := range registry.Default().All() {
		files, err := filepath.Glob(filepath.Join("..", "..", "backends", rt.ID, "testdata", "*.ndjson"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no transcripts of %s: %v", rt.ID, err)
		}
		for _, file := range files {
			calls += replay(t, rt, file)
		}
	}
	if calls < 8 {
		t.Errorf("the transcripts have %d calls", calls)
	}
}

func replay(t *testing.T, rt registry.Runtime, file string) (calls int) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	b := newRecorder(t)
	r := b.record(t.Context(), agent.Recordable{Start: agent.Start{Runtime: rt.ID}, Provider: rt.Provider})
	ended := map[string]bool{} // by call, whether it failed
	open := map[string]bool{}
	var usage *agent.Usage
	decoder := rt.NewDecoder()
	for line := range bytes.Lines(text) {
		for _, e := range decoder.Decode(bytes.TrimSuffix(line, []byte("\n")), nil) {
			switch {
			case e.Kind == agent.KindToolCall:
				open[e.Tool.ID] = true
			case e.Kind == agent.KindToolResult && open[e.Tool.ID]:
				delete(open, e.Tool.ID)
				ended[e.Tool.ID] = e.Failed
			case e.Kind == agent.KindUsage:
				usage = e.Clone().Usage
			}
			if err := r.Events(&e); err != nil {
				t.Fatal(err)
			}
		}
	}
	b.end(r, agent.Result{Usage: usage}, nil)

	name := filepath.Base(file)
	spans := b.traces.GetSpans()
	if len(spans) != len(ended)+len(open)+1 {
		t.Errorf("%s: spans %v, want the run, %d ended calls and %d open ones", name, b.names(), len(ended), len(open))
	}
	for _, s := range spans {
		if s.Name == "invoke_agent "+rt.ID {
			continue
		}
		attributes := attributesOf(s.Attributes)
		id := attributes["gen_ai.tool.call.id"]
		failed, over := ended[id]
		if over == (attributes["bus_agent.tool.unfinished"] == "true") || failed != (s.Status.Code == codes.Error) {
			t.Errorf("%s: %s has %v, %v; want ended %t, failed %t", name, s.Name, attributes, s.Status, over, failed)
		}
	}
	got := points(b.metrics()["gen_ai.client.token.usage"], "gen_ai.token.type")
	if usage != nil && (got["input"].sum != float64(usage.Input) || got["output"].sum != float64(usage.Output)) {
		t.Errorf("%s: tokens %v, want %+v", name, got, usage)
	}
	return len(ended) + len(open)
}
