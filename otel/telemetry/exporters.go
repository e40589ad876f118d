package telemetry

import (
	"cmp"
	"context"
	"fmt"
	"os"

	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/exporters/stdout/stdoutmetric"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// The exporters read the other OTEL_EXPORTER_OTLP_ variables themselves. Those of
// contrib/exporters/autoexport are not used: what they write to the console goes
// to standard output, which is for results, and they send metrics also of a
// program that has none.

// newSpanExporter returns the exporter that the variables ask for.
func newSpanExporter(ctx context.Context) (sdktrace.SpanExporter, error) {
	switch protocol, err := protocolOf("TRACES"); {
	case err != nil:
		return nil, err
	case protocol == console:
		return stdouttrace.New(stdouttrace.WithWriter(os.Stderr))
	case protocol == overGRPC:
		return otlptracegrpc.New(ctx)
	}
	return otlptracehttp.New(ctx)
}

// newMetricExporter returns the exporter that the variables ask for.
func newMetricExporter(ctx context.Context) (sdkmetric.Exporter, error) {
	switch protocol, err := protocolOf("METRICS"); {
	case err != nil:
		return nil, err
	case protocol == console:
		return stdoutmetric.New(stdoutmetric.WithWriter(os.Stderr))
	case protocol == overGRPC:
		return otlpmetricgrpc.New(ctx)
	}
	return otlpmetrichttp.New(ctx)
}

// How a signal leaves the program.
const (
	console  = "console"
	overGRPC = "grpc"
	overHTTP = "http/protobuf"
)

// protocolOf returns how signal is to be exported.
func protocolOf(signal string) (string, error) {
	name := "OTEL_" + signal + "_EXPORTER"
	switch exporter := cmp.Or(os.Getenv(name), "otlp"); exporter {
	case "otlp":
	case console:
		return console, nil
	default:
		return "", fmt.Errorf("%s is %q, which is none of otlp, console and none; it is not exported", name, exporter)
	}
	name = "OTEL_EXPORTER_OTLP_" + signal + "_PROTOCOL"
	if os.Getenv(name) == "" {
		name = "OTEL_EXPORTER_OTLP_PROTOCOL"
	}
	switch protocol := cmp.Or(os.Getenv(name), overHTTP); protocol {
	case overGRPC, overHTTP:
		return protocol, nil
	default:
		return "", fmt.Errorf("%s is %q, which is none of grpc and http/protobuf; it is not exported", name, protocol)
	}
}

// recordedMetrics leaves out what has no metric in it: a program that runs no agent
// sends nothing.
type recordedMetrics struct {
	sdkmetric.Exporter
}

func (e recordedMetrics) Export(ctx context.Context, metrics *metricdata.ResourceMetrics) error {
	if len(metrics.ScopeMetrics) == 0 {
		return nil
	}
	return e.Exporter.Export(ctx, metrics)
}
