package worker

import (
	"context"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/busdk/bus-integration-task/task"
)

// scope is the instrumentation scope of spans and metrics.
const scope = "github.com/busdk/bus-integration-task"

// LevelTrace is the level at which [Worker.Logger] gets every event of every task.
const LevelTrace = slog.LevelDebug - 4

// Attributes of spans and metrics.
const (
	keyRef       = attribute.Key("bus_task.ref")
	keyAttempt   = attribute.Key("bus_task.attempt_id")
	keyWorker    = attribute.Key("bus_task.worker_id")
	keyRecipient = attribute.Key("bus_task.recipient")
	keyStatus    = attribute.Key("bus_task.status")
	keyCommit    = attribute.Key("bus_task.commit")
	keyRun       = attribute.Key("bus_agent.run.id")
)

// An observation is the span of an attempt, from its claim to its end.
type observation struct {
	run      *run
	span     trace.Span
	begun    time.Time
	duration metric.Float64Histogram
}

// observe begins the span of an attempt whose claim was appended between sent and now.
func (r *run) observe(ctx context.Context, ref, attempt string, sent time.Time) (context.Context, *observation) {
	tracers, meters := r.Tracers, r.Meters
	if tracers == nil {
		tracers = otel.GetTracerProvider()
	}
	if meters == nil {
		meters = otel.GetMeterProvider()
	}
	duration, err := meters.Meter(scope).Float64Histogram("bus_task.attempt.duration",
		metric.WithUnit("s"), metric.WithDescription("time from the claim of a task to the end of the attempt"))
	if err != nil { // it can still be recorded
		r.warn("metrics: " + err.Error())
	}
	ctx, span := tracers.Tracer(scope).Start(ctx, "task attempt", trace.WithTimestamp(sent), trace.WithAttributes(
		keyRef.String(ref), keyAttempt.String(attempt), keyWorker.String(r.ID), keyRecipient.String(r.Recipient)))
	_, claim := tracers.Tracer(scope).Start(ctx, "claim", trace.WithTimestamp(sent), trace.WithAttributes(keyRef.String(ref), keyAttempt.String(attempt)))
	claim.End()
	return ctx, &observation{run: r, span: span, begun: sent, duration: duration}
}

// end ends the span of an attempt that ended with a status and a payload.
func (o *observation) end(ctx context.Context, status string, p task.Payload) {
	labels := []attribute.KeyValue{keyRecipient.String(o.run.Recipient), keyStatus.String(status)}
	for _, l := range []struct {
		key   attribute.Key
		value string
	}{
		{"bus_task.worker_profile", p.Labels.WorkerProfile}, {"bus_task.requested_model", p.Labels.RequestedModel},
		{"bus_task.observed_model", p.Labels.ObservedModel}, {"bus_task.requested_reasoning_effort", p.Labels.RequestedEffort},
		{"bus_task.auth_mode", p.Labels.AuthMode}, {"bus_task.credential_source_kind", p.Labels.CredentialSourceKind},
	} {
		if l.value != "" {
			labels = append(labels, l.key.String(l.value))
		}
	}
	o.duration.Record(ctx, time.Since(o.begun).Seconds(), metric.WithAttributes(labels...))
	o.span.SetAttributes(labels...)
	if p.Commit != "" {
		o.span.SetAttributes(keyCommit.String(p.Commit))
	}
	if p.RunID != "" {
		o.span.SetAttributes(keyRun.String(p.RunID))
	}
	if status == task.Failed || status == lost {
		o.span.SetStatus(codes.Error, "")
	}
	o.span.End()
}

// lost is the status of an attempt that ended without an event.
const lost = "lost"

// step runs f in a span below that of the attempt. A failure marks the span, and its text
// stays out of it.
func (a *attempt) step(ctx context.Context, name string, f func(context.Context) error) error {
	tracer := trace.SpanFromContext(ctx).TracerProvider().Tracer(scope)
	ctx, span := tracer.Start(ctx, name, trace.WithAttributes(keyRef.String(a.state.Ref), keyAttempt.String(a.claim.Attempt())))
	defer span.End()
	err := f(ctx)
	if err != nil {
		span.SetStatus(codes.Error, "")
	}
	return err
}
