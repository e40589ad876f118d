package telemetry_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/busdk/bus-agent/agent"
)

func TestRun(t *testing.T) {
	t.Parallel()
	b := newRecorder(t)
	r := b.record(t.Context(), recordable())
	code, cost := 3, 0.25
	failed := result("c2", "no")
	failed.Failed, failed.Tool.ExitCode = true, &code
	b.send(r,
		agent.Event{Kind: agent.KindSessionStarted, SessionID: "s-1", Model: "m-large-2"},
		call("c1", "look", `{"path":"x"}`), result("c1", "found"),
		agent.Event{Kind: agent.KindRetry, Attempt: 2, Failure: agent.FailureQuota},
		call("c2", "change", `{}`),
		agent.Event{Kind: agent.KindApproval, Failed: true, Tool: &agent.Tool{ID: "c2"}}, failed,
		call("c3", "wait", `{}`),
	)
	usage := &agent.Usage{Input: 100, Cached: 60, Output: 20, Reasoning: 5, CostUSD: &cost}
	b.end(r, agent.Result{SessionID: "s-1", Model: "m-large-2", Text: "done", Usage: usage, RunID: "run-7"}, nil)

	run := b.span("invoke_agent parrot")
	b.want(run, map[string]string{
		"gen_ai.operation.name": "invoke_agent", "gen_ai.provider.name": "acme", "gen_ai.agent.name": "parrot",
		"gen_ai.request.model": "m-large", "gen_ai.response.model": "m-large-2", "gen_ai.conversation.id": "s-1",
		"gen_ai.usage.input_tokens": "100", "gen_ai.usage.output_tokens": "20",
		"gen_ai.usage.cache_read.input_tokens": "60", "gen_ai.usage.reasoning.output_tokens": "5",
		"bus_agent.cost_usd": "0.25", "bus_agent.project": "p", "bus_agent.task": "t", "bus_agent.access": "write",
		"bus_agent.run.id": "run-7", "bus_agent.run.parent_id": "up", "bus_agent.run.previous_id": "before",
		"process.exit.code": "0", "error.type": "", "gen_ai.input.messages": "", "gen_ai.output.messages": "",
		"bus_agent.usage.cumulative": "", "gen_ai.output.type": "",
	})
	if run.SpanKind != trace.SpanKindClient || run.Status.Code != codes.Unset || run.Parent.IsValid() {
		t.Errorf("the run is %v, %v, parent %v; want client, unset, no parent", run.SpanKind, run.Status, run.Parent)
	}
	if len(run.Events) != 1 || run.Events[0].Name != "bus_agent.retry" {
		t.Errorf("the run has the events %v, want one retry", run.Events)
	}
	if s := run.InstrumentationScope; s.Name != "github.com/busdk/bus-agent/otel" || s.SchemaURL != "https://opentelemetry.io/schemas/1.41.0" {
		t.Errorf("the scope is %+v", s)
	}

	for name, want := range map[string]map[string]string{
		"execute_tool look": {
			"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look", "gen_ai.tool.call.id": "c1",
			"gen_ai.tool.type": "function", "gen_ai.agent.name": "parrot", "error.type": "", "bus_agent.tool.unfinished": "",
			"gen_ai.tool.call.arguments": "", "gen_ai.tool.call.result": "",
		},
		"execute_tool change": {"gen_ai.tool.call.id": "c2", "error.type": "tool_failed", "process.exit.code": "3"},
		"execute_tool wait":   {"gen_ai.tool.call.id": "c3", "bus_agent.tool.unfinished": "true", "error.type": ""},
	} {
		tool := b.span(name)
		b.want(tool, want)
		if tool.Parent.SpanID() != run.SpanContext.SpanID() || tool.SpanContext.TraceID() != run.SpanContext.TraceID() {
			t.Errorf("the parent of %s is not the run", name)
		}
		if tool.SpanKind != trace.SpanKindInternal || tool.EndTime.Before(tool.StartTime) || tool.EndTime.After(run.EndTime) {
			t.Errorf("%s is %v from %v to %v, of a run until %v", name, tool.SpanKind, tool.StartTime, tool.EndTime, run.EndTime)
		}
		wantCode, events := codes.Unset, 0
		if name == "execute_tool change" {
			wantCode, events = codes.Error, 1
		}
		if tool.Status.Code != wantCode || len(tool.Events) != events {
			t.Errorf("%s has status %v and events %v, want %v and %d", name, tool.Status, tool.Events, wantCode, events)
		}
	}
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	b := newRecorder(t)
	cost := 0.5
	for _, err := range []error{nil, &agent.Error{Kind: agent.ErrQuota, Err: errors.New("used up")}} {
		r := b.record(t.Context(), recordable())
		failed := result("b", "")
		failed.Failed = true
		b.send(r, call("a", "look", ""), result("a", ""), call("b", "look", ""), failed, call("c", "look", ""))
		b.end(r, agent.Result{Usage: &agent.Usage{Input: 100, Output: 20, CostUSD: &cost}}, err)
	}
	all := b.metrics()

	tokens := all["gen_ai.client.token.usage"]
	got := points(tokens, "gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model", "gen_ai.agent.name", "bus_agent.project", "gen_ai.token.type")
	want := map[string]value{"invoke_agent acme m-large parrot p input": {2, 200}, "invoke_agent acme m-large parrot p output": {2, 40}}
	if tokens.Unit != "{token}" || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("tokens in %s: %v, want %v", tokens.Unit, got, want)
	}
	if p := tokens.Data.(metricdata.Histogram[int64]).DataPoints[0]; len(p.Bounds) != 14 || p.Bounds[0] != 1 || p.Bounds[13] != 67108864 {
		t.Errorf("the buckets of tokens are %v", p.Bounds)
	}

	duration := all["gen_ai.client.operation.duration"]
	counts := map[string]uint64{}
	for name, v := range points(duration, "gen_ai.operation.name", "gen_ai.tool.name", "error.type") {
		counts[name] = v.count
	}
	wantCounts := map[string]uint64{
		"invoke_agent": 1, "invoke_agent quota": 1, "execute_tool look": 2, "execute_tool look tool_failed": 2,
	}
	if duration.Unit != "s" || fmt.Sprint(counts) != fmt.Sprint(wantCounts) {
		t.Errorf("durations in %s: %v, want %v: a tool without result is not counted", duration.Unit, counts, wantCounts)
	}
	conventions := []float64{0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92}
	if p := duration.Data.(metricdata.Histogram[float64]).DataPoints[0]; !slices.Equal(p.Bounds[:14], conventions) || p.Bounds[len(p.Bounds)-1] < 7200 {
		t.Errorf("the buckets of durations are %v, want those of the conventions and longer ones", p.Bounds)
	}

	if got := points(all["bus_agent.cost"], "gen_ai.agent.name"); fmt.Sprint(got) != fmt.Sprint(map[string]value{"parrot": {1, 1}}) {
		t.Errorf("cost: %v, want 1", got)
	}
}

// The cumulative usage of a resumed session includes earlier runs.
func TestTokensAreCountedOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		resume     string
		cumulative bool
		want       uint64
	}{
		"resumed": {"s-0", true, 0}, "fresh": {"", true, 1}, "resumed, not cumulative": {"s-0", false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newRecorder(t)
			run := recordable()
			run.Request.Resume = c.resume
			b.end(b.record(t.Context(), run), agent.Result{Usage: &agent.Usage{Input: 1, Cumulative: c.cumulative}}, nil)
			if got := points(b.metrics()["gen_ai.client.token.usage"], "gen_ai.token.type")["input"].count; got != c.want {
				t.Errorf("counted %d times, want %d", got, c.want)
			}
			b.want(b.span("invoke_agent parrot"), map[string]string{"gen_ai.usage.input_tokens": "1", "gen_ai.conversation.id": c.resume})
		})
	}
}

func TestErrorType(t *testing.T) {
	t.Parallel()
	for kind, err := range map[string]error{
		"usage": agent.ErrUsage, "not_installed": agent.ErrNotInstalled, "authentication": agent.ErrAuthentication,
		"quota": agent.ErrQuota, "agent": agent.ErrAgent, "timeout": agent.ErrTimeout,
		"idle_timeout": agent.ErrIdleTimeout, "canceled": agent.ErrCanceled, "_OTHER": errors.New("the words"),
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			b := newRecorder(t)
			b.end(b.record(t.Context(), recordable()), agent.Result{ExitCode: -1}, fmt.Errorf("text: %w", err))
			run := b.span("invoke_agent parrot")
			b.want(run, map[string]string{"error.type": kind, "process.exit.code": ""})
			if run.Status.Code != codes.Error || run.Status.Description != "" {
				t.Errorf("the status is %v, want an error without a description", run.Status)
			}
		})
	}
}

// The parent of the calls of a subagent is the call that started it, even if that call
// has ended.
func TestCallsOfSubagents(t *testing.T) {
	t.Parallel()
	b := newRecorder(t)
	r := b.record(t.Context(), recordable())
	b.send(r, call("task", "delegate", ""), by("task", call("inner", "delegate-more", "")),
		by("inner", call("innermost", "look", "")), by("inner", result("innermost", "")),
		result("inner", ""), result("task", ""),
		by("task", call("late", "look-again", "")), result("late", ""),
		by("unknown", call("lost", "search", "")), result("lost", ""), result("never-called", ""))
	b.end(r, agent.Result{}, nil)
	parents := map[string]string{
		"execute_tool delegate": "invoke_agent parrot", "execute_tool delegate-more": "execute_tool delegate",
		"execute_tool look": "execute_tool delegate-more", "execute_tool look-again": "execute_tool delegate",
		"execute_tool search": "invoke_agent parrot",
	}
	for child, parent := range parents {
		if b.span(child).Parent.SpanID() != b.span(parent).SpanContext.SpanID() {
			t.Errorf("%q is not a child of %q", child, parent)
		}
	}
	if n := len(b.traces.GetSpans()); n != len(parents)+1 {
		t.Errorf("%d spans %v, want %d", n, b.names(), len(parents)+1)
	}
}

func TestRepeatedCallIsOneSpan(t *testing.T) {
	t.Parallel()
	b := newRecorder(t)
	r := b.record(t.Context(), recordable())
	b.send(r, call("c", "look", ""), call("c", "look-again", ""), result("c", ""), result("c", ""))
	b.end(r, agent.Result{}, nil)
	if got := b.names(); !slices.Equal(got, []string{"execute_tool look", "invoke_agent parrot"}) {
		t.Errorf("the spans are %q, want one call", got)
	}
}

// The number of open calls and the lengths of IDs and names are not limited by agents.
func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	b := newRecorder(t)
	r := b.record(t.Context(), recordable())
	long := strings.Repeat("é", 1<<20)
	for i := range 3000 {
		b.send(r, call(fmt.Sprintf("open-%d", i), "wait", ""))
	}
	for i := range 1000 {
		b.send(r, result(fmt.Sprintf("open-%d", i), ""))
	}
	b.send(r, call(long, long, ""), call(long, "again", ""), result(long, ""))
	for i := range 3000 {
		id := fmt.Sprintf("more-%d", i)
		b.send(r, call(id, "more", ""), result(id, ""))
	}
	// The last thousand ended calls are kept.
	b.send(r, by("more-0", call("old", "below-nothing", "")), by("more-2999", call("new", "below-more", "")))
	b.end(r, agent.Result{}, nil)

	run := b.span("invoke_agent parrot")
	b.want(run, map[string]string{"bus_agent.tool.untraced_calls": "2000"})
	if n := len(b.spans("execute_tool wait")); n != 1000 {
		t.Errorf("%d spans of open calls, want 1000", n)
	}
	if b.span("execute_tool below-nothing").Parent.SpanID() != run.SpanContext.SpanID() || b.span("execute_tool below-more").Parent.SpanID() == run.SpanContext.SpanID() {
		t.Error("the last thousand ended calls were not kept")
	}
	for _, s := range b.traces.GetSpans() {
		for key, text := range attributesOf(s.Attributes) {
			if len(text) > 256 || !strings.HasPrefix(long, text) && strings.Contains(text, "\ufffd") {
				t.Errorf("%s of %q is %d bytes", key, s.Name[:20], len(text))
			}
		}
	}
}

// The version of the CLI is recorded when it is known, and its end is not awaited.
func TestAgentVersion(t *testing.T) {
	t.Parallel()
	b := newRecorder(t)
	for _, session := range []bool{false, true} {
		run := recordable()
		run.Session = session
		run.Version = func(context.Context) (string, error) { return "4.5.6", nil }
		b.end(b.record(t.Context(), run), agent.Result{}, nil)
		run.Version = func(ctx context.Context) (string, error) { <-ctx.Done(); return "", ctx.Err() }
		b.end(b.record(t.Context(), run), agent.Result{}, nil)
	}
	for _, name := range []string{"invoke_agent parrot", "session parrot"} {
		spans := b.spans(name)
		if len(spans) != 2 {
			t.Fatalf("%d spans %q", len(spans), name)
		}
		b.want(spans[0], map[string]string{"gen_ai.agent.version": "4.5.6"})
		b.want(spans[1], map[string]string{"gen_ai.agent.version": ""})
	}
}

// The attempts of a fallback are in one trace, that of the caller if there is one.
func TestFallbackIsOneTrace(t *testing.T) {
	t.Parallel()
	b := newRecorder(t)
	group := agent.Recorders(b.Recorder, b.Recorder).(agent.GroupRecorder)
	ctx, end := group.Group(t.Context(), []string{"TRACEPARENT=00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"})
	for range 2 {
		b.end(b.record(ctx, recordable()), agent.Result{}, &agent.Error{Kind: agent.ErrQuota, Err: errors.New("used up")})
	}
	end(agent.Result{Attempts: make([]agent.Attempt, 1)}, &agent.Error{Kind: agent.ErrQuota, Err: errors.New("used up")})
	groups := b.spans("fallback")
	if len(groups) != 2 {
		t.Fatalf("%d groups, want one of each recorder", len(groups))
	}
	b.want(groups[0], map[string]string{"bus_agent.fallback.attempts": "2", "error.type": "quota"})
	for _, s := range b.traces.GetSpans() {
		if id := s.SpanContext.TraceID().String(); id != "0af7651916cd43dd8448eb211c80319c" {
			t.Errorf("%s is in the trace %s", s.Name, id)
		}
	}
	for _, s := range b.spans("invoke_agent parrot") {
		if !slices.ContainsFunc(groups, func(g tracetest.SpanStub) bool { return g.SpanContext.SpanID() == s.Parent.SpanID() }) {
			t.Error("an attempt is not below a group")
		}
	}
}
