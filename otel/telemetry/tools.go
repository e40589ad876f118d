package telemetry

import (
	"context"
	"time"

	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/busdk/bus-agent/agent"
)

const (
	// maxOpenCalls is the maximum number of open tool calls. Further ones get no
	// span.
	maxOpenCalls = 1000
	// maxEndedCalls is how many ended calls are kept, as the parents of calls by
	// subagents that they started in the background.
	maxEndedCalls = 1000
)

// toolFailed is the error type of a tool that failed.
const toolFailed = "tool_failed"

// toolCalls are the tool calls of a run, by ID.
type toolCalls struct {
	open     map[string]*toolCall
	ended    map[string]trace.SpanContext
	order    []string // ring buffer of the keys of ended, the oldest at next
	next     int
	untraced int
}

type toolCall struct {
	invocation
	name string
}

func (t *toolCalls) init() {
	t.open, t.ended = map[string]*toolCall{}, map[string]trace.SpanContext{}
}

// toolCall starts the span of a tool call.
func (r *recording) toolCall(e *agent.Event) {
	if e.Tool == nil {
		return
	}
	id := clip(e.Tool.ID, maxName)
	if c, again := r.tools.open[id]; again {
		if e.Delta {
			r.arguments(c, e.Tool)
		}
		return
	}
	if len(r.tools.open) >= maxOpenCalls {
		r.tools.untraced++
		return
	}
	c := &toolCall{name: r.mask.name(e.Tool.Name)}
	if c.name == "" {
		c.name = "unknown"
	}
	c.begun = time.Now()
	operation := semconv.GenAIOperationNameExecuteTool
	c.ctx, c.span = r.tracer.Start(r.callerOf(e), operation.Value.AsString()+" "+c.name, trace.WithTimestamp(c.begun), trace.WithAttributes(
		operation, semconv.GenAIToolName(c.name), semconv.GenAIToolType("function"), semconv.GenAIToolCallID(r.mask.name(e.Tool.ID)),
		semconv.GenAIAgentName(r.runtime),
	))
	r.arguments(c, e.Tool)
	r.tools.open[id] = c
}

// arguments records the input of a call, which can come after the call.
func (r *recording) arguments(c *toolCall, tool *agent.Tool) {
	if r.content && c.span.IsRecording() && len(tool.Input) > 0 {
		c.span.SetAttributes(semconv.GenAIToolCallArgumentsKey.String(r.mask.text(string(tool.Input))))
	}
}

// callerOf returns the context of the parent of e: the call that started its
// subagent, or the current invocation.
func (r *recording) callerOf(e *agent.Event) context.Context {
	current := r.current().ctx
	if e.Subagent == "" {
		return current
	}
	id := clip(e.Subagent, maxName)
	if c := r.tools.open[id]; c != nil {
		return c.ctx
	}
	if span, ok := r.tools.ended[id]; ok {
		return trace.ContextWithSpanContext(current, span)
	}
	return current
}

// toolResult ends the span of the call whose result is e.
func (r *recording) toolResult(e *agent.Event) {
	if e.Tool == nil {
		return
	}
	id := clip(e.Tool.ID, maxName)
	c := r.tools.open[id]
	if c == nil {
		return
	}
	delete(r.tools.open, id)
	r.tools.remember(id, c.span.SpanContext())
	if e.Tool.ExitCode != nil {
		c.span.SetAttributes(semconv.ProcessExitCode(*e.Tool.ExitCode))
	}
	if r.content && c.span.IsRecording() && !e.Tool.Output.IsZero() {
		c.span.SetAttributes(semconv.GenAIToolCallResultKey.String(r.mask.payload(e.Tool.Output)))
	}
	kind := ""
	if e.Failed {
		kind = toolFailed
	}
	d := c.finish(kind, "")
	labels := append(r.labels[:len(r.labels):len(r.labels)], semconv.GenAIOperationNameExecuteTool, semconv.GenAIToolName(c.name))
	r.instruments.recordDuration(c.ctx, d, labels, kind)
}

// remember stores the span of an ended call, replacing the oldest if there are too
// many.
func (t *toolCalls) remember(id string, span trace.SpanContext) {
	if _, again := t.ended[id]; !again {
		if len(t.order) < maxEndedCalls {
			t.order = append(t.order, id)
		} else {
			delete(t.ended, t.order[t.next])
			t.order[t.next] = id
			t.next = (t.next + 1) % maxEndedCalls
		}
	}
	t.ended[id] = span
}

// endTools ends the spans of calls without a result. It records no duration, which is
// unknown.
func (r *recording) endTools() {
	now := time.Now()
	for id, c := range r.tools.open {
		c.span.SetAttributes(keyUnfinished.Bool(true))
		c.span.End(trace.WithTimestamp(now))
		delete(r.tools.open, id)
	}
}

// denied records a denied approval request.
func (r *recording) denied(e *agent.Event) {
	span := r.current().span
	if e.Tool != nil {
		if c := r.tools.open[clip(e.Tool.ID, maxName)]; c != nil {
			span = c.span
		}
	}
	span.AddEvent("bus_agent.denied")
}
