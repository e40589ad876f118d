package telemetry_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	metricnoop "go.opentelemetry.io/otel/metric/noop"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/otel/telemetry"
)

const (
	outside = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	caller  = "4bf92f3577b34da6a3ce929d0e0e4737"
)

func TestTraceContext(t *testing.T) {
	t.Parallel()
	id, err := trace.TraceIDFromHex(caller)
	if err != nil {
		t.Fatal(err)
	}
	within := trace.ContextWithSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{TraceID: id, SpanID: trace.SpanID{1}, TraceFlags: trace.FlagsSampled}))
	for name, c := range map[string]struct {
		ctx       context.Context
		environ   []string
		off       bool
		wantTrace string // "" for a new one
		wantState []string
	}{
		"no parent":                 {ctx: t.Context()},
		"the environment":           {ctx: t.Context(), environ: []string{"TRACEPARENT=" + outside, "TRACESTATE=a=b"}, wantTrace: "4bf92f3577b34da6a3ce929d0e0e4736", wantState: []string{"TRACESTATE=a=b"}},
		"invalid":                   {ctx: t.Context(), environ: []string{"TRACEPARENT=00-junk", "TRACESTATE=a=b"}, wantState: []string{"TRACESTATE"}},
		"the caller":                {ctx: within, wantTrace: caller},
		"the caller has precedence": {ctx: within, environ: []string{"TRACEPARENT=" + outside, "TRACESTATE=a=b"}, wantTrace: caller, wantState: []string{"TRACESTATE"}},
		"off":                       {ctx: t.Context(), environ: []string{"TRACEPARENT=" + outside}, off: true},
		"off, within the caller":    {ctx: within, off: true, wantTrace: caller},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newRecorder(t, telemetry.WithPropagation(!c.off))
			run := recordable()
			run.Environ = append(run.Environ, c.environ...)
			r := b.record(c.ctx, run)
			b.end(r, agent.Result{}, nil)
			s := b.span("invoke_agent parrot")
			got := s.SpanContext.TraceID().String()
			if c.wantTrace == "" {
				if s.Parent.IsValid() {
					t.Errorf("the parent of the run is %v, want none", s.Parent)
				}
			} else if got != c.wantTrace {
				t.Errorf("the trace is %s, want %s", got, c.wantTrace)
			}
			var want []string
			if !c.off {
				want = append([]string{"TRACEPARENT=00-" + got + "-" + s.SpanContext.SpanID().String() + "-01"}, c.wantState...)
			}
			slices.Sort(r.Env)
			if !slices.Equal(r.Env, want) {
				t.Errorf("the agent gets %q, want %q", r.Env, want)
			}
		})
	}
}

// The agent of a run that is not sampled is not sampled either, but the run is counted.
func TestUnsampledRun(t *testing.T) {
	t.Parallel()
	traces := tracetest.NewInMemoryExporter()
	b := newRecorder(t, telemetry.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSyncer(traces), sdktrace.WithSampler(sdktrace.NeverSample()))), telemetry.WithContent(true))
	r := b.record(t.Context(), recordable())
	b.send(r, call("c", "look", "{}"), result("c", "x"))
	b.end(r, agent.Result{Text: "done", Usage: &agent.Usage{Input: 5}}, nil)
	if len(r.Env) != 1 || !strings.HasPrefix(r.Env[0], "TRACEPARENT=00-") || !strings.HasSuffix(r.Env[0], "-00") {
		t.Errorf("the agent gets %q, want a parent that is not sampled", r.Env)
	}
	if n := len(traces.GetSpans()); n != 0 {
		t.Errorf("%d spans, want none", n)
	}
	if got := points(b.metrics()["gen_ai.client.operation.duration"], "gen_ai.operation.name"); len(got) != 2 {
		t.Errorf("durations: %v, want those of the run and of the tool", got)
	}
}

func TestWithoutSDK(t *testing.T) {
	t.Parallel()
	off := telemetry.New(telemetry.WithTracerProvider(tracenoop.NewTracerProvider()), telemetry.WithMeterProvider(metricnoop.NewMeterProvider()), telemetry.WithPropagation(true))
	run := recordable()
	run.Environ = append(run.Environ, "TRACEPARENT="+outside)
	for _, session := range []bool{false, true} {
		run.Session = session
		r, err := off.Record(t.Context(), run)
		if err != nil || r.Events != nil || r.End != nil || r.Message != nil || r.Env != nil || r.Prompt != "" {
			t.Errorf("the recording is %+v, %v; want none", r, err)
		}
	}
}
