package telemetry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
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

	"github.com/busdk/bus-agent/jsonline"
)

// The exporters read most OTEL_EXPORTER_OTLP_ variables themselves. Package
// contrib/exporters/autoexport is not used, because its console exporters write to
// standard output, which is for results, and because it sends empty metrics.

// newSpanExporter returns the exporter that the variables select.
func newSpanExporter(ctx context.Context) (sdktrace.SpanExporter, error) {
	switch protocol, err := protocolOf("TRACES"); {
	case err != nil:
		return nil, err
	case protocol == console:
		return stdouttrace.New(stdouttrace.WithWriter(printable{os.Stderr}))
	case protocol == overGRPC:
		return otlptracegrpc.New(ctx)
	}
	return otlptracehttp.New(ctx, otlptracehttp.WithProxy(proxy))
}

// newMetricExporter returns the exporter that the variables select.
func newMetricExporter(ctx context.Context) (sdkmetric.Exporter, error) {
	switch protocol, err := protocolOf("METRICS"); {
	case err != nil:
		return nil, err
	case protocol == console:
		return stdoutmetric.New(stdoutmetric.WithWriter(printable{os.Stderr}))
	case protocol == overGRPC:
		return otlpmetricgrpc.New(ctx)
	}
	return otlpmetrichttp.New(ctx, otlpmetrichttp.WithProxy(proxy))
}

// proxy is http.ProxyFromEnvironment, except that it refuses redirects: package
// net/http would send the headers in OTEL_EXPORTER_OTLP_HEADERS to another host.
func proxy(r *http.Request) (*url.URL, error) {
	if r.Response != nil {
		return nil, errors.New("the collector redirects the request; use the final address as the endpoint")
	}
	return http.ProxyFromEnvironment(r)
}

// printable writes JSON with control characters escaped.
type printable struct{ w io.Writer }

func (p printable) Write(b []byte) (int, error) {
	_, err := p.w.Write(jsonline.EscapeControls(append([]byte(nil), b...), 0))
	return len(b), err
}

// maxPEM bounds a key or certificate file, in bytes. The exporters read it whole.
const maxPEM = 1 << 20

// checkFiles checks the key and certificate files of signal.
func checkFiles(signal string) error {
	for _, kind := range []string{"CERTIFICATE", "CLIENT_CERTIFICATE", "CLIENT_KEY"} {
		for _, prefix := range []string{"OTEL_EXPORTER_OTLP_", "OTEL_EXPORTER_OTLP_" + signal + "_"} {
			file := os.Getenv(prefix + kind)
			if file == "" {
				continue
			}
			info, err := os.Stat(file)
			if err != nil {
				return fmt.Errorf("%s%s: %w; %s are not exported", prefix, kind, err, signal)
			}
			if !info.Mode().IsRegular() || info.Size() > maxPEM {
				return fmt.Errorf("%s%s: %q is not a regular file of at most 1 MiB; %s are not exported", prefix, kind, file, signal)
			}
		}
	}
	return nil
}

// The ways to export a signal.
const (
	console  = "console"
	overGRPC = "grpc"
	overHTTP = "http/protobuf"
)

// protocolOf returns the way to export signal.
func protocolOf(signal string) (string, error) {
	name := "OTEL_" + signal + "_EXPORTER"
	switch exporter := cmp.Or(os.Getenv(name), "otlp"); exporter {
	case "otlp":
	case console:
		return console, nil
	default:
		return "", fmt.Errorf("%s: unknown exporter %q, use otlp, console or none; %s are not exported", name, exporter, signal)
	}
	name = "OTEL_EXPORTER_OTLP_" + signal + "_PROTOCOL"
	if os.Getenv(name) == "" {
		name = "OTEL_EXPORTER_OTLP_PROTOCOL"
	}
	switch protocol := cmp.Or(os.Getenv(name), overHTTP); protocol {
	case overGRPC, overHTTP:
		return protocol, checkFiles(signal)
	default:
		return "", fmt.Errorf("%s: unknown protocol %q, use grpc or http/protobuf; %s are not exported", name, protocol, signal)
	}
}

// recordedMetrics skips empty exports, so that a program that runs no agent sends
// nothing.
type recordedMetrics struct {
	sdkmetric.Exporter
}

func (e recordedMetrics) Export(ctx context.Context, metrics *metricdata.ResourceMetrics) error {
	if len(metrics.ScopeMetrics) == 0 {
		return nil
	}
	return e.Exporter.Export(ctx, metrics)
}
