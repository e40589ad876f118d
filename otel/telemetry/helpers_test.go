package telemetry_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/otel/telemetry"
)

// recorder is a Recorder with exporters in memory.
type recorder struct {
	*telemetry.Recorder
	t      *testing.T
	traces *tracetest.InMemoryExporter
	reader *sdkmetric.ManualReader
}

func newRecorder(t *testing.T, options ...telemetry.Option) *recorder {
	t.Helper()
	b := &recorder{t: t, traces: tracetest.NewInMemoryExporter(), reader: sdkmetric.NewManualReader()}
	b.Recorder = telemetry.New(slices.Concat([]telemetry.Option{
		telemetry.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSyncer(b.traces))),
		telemetry.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(b.reader))),
		telemetry.WithContent(false), telemetry.WithPropagation(true),
	}, options)...)
	return b
}

// record begins a run and returns its recording.
func (b *recorder) record(ctx context.Context, run agent.Recordable) agent.Recording {
	b.t.Helper()
	recording, err := b.Record(ctx, run)
	if err != nil {
		b.t.Fatal(err)
	}
	return recording
}

// send passes events to the recording and then overwrites them, as a decoder may.
func (b *recorder) send(recording agent.Recording, events ...agent.Event) {
	b.t.Helper()
	for _, e := range events {
		if err := recording.Events(&e); err != nil {
			b.t.Fatal(err)
		}
		if e.Tool != nil {
			for i := range e.Tool.Input {
				e.Tool.Input[i] = '#'
			}
			*e.Tool = agent.Tool{ID: "spoiled", Name: "spoiled"}
		}
		if e.Usage != nil {
			if e.Usage.CostUSD != nil {
				*e.Usage.CostUSD = 666
			}
			*e.Usage = agent.Usage{Input: 666}
		}
	}
}

func (b *recorder) end(recording agent.Recording, result agent.Result, err error) {
	b.t.Helper()
	if err := recording.End(b.t.Context(), result, err); err != nil {
		b.t.Fatal(err)
	}
}

// span returns the span called name, which must be the only one.
func (b *recorder) span(name string) tracetest.SpanStub {
	b.t.Helper()
	found := b.spans(name)
	if len(found) != 1 {
		b.t.Fatalf("%d spans %q among %v, want one", len(found), name, b.names())
	}
	return found[0]
}

func (b *recorder) spans(name string) tracetest.SpanStubs {
	return slices.DeleteFunc(b.traces.GetSpans(), func(s tracetest.SpanStub) bool { return s.Name != name })
}

func (b *recorder) names() []string {
	var names []string
	for _, s := range b.traces.GetSpans() {
		names = append(names, s.Name)
	}
	return names
}

// want compares attributes of s with their values as text, "" if absent.
func (b *recorder) want(s tracetest.SpanStub, attributes map[string]string) {
	b.t.Helper()
	got := attributesOf(s.Attributes)
	for key, want := range attributes {
		if got[key] != want {
			b.t.Errorf("%s: %s is %q, want %q", s.Name, key, got[key], want)
		}
	}
}

func attributesOf(list []attribute.KeyValue) map[string]string {
	all := map[string]string{}
	for _, a := range list {
		all[string(a.Key)] = a.Value.String()
	}
	return all
}

// metrics returns all metrics by name.
func (b *recorder) metrics() map[string]metricdata.Metrics {
	b.t.Helper()
	var all metricdata.ResourceMetrics
	if err := b.reader.Collect(context.Background(), &all); err != nil {
		b.t.Fatal(err)
	}
	found := map[string]metricdata.Metrics{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			found[m.Name] = m
		}
	}
	return found
}

// everything returns all spans and metrics as text.
func (b *recorder) everything() string {
	b.t.Helper()
	var all strings.Builder
	for _, s := range b.traces.GetSpans() {
		fmt.Fprintln(&all, s.Name, attributesOf(s.Attributes), s.Status, s.Events)
	}
	text, err := json.Marshal(b.metrics())
	if err != nil {
		b.t.Fatal(err)
	}
	return all.String() + string(text)
}

// value is a point of a metric: the number of values and their sum.
type value struct {
	count uint64
	sum   float64
}

// points returns the points of a metric by the values of the attributes keys.
func points(m metricdata.Metrics, keys ...attribute.Key) map[string]value {
	all := map[string]value{}
	add := func(set attribute.Set, v value) {
		var words []string
		for _, key := range keys {
			if a, ok := set.Value(key); ok {
				words = append(words, a.String())
			}
		}
		name := strings.Join(words, " ")
		all[name] = value{all[name].count + v.count, all[name].sum + v.sum}
	}
	switch data := m.Data.(type) {
	case metricdata.Histogram[int64]:
		for _, p := range data.DataPoints {
			add(p.Attributes, value{p.Count, float64(p.Sum)})
		}
	case metricdata.Histogram[float64]:
		for _, p := range data.DataPoints {
			add(p.Attributes, value{p.Count, p.Sum})
		}
	case metricdata.Sum[float64]:
		for _, p := range data.DataPoints {
			add(p.Attributes, value{1, p.Value})
		}
	}
	return all
}

func recordable() agent.Recordable {
	return agent.Recordable{
		Start:    agent.Start{Runtime: "parrot", Model: "m-large"},
		Request:  agent.Request{Prompt: "say something", Labels: agent.Labels{Project: "p", Task: "t", Parent: "up", Previous: "before"}},
		Provider: "acme",
		Environ:  []string{"MY_API_KEY=sk-very-secret"},
	}
}

func call(id, name, input string) agent.Event {
	return agent.Event{Kind: agent.KindToolCall, Tool: &agent.Tool{ID: id, Name: name, Input: json.RawMessage(input)}}
}

func result(id, output string) agent.Event {
	return agent.Event{Kind: agent.KindToolResult, Tool: &agent.Tool{ID: id, Output: agent.Plain(output)}}
}

func by(subagent string, e agent.Event) agent.Event {
	e.Subagent = subagent
	return e
}
