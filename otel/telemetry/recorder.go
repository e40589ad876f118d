package telemetry

import (
	"context"
	"os"
	"slices"
	"strings"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/busdk/bus-agent/agent"
)

// scope is the instrumentation scope of all spans and metrics.
const scope = "github.com/busdk/bus-agent/otel"

// An Option configures a [Recorder].
type Option func(*settings)

type settings struct {
	tracers   trace.TracerProvider
	meters    metric.MeterProvider
	content   bool
	propagate bool
}

// WithTracerProvider sets the provider of spans. The default, and nil, is the global
// provider.
func WithTracerProvider(p trace.TracerProvider) Option {
	return func(s *settings) { s.tracers = p }
}

// WithMeterProvider sets the provider of metrics. The default, and nil, is the global
// provider.
func WithMeterProvider(p metric.MeterProvider) Option {
	return func(s *settings) { s.meters = p }
}

// WithContent sets whether prompts, answers, tool input and output, and error texts
// are recorded, each up to 64 KiB. By default they are recorded if the environment
// variable OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT is "true", "1",
// "SPAN_ONLY" or "SPAN_AND_EVENT".
func WithContent(enabled bool) Option {
	return func(s *settings) { s.content = enabled }
}

// WithPropagation sets whether traces cross processes. If enabled, TRACEPARENT and
// TRACESTATE in the environment of a run are its parent, unless its context has one,
// and the agent is started with the TRACEPARENT and TRACESTATE of its run, so that
// spans of the agent and of programs it starts join the trace. By default it is
// enabled if the environment variable OTEL_PROPAGATORS is unset or contains
// "tracecontext".
func WithPropagation(enabled bool) Option {
	return func(s *settings) { s.propagate = enabled }
}

// A Recorder is an agent.Recorder that creates spans and metrics, for runner.Runner
// and command.WithRecorder. Combine it with other recorders with agent.Recorders. Use
// [New] to create one. It is safe for concurrent use.
type Recorder struct {
	tracer      trace.Tracer
	instruments *instruments
	content     bool
	propagate   bool
}

// New returns a Recorder. It records nothing unless an SDK is installed, for example
// by [Setup].
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

// Record starts the span of a run or session. It sets no run ID, and the error is
// always nil.
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

// Group starts the span of the attempts of a fallback. Theirs are below it, so that they
// share a trace.
func (r *Recorder) Group(ctx context.Context, environ []string) (context.Context, func(agent.Result, error)) {
	outer := ctx
	if r.propagate {
		outer = withParent(ctx, environ)
	}
	ctx, span := r.tracer.Start(outer, "fallback")
	if !span.IsRecording() {
		return outer, func(agent.Result, error) {}
	}
	return ctx, func(result agent.Result, err error) {
		span.SetAttributes(keyAttempts.Int(len(result.Attempts) + 1))
		if kind := errorType(err); kind != "" {
			span.SetAttributes(semconv.ErrorTypeKey.String(kind))
			span.SetStatus(codes.Error, "")
		}
		span.End()
	}
}

// contentVariable is the variable of the GenAI instrumentations of OpenTelemetry.
const contentVariable = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"

// contentWanted reports whether value enables content in spans.
func contentWanted(value string) bool {
	switch strings.ToLower(strings.TrimSpace(value)) {
	case "true", "1", "span_only", "span_and_event":
		return true
	}
	return false
}

// traceContextWanted reports whether a list of propagators contains that of W3C trace
// contexts, as the default list does.
func traceContextWanted(list string) bool {
	if strings.TrimSpace(list) == "" {
		return true
	}
	return slices.ContainsFunc(strings.Split(list, ","), func(name string) bool {
		return strings.EqualFold(strings.TrimSpace(name), "tracecontext")
	})
}
