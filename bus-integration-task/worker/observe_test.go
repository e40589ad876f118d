package worker_test

import (
	"bytes"
	"context"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/busdk/bus-integration-task/task"
	"github.com/busdk/bus-integration-task/worker"
	"github.com/busdk/bus-integration-task/worker/backend"
)

// The claim, the turn, the commit and the promotion of an attempt are one trace.
func TestSpansOfAnAttempt(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.settings.WorkerProfile, s.settings.Model, s.settings.ReasoningEffort = "large", "model-0", "high"
	s.settings.AuthMode, s.settings.CredentialKind = "chatgpt-subscription", "token-file"
	create(s.log, "bus#1.1")
	exporter, reader := tracetest.NewInMemoryExporter(), sdkmetric.NewManualReader()
	var turn trace.SpanContext
	w := newWorker(s.log, "w", s.bridge(func(ctx context.Context, a backend.Attempt, l backend.Listener) string {
		turn = trace.SpanContextFromContext(ctx)
		return add(t, "two\n")(ctx, a, l)
	}))
	w.Tracers = sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))
	w.Meters = sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	w.Once = true
	if err := w.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	spans := map[string]tracetest.SpanStub{}
	for _, span := range exporter.GetSpans() {
		spans[span.Name] = span
	}
	root, ok := spans["task attempt"]
	if !ok || len(spans) != 5 || root.Parent.IsValid() {
		t.Fatalf("spans %v", spans)
	}
	commit := s.git("rev-parse", "HEAD")
	labels := map[attribute.Key]string{
		"bus_task.status": task.Done, "bus_task.recipient": "dev", "bus_task.worker_profile": "large",
		"bus_task.requested_model": "model-0", "bus_task.observed_model": "model-1", "bus_task.requested_reasoning_effort": "high",
		"bus_task.auth_mode": "chatgpt-subscription", "bus_task.credential_source_kind": "token-file",
	}
	ofSpan := maps.Clone(labels)
	ofSpan["bus_task.commit"], ofSpan["bus_agent.run.id"] = commit, "run-1"
	for key, want := range ofSpan {
		if got := attributeOf(root, key); got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	for _, name := range []string{"claim", "turn", "commit", "promote"} {
		span, ok := spans[name]
		if !ok || span.Parent.SpanID() != root.SpanContext.SpanID() || span.SpanContext.TraceID() != root.SpanContext.TraceID() ||
			attributeOf(span, "bus_task.ref") != "bus#1.1" || attributeOf(span, "bus_task.attempt_id") != "w-1" {
			t.Errorf("%s: %+v", name, span)
		}
	}
	if turn.SpanID() != spans["turn"].SpanContext.SpanID() {
		t.Error("the backend does not run in the span of the turn")
	}
	var all metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	points := all.ScopeMetrics[0].Metrics[0].Data.(metricdata.Histogram[float64]).DataPoints
	got := map[attribute.Key]string{}
	for _, label := range points[0].Attributes.ToSlice() {
		got[label.Key] = label.Value.AsString()
	}
	if len(points) != 1 || points[0].Count != 1 || !maps.Equal(got, labels) {
		t.Errorf("%+v", points)
	}
}

func attributeOf(span tracetest.SpanStub, key attribute.Key) string {
	set := attribute.NewSet(span.Attributes...)
	value, _ := set.Value(key)
	return value.AsString()
}

// lines is a log in memory.
type lines struct {
	mu sync.Mutex
	bytes.Buffer
}

func (l *lines) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Buffer.Write(line)
}

// Each level logs what it is for, and terminal escapes of events not at all.
func TestLogLevels(t *testing.T) {
	t.Parallel()
	for level, want := range map[slog.Level]string{
		worker.LevelTrace: "event task claimed attempt ended progress", slog.LevelDebug: "task claimed attempt ended progress",
		slog.LevelInfo: "task claimed attempt ended", slog.LevelWarn: "",
	} {
		synctest.Test(t, func(t *testing.T) {
			log := newLog()
			log.post(task.Created, task.Payload{WorkRef: "bus#1.1", Recipient: "dev", Text: "\x1b]0;owned\x07"})
			var out lines
			w := newWorker(log, "w", handler(func(ctx context.Context, c *worker.Claim) worker.End {
				if err := c.Progress(ctx, "halfway"); err != nil {
					t.Error(err)
				}
				return worker.End{Name: task.Done}
			}))
			w.Logger, w.Once = slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: level})), true
			if err := w.Run(t.Context()); err != nil {
				t.Error(err)
			}
			got := out.String()
			for _, message := range []string{"event", "task claimed", "attempt ended", "progress"} {
				text := "msg=" + message + " "
				if strings.Contains(message, " ") {
					text = `msg="` + message + `"`
				}
				if strings.Contains(got, text) != strings.Contains(want, message) {
					t.Errorf("%v: %q in\n%s", level, message, got)
				}
			}
			if strings.ContainsAny(got, "\x1b\x07") {
				t.Errorf("%q", got)
			}
		})
	}
}

// A worker works on so many tasks at once, and on no more.
func TestTasksInParallel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := newLog()
		for _, ref := range []string{"bus#1.1", "bus#2.1", "bus#3.1", "bus#4.1", "bus#5.1"} {
			create(log, ref)
		}
		var mu sync.Mutex
		running, most := 0, 0
		w := newWorker(log, "w", handler(func(context.Context, *worker.Claim) worker.End {
			mu.Lock()
			running++
			most = max(most, running)
			mu.Unlock()
			time.Sleep(time.Minute)
			mu.Lock()
			running--
			mu.Unlock()
			return worker.End{Name: task.Done}
		}))
		w.Parallel, w.IdleTimeout = 3, time.Second
		begun := time.Now()
		if err := w.Run(t.Context()); err != nil {
			t.Error(err)
		}
		if took := time.Since(begun); most != 3 || took > 3*time.Minute {
			t.Errorf("%d tasks at once, %v for five", most, took)
		}
	})
}
