package telemetry

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"

	"github.com/busdk/bus-agent/formatters"
	"github.com/busdk/bus-agent/session/engine"
)

// FlushLimit is how long the function that [Setup] returns takes at most to send
// what is left.
const FlushLimit = 3 * time.Second

// Setup makes an SDK as the OTEL_ variables of the process say and makes it the
// global one, which [New] takes. Unlike what OpenTelemetry specifies, a signal is
// exported only when a variable asks for it: OTEL_TRACES_EXPORTER or
// OTEL_METRICS_EXPORTER, or an OTLP endpoint for both or for that signal. Without
// any, and with OTEL_SDK_DISABLED=true, Setup does nothing. The service is called
// "bus-agent" unless it is named, and the exporter "console" writes to standard
// error.
//
// The returned function sends what is left, within [FlushLimit] also when ctx lasts
// longer, and ends the SDK. Its error, and that of Setup, is for a warning: it says
// what could not be sent, or which variable is wrong. The function is never nil,
// and what can be exported is exported also beside an error.
func Setup(ctx context.Context) (shutdown func(context.Context) error, err error) {
	wanted := func(signal string) bool { return exports(os.Getenv, signal) }
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") || !wanted("TRACES") && !wanted("METRICS") {
		return func(context.Context) error { return nil }, nil
	}
	s := &sdk{}
	otel.SetErrorHandler(s)
	otel.SetLogger(logr.New(silentLog{s}))
	res, err := describe(ctx)
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

// recovered returns the error of f, or its panic: the SDK panics at some values of
// its variables.
func recovered(signal string, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%s are not exported, because of a value of an OTEL_ variable: %v", signal, p)
		}
	}()
	return f()
}

// maxProblem bounds one problem, in bytes. A collector can answer with megabytes.
const maxProblem = 1000

// line returns problems as one printable line without secrets.
func line(what string, problems ...error) string {
	m := newMasker(os.Environ())
	texts := make([]string, len(problems))
	for i, problem := range problems {
		text := strings.Join(strings.Fields(formatters.SanitizeString(m.text(problem.Error()))), " ")
		if len(text) > maxProblem {
			text = strings.ToValidUTF8(text[:maxProblem], "") + "…"
		}
		texts[i] = text
	}
	return what + strings.Join(texts, "; ")
}

// A silentLog is the log of the SDK. It passes errors on without the values that
// are logged with them, which can be secrets, such as headers.
type silentLog struct{ problems *sdk }

func (silentLog) Init(logr.RuntimeInfo)            {}
func (silentLog) Enabled(int) bool                 { return false }
func (silentLog) Info(int, string, ...any)         {}
func (l silentLog) WithValues(...any) logr.LogSink { return l }
func (l silentLog) WithName(string) logr.LogSink   { return l }
func (l silentLog) Error(err error, msg string, _ ...any) {
	l.problems.Handle(fmt.Errorf("%s: %w", msg, err))
}

// exports reports whether the variables ask for signal.
func exports(getenv func(string) string, signal string) bool {
	if exporter := getenv("OTEL_" + signal + "_EXPORTER"); exporter != "" {
		return exporter != "none"
	}
	return getenv("OTEL_EXPORTER_OTLP_"+signal+"_ENDPOINT") != "" || getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != ""
}

// describe returns what the telemetry comes from. Nothing of the machine or of the
// command line is in it. The instance keeps the metrics of programs apart that run
// at once.
func describe(ctx context.Context) (*resource.Resource, error) {
	return resource.New(ctx,
		resource.WithAttributes(semconv.ServiceName("bus-agent"), semconv.ServiceInstanceID(engine.NewUUID())),
		resource.WithTelemetrySDK(), resource.WithFromEnv())
}

// An sdk is what was set up, and what went wrong with it.
type sdk struct {
	ends []func(context.Context) error

	mu       sync.Mutex
	problems []error // different ones
}

func (s *sdk) exportTraces(ctx context.Context, res *resource.Resource) error {
	exporter, err := newSpanExporter(ctx)
	if err != nil {
		return err
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(res))
	otel.SetTracerProvider(provider)
	s.ends = append(s.ends, provider.Shutdown)
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
	s.ends = append(s.ends, provider.Shutdown)
	return nil
}

// maxProblems is how many different problems are told.
const maxProblems = 5

// Handle takes in what goes wrong in the background, where nobody must be
// disturbed by it.
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
	var ended sync.WaitGroup
	for _, end := range s.ends {
		ended.Go(func() {
			if err := end(ctx); err != nil {
				s.Handle(err)
			}
		})
	}
	ended.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.problems) == 0 {
		return nil
	}
	return errors.New(line("telemetry could not be sent, or not all of it: ", s.problems...))
}
