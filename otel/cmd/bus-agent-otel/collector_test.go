package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	collectormetrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	collectortrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// A collector is an OTLP/HTTP server that records its requests.
type collector struct {
	*httptest.Server

	mu        sync.Mutex
	resources []*resource.Resource
	spans     []*trace.Span
	metrics   map[string]*metrics.Metric
	bodies    [][]byte
	headers   []http.Header
	problems  []error
	arrived   chan struct{} // signaled by each request
}

func newCollector(t *testing.T) *collector {
	t.Helper()
	c := &collector{metrics: map[string]*metrics.Metric{}, arrived: make(chan struct{}, 1)}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/traces", func(w http.ResponseWriter, r *http.Request) {
		request := &collectortrace.ExportTraceServiceRequest{}
		c.handle(w, r, request, &collectortrace.ExportTraceServiceResponse{}, func() {
			for _, rs := range request.ResourceSpans {
				c.resources = append(c.resources, rs.Resource)
				for _, scope := range rs.ScopeSpans {
					c.spans = append(c.spans, scope.Spans...)
				}
			}
		})
	})
	mux.HandleFunc("POST /v1/metrics", func(w http.ResponseWriter, r *http.Request) {
		request := &collectormetrics.ExportMetricsServiceRequest{}
		c.handle(w, r, request, &collectormetrics.ExportMetricsServiceResponse{}, func() {
			for _, rm := range request.ResourceMetrics {
				c.resources = append(c.resources, rm.Resource)
				for _, scope := range rm.ScopeMetrics {
					for _, m := range scope.Metrics {
						c.metrics[m.Name] = m
					}
				}
			}
		})
	})
	c.Server = httptest.NewServer(mux)
	t.Cleanup(c.Close)
	return c
}

// handle decodes a request into message, calls store and sends the answer.
func (c *collector) handle(w http.ResponseWriter, r *http.Request, message, answer proto.Message, store func()) {
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = proto.Unmarshal(body, message)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bodies, c.headers = append(c.bodies, body), append(c.headers, r.Header)
	if err != nil {
		c.problems = append(c.problems, err)
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	store()
	select {
	case c.arrived <- struct{}{}:
	default:
	}
	reply, err := proto.Marshal(answer)
	if err != nil {
		c.problems = append(c.problems, err)
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
	_, _ = w.Write(reply) // the client may have disconnected
}

// wait waits for a span called name.
func (c *collector) wait(t *testing.T, name string) {
	t.Helper()
	limit := time.After(time.Minute)
	for {
		c.mu.Lock()
		there := slices.ContainsFunc(c.spans, func(s *trace.Span) bool { return s.Name == name })
		c.mu.Unlock()
		if there {
			return
		}
		select {
		case <-c.arrived:
		case <-limit:
			t.Fatalf("no span %q", name)
		}
	}
}

// span returns the span called name, which must be the only one.
func (c *collector) span(t *testing.T, name string) *trace.Span {
	t.Helper()
	var found []*trace.Span
	for _, s := range c.spans {
		if s.Name == name {
			found = append(found, s)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d spans %q among %v, want one; %v", len(found), name, c.spans, c.problems)
	}
	return found[0]
}

// attributes returns the strings and integers in list as text.
func attributes(list []*common.KeyValue) map[string]string {
	all := map[string]string{}
	for _, a := range list {
		if _, number := a.Value.Value.(*common.AnyValue_IntValue); number {
			all[a.Key] = string(rune('0' + a.Value.GetIntValue()%10)) // one digit is enough here
			continue
		}
		all[a.Key] = a.Value.GetStringValue()
	}
	return all
}
