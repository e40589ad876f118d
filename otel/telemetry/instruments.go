package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/semconv/v1.41.0/genaiconv"

	"github.com/busdk/bus-agent/agent"
)

// tokenBounds are the buckets of the conventions.
var tokenBounds = []float64{
	1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864,
}

// durationBounds are the buckets of the conventions, up to 81.92 seconds, and further
// ones, because a run can take hours.
var durationBounds = []float64{
	0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92,
	163.84, 327.68, 655.36, 1310.72, 2621.44, 5242.88, 10485.76,
}

type instruments struct {
	tokens   metric.Int64Histogram
	duration metric.Float64Histogram
	cost     metric.Float64Counter
}

func newInstruments(meter metric.Meter) *instruments {
	tokens, err := genaiconv.NewClientTokenUsage(meter, metric.WithExplicitBucketBoundaries(tokenBounds...))
	handle(err)
	duration, err := genaiconv.NewClientOperationDuration(meter, metric.WithExplicitBucketBoundaries(durationBounds...))
	handle(err)
	cost, err := meter.Float64Counter("bus_agent.cost", metric.WithUnit("{USD}"), metric.WithDescription("Cost of runs, if reported by the runtime."))
	handle(err)
	return &instruments{tokens: tokens.Inst(), duration: duration.Inst(), cost: cost}
}

// handle reports the error of an instrument, which is usable nevertheless.
func handle(err error) {
	if err != nil {
		otel.Handle(err)
	}
}

func (i *instruments) enabled(ctx context.Context) bool {
	return i.tokens.Enabled(ctx) || i.duration.Enabled(ctx) || i.cost.Enabled(ctx)
}

func (i *instruments) recordDuration(ctx context.Context, d time.Duration, labels []attribute.KeyValue, errorType string) {
	if errorType != "" {
		labels = append(labels[:len(labels):len(labels)], semconv.ErrorTypeKey.String(errorType))
	}
	i.duration.Record(ctx, d.Seconds(), metric.WithAttributes(labels...))
}

func (i *instruments) recordUsage(ctx context.Context, u *agent.Usage, labels []attribute.KeyValue) {
	set := metric.WithAttributes(labels...)
	i.tokens.Record(ctx, u.Input, set, metric.WithAttributes(semconv.GenAITokenTypeInput))
	i.tokens.Record(ctx, u.Output, set, metric.WithAttributes(semconv.GenAITokenTypeKey.String(string(genaiconv.TokenTypeOutput))))
	if u.CostUSD != nil && *u.CostUSD >= 0 {
		i.cost.Add(ctx, *u.CostUSD, set)
	}
}
