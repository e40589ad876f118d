package telemetry

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"

	"github.com/busdk/bus-agent/formatters"
	"github.com/busdk/bus-agent/session/engine"
)

// FlushLimit is the maximum duration of the function that [Setup] returns.
const FlushLimit = 3 * time.Second

// Setup installs the global providers, which [New] uses by default, as configured by
// the OTEL_ environment variables. Unlike the OpenTelemetry specification, it exports
// a signal only if OTEL_TRACES_EXPORTER, OTEL_METRICS_EXPORTER or an OTLP endpoint
// for both or for that signal is set. Otherwise, and if OTEL_SDK_DISABLED is "true",
// it does nothing. The default service name is "bus-agent", and the exporter "console"
// writes to standard error. version is that of the service; empty means the version in
// the build information of the program.
//
// The returned function, which is never nil, sends the remaining telemetry and shuts
// the providers down. It returns after at most [FlushLimit], or earlier if its
// context is done.
//
// Errors are meant for a warning: they report an invalid variable or telemetry that
// was not sent, on one line and without secrets. If Setup returns an error, signals
// with a valid configuration are still exported.
func Setup(ctx context.Context, version string) (shutdown func(context.Context) error, err error) {
	wanted := func(signal string) bool { return exports(os.Getenv, signal) }
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") || !wanted("TRACES") && !wanted("METRICS") {
		return func(context.Context) error { return nil }, nil
	}
	s := &sdk{}
	otel.SetErrorHandler(s)
	otel.SetLogger(logr.New(silentLog{s}))
	res, err := describe(ctx, version)
	problems := []error{err}
	if wanted("TRACES") {
		problems = append(problems, recovered("TRACES", func() error { return s.exportTraces(ctx, res) }))
	}
	if wanted("METRICS") {
		problems = append(problems, recovered("METRICS", func() error { return s.exportMetrics(ctx, res) }))
	}
	problems = slices.DeleteFunc(problems, func(err error) bool { return err == nil })
	if len(problems) == 0 {
		return s.shutdown, nil
	}
	return s.shutdown, errors.New(line("telemetry: ", problems...))
}

// recovered returns the error of f, or its panic as an error: the SDK panics on some
// values of its variables.
func recovered(signal string, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("invalid OTEL_ variable; %s are not exported: %v", signal, p)
		}
	}()
	return f()
}

// maxProblem bounds the text of an error, in bytes. A collector can return megabytes.
const maxProblem = 1000

// line joins problems to one printable line without secrets, beginning with prefix.
func line(prefix string, problems ...error) string {
	m := newMasker(os.Environ())
	texts := make([]string, len(problems))
	for i, problem := range problems {
		text := strings.Join(strings.Fields(formatters.SanitizeString(m.text(problem.Error()))), " ")
		if len(text) > maxProblem {
			text = strings.ToValidUTF8(text[:maxProblem], "") + "…"
		}
		texts[i] = text
	}
	return prefix + strings.Join(texts, "; ")
}

// A silentLog is the log of the SDK. It forwards errors without the values logged
// with them, which may be secrets such as headers.
type silentLog struct{ problems *sdk }

func (silentLog) Init(logr.RuntimeInfo)            {}
func (silentLog) Enabled(int) bool                 { return false }
func (silentLog) Info(int, string, ...any)         {}
func (l silentLog) WithValues(...any) logr.LogSink { return l }
func (l silentLog) WithName(string) logr.LogSink   { return l }
func (l silentLog) Error(err error, msg string, _ ...any) {
	l.problems.Handle(fmt.Errorf("%s: %w", msg, err))
}

// exports reports whether the variables enable the export of signal.
func exports(getenv func(string) string, signal string) bool {
	if exporter := getenv("OTEL_" + signal + "_EXPORTER"); exporter != "" {
		return exporter != "none"
	}
	return getenv("OTEL_EXPORTER_OTLP_"+signal+"_ENDPOINT") != "" || getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != ""
}

// describe returns the resource: no data of the machine or the command line, and an
// instance ID, which separates the metrics of concurrent processes.
func describe(ctx context.Context, version string) (*resource.Resource, error) {
	service := []attribute.KeyValue{semconv.ServiceName("bus-agent"), semconv.ServiceInstanceID(engine.NewUUID())}
	if info, ok := debug.ReadBuildInfo(); ok && version == "" {
		version = info.Main.Version
	}
	if version != "" {
		service = append(service, semconv.ServiceVersion(version))
	}
	return resource.New(ctx, resource.WithAttributes(service...), resource.WithTelemetrySDK(), resource.WithFromEnv())
}

// An sdk holds the providers and their errors.
type sdk struct {
	shutdowns []func(context.Context) error

	mu       sync.Mutex
	problems []error // without duplicates
}

func (s *sdk) exportTraces(ctx context.Context, res *resource.Resource) error {
	exporter, err := newSpanExporter(ctx)
	if err != nil {
		return err
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(res))
	otel.SetTracerProvider(provider)
	s.shutdowns = append(s.shutdowns, provider.Shutdown)
	return nil
}

func (s *sdk) exportMetrics(ctx context.Context, res *resource.Resource) error {
	exporter, err := newMetricExporter(ctx)
	if err != nil {
		return err
	}
	reader := sdkmetric.NewPeriodicReader(recordedMetrics{exporter})
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader), sdkmetric.WithResource(res))
	otel.SetMeterProvider(provider)
	s.shutdowns = append(s.shutdowns, provider.Shutdown)
	return nil
}

// maxProblems is how many different errors are reported.
const maxProblems = 5

// Handle is the global error handler. It keeps errors for shutdown to return.
func (s *sdk) Handle(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.problems) < maxProblems && !slices.ContainsFunc(s.problems, func(p error) bool { return p.Error() == err.Error() }) {
		s.problems = append(s.problems, err)
	}
}

func (s *sdk) shutdown(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, FlushLimit)
	defer cancel()
	var group sync.WaitGroup
	for _, shutdown := range s.shutdowns {
		group.Go(func() {
			if err := shutdown(ctx); err != nil {
				s.Handle(err)
			}
		})
	}
	group.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.problems) == 0 {
		return nil
	}
	return errors.New(line("not all telemetry was sent: ", s.problems...))
}
