package telemetry

import (
	"context"
	"os"
	"slices"
	"strings"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/busdk/bus-agent/agent"
)

// scope is the instrumentation scope of all spans and metrics.
const scope = "github.com/busdk/bus-agent/otel"

// An Option changes what [New] returns.
type Option func(*settings)

type settings struct {
	tracers   trace.TracerProvider
	meters    metric.MeterProvider
	content   bool
	propagate bool
}

// WithTracerProvider makes spans with p instead of the global provider. Nil is the
// global one.
func WithTracerProvider(p trace.TracerProvider) Option {
	return func(s *settings) { s.tracers = p }
}

// WithMeterProvider makes metrics with p instead of the global provider. Nil is
// the global one.
func WithMeterProvider(p metric.MeterProvider) Option {
	return func(s *settings) { s.meters = p }
}

// WithContent says whether prompts, answers, the input and output of tools and
// the agent's words for a failure are recorded, each up to 64 KiB. The default is
// what the variable OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT of the
// process says, "true" or a mode that has content in spans; no, when it is unset.
func WithContent(record bool) Option {
	return func(s *settings) { s.content = record }
}

// WithPropagation says whether a trace goes on through the process: whether
// TRACEPARENT and TRACESTATE in the agent's environment are the parent of a run
// whose context has none, and whether the agent is started with those of its run.
// Agents that have an exporter of their own, and programs they start, then join
// the trace; the others do not look at the variables. The default is what the
// variable OTEL_PROPAGATORS of the process says; yes, when it is unset, as
// "tracecontext" is in its default.
func WithPropagation(propagate bool) Option {
	return func(s *settings) { s.propagate = propagate }
}

// A Recorder is an agent.Recorder that makes spans and metrics. It is for
// runner.Runner and command.WithRecorder, beside others through
// agent.Recorders. It names no run and refuses none. Its method may be called by
// several goroutines at once.
type Recorder struct {
	tracer      trace.Tracer
	instruments *instruments
	content     bool
	propagate   bool
}

// New returns a Recorder. Without an SDK behind the providers, see [Setup], it
// does nothing.
func New(options ...Option) *Recorder {
	s := settings{content: contentWanted(os.Getenv(contentVariable)), propagate: traceContextWanted(os.Getenv("OTEL_PROPAGATORS"))}
	for _, option := range options {
		option(&s)
	}
	if s.tracers == nil {
		s.tracers = otel.GetTracerProvider()
	}
	if s.meters == nil {
		s.meters = otel.GetMeterProvider()
	}
	return &Recorder{
		tracer:      s.tracers.Tracer(scope, trace.WithSchemaURL(semconv.SchemaURL)),
		instruments: newInstruments(s.meters.Meter(scope, metric.WithSchemaURL(semconv.SchemaURL))),
		content:     s.content,
		propagate:   s.propagate,
	}
}

// Record starts the span of the run or session. The error is always nil.
func (r *Recorder) Record(ctx context.Context, run agent.Recordable) (agent.Recording, error) {
	ctx = context.WithoutCancel(ctx)
	if r.propagate {
		ctx = withParent(ctx, run.Environ)
	}
	outer := trace.SpanContextFromContext(ctx)
	rec := r.begin(ctx, run)
	inner := rec.whole.span.SpanContext()
	if !rec.whole.span.IsRecording() && !r.instruments.enabled(ctx) {
		rec.whole.span.End()
		rec = nil
	}
	var recording agent.Recording
	if r.propagate && inner.IsValid() && !inner.Equal(outer) {
		recording.Env = propagated(trace.ContextWithSpanContext(ctx, inner), run.Environ)
	}
	if rec != nil {
		recording.Events, recording.End = rec.event, rec.end
		if run.Session {
			recording.Message = rec.message
		}
	}
	return recording, nil
}

// contentVariable is the variable that GenAI instrumentations of OpenTelemetry
// have for this.
const contentVariable = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"

// contentWanted reports whether value asks for content in spans.
func contentWanted(value string) bool {
	switch strings.ToLower(strings.TrimSpace(value)) {
	case "true", "1", "span_only", "span_and_event":
		return true
	}
	return false
}

// traceContextWanted reports whether the list of propagators has that of W3C trace
// contexts.
func traceContextWanted(list string) bool {
	if strings.TrimSpace(list) == "" {
		return true
	}
	return slices.ContainsFunc(strings.Split(list, ","), func(name string) bool {
		return strings.EqualFold(strings.TrimSpace(name), "tracecontext")
	})
}
