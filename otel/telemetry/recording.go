package telemetry

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/capture"
)

// A recording is one run or session.
type recording struct {
	*Recorder
	runtime string
	session bool
	resumed bool // continues an earlier session
	mask    *masker

	whole *invocation // the run or the session

	// labels are attributes of all spans and metrics, start of the spans of
	// invocations.
	labels []attribute.KeyValue
	start  []attribute.KeyValue

	mu sync.Mutex // messages and events of a session arrive concurrently

	turn *turn // current turn of a session

	model        string // as the agent reported it
	conversation string
	tools        toolCalls
	answer       capture.Answer
	usage        agent.Usage // of the session
	before       agent.Usage // of the session, before the current turn
	version      *version    // of the agent's CLI
}

// An invocation is the span of a run, session, turn or tool call.
type invocation struct {
	ctx   context.Context // contains span
	span  trace.Span
	begun time.Time
}

// begin starts the span of run.
func (r *Recorder) begin(ctx context.Context, run agent.Recordable) *recording {
	rec := &recording{
		Recorder: r, session: run.Session, mask: newMasker(slices.Concat(run.Environ, run.Secrets)),
		resumed:      run.Request.Resume != "" || run.Request.Continue,
		conversation: run.Request.Resume,
	}
	rec.tools.init()
	rec.runtime = rec.mask.name(run.Start.Runtime)
	provider := run.Provider
	if provider == "" {
		provider = rec.runtime // the conventions permit custom values
	}
	rec.labels = []attribute.KeyValue{semconv.GenAIAgentName(rec.runtime), semconv.GenAIProviderNameKey.String(rec.mask.name(provider))}
	rec.labels = rec.with(rec.labels, semconv.GenAIRequestModelKey, run.Start.Model)
	rec.labels = rec.with(rec.labels, keyProject, run.Request.Labels.Project)

	rec.start = []attribute.KeyValue{keyAccess.String(rec.mask.name(string(access(run.Request))))}
	rec.start = rec.with(rec.start, keyTask, run.Request.Labels.Task)
	rec.start = rec.with(rec.start, keyParentRun, run.Request.Labels.Parent)
	rec.start = rec.with(rec.start, keyPreviousRun, run.Request.Labels.Previous)
	if len(run.Request.Schema) > 0 {
		rec.start = append(rec.start, semconv.GenAIOutputTypeJSON)
	}

	if run.Session {
		rec.whole = rec.invoke(ctx, "session "+rec.runtime, trace.SpanKindInternal)
	} else {
		rec.whole = rec.invokeAgent(ctx)
		rec.whole.input(rec, run.Request.Prompt)
	}
	if rec.whole.span.IsRecording() && run.Version != nil {
		rec.version = ask(ctx, run.Version)
	}
	return rec
}

func access(req agent.Request) agent.Access {
	if req.Access == "" {
		return agent.AccessWrite
	}
	return req.Access
}

// invokeAgent starts the span of a run or turn. The kind is client because the agent
// is another process.
func (r *recording) invokeAgent(ctx context.Context) *invocation {
	name := semconv.GenAIOperationNameInvokeAgent
	return r.invoke(ctx, name.Value.AsString()+" "+r.runtime, trace.SpanKindClient, name)
}

func (r *recording) invoke(ctx context.Context, name string, kind trace.SpanKind, attributes ...attribute.KeyValue) *invocation {
	i := &invocation{begun: time.Now()}
	i.ctx, i.span = r.tracer.Start(ctx, name, trace.WithSpanKind(kind), trace.WithTimestamp(i.begun),
		trace.WithAttributes(attributes...), trace.WithAttributes(r.labels...), trace.WithAttributes(r.start...))
	return i
}

// with appends an attribute to list, unless value is empty.
func (r *recording) with(list []attribute.KeyValue, key attribute.Key, value string) []attribute.KeyValue {
	if value == "" {
		return list
	}
	return append(list, key.String(r.mask.name(value)))
}

// current returns the invocation of new events.
func (r *recording) current() *invocation {
	if r.turn != nil {
		return r.turn.invocation
	}
	return r.whole
}

// event records e and does not retain it.
func (r *recording) event(e *agent.Event) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.session && r.turn == nil && e.Subagent == "" && beginsTurn(e) {
		r.beginTurn()
	}
	if r.session && r.content {
		r.answer.Note(e)
	}
	switch e.Kind {
	case agent.KindSessionStarted:
		if e.Subagent == "" {
			r.model = cmp.Or(e.Model, r.model)
			r.conversation = cmp.Or(e.SessionID, r.conversation)
		}
	case agent.KindToolCall:
		r.toolCall(e)
	case agent.KindToolResult:
		r.toolResult(e)
	case agent.KindRetry:
		r.current().span.AddEvent("bus_agent.retry", trace.WithAttributes(
			keyAttempt.Int(e.Attempt), keyFailure.String(string(e.Failure))))
	case agent.KindApproval:
		if e.Failed {
			r.denied(e)
		}
	case agent.KindUsage:
		if e.Usage != nil && e.Subagent == "" {
			r.usage = *e.Clone().Usage
		}
	case agent.KindResult:
		if r.session && e.Subagent == "" {
			r.turnResult(e)
		}
	}
	return nil
}

// end records the result and ends all spans.
func (r *recording) end(_ context.Context, result agent.Result, err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.conversation = cmp.Or(result.SessionID, r.conversation)
	if r.turn != nil {
		if err == nil {
			r.turn.span.SetAttributes(keyInterrupted.Bool(true))
		}
		r.endTurn(nil, errorType(err), "the agent ended during the turn")
	}
	r.endTools()
	w := r.whole
	r.version.stop()
	w.span.SetAttributes(r.reported()...)
	w.span.SetAttributes(r.with(nil, keyRun, result.RunID)...)
	if result.ExitCode >= 0 {
		w.span.SetAttributes(semconv.ProcessExitCode(result.ExitCode))
	}
	if result.Usage != nil {
		w.span.SetAttributes(usageAttributes(result.Usage)...)
	}
	if r.tools.untraced > 0 {
		w.span.SetAttributes(keyUntraced.Int(r.tools.untraced))
	}
	kind := errorType(err)
	description := ""
	if err != nil && r.content {
		description = r.mask.text(err.Error())
	}
	w.output(r, result.Text, kind)
	d := w.finish(kind, description)
	if r.session {
		return nil // the turns were counted
	}
	r.count(w.ctx, d, kind, result.Usage)
	return nil
}

// reported returns the attributes that the agent reported.
func (r *recording) reported() []attribute.KeyValue {
	list := r.with(nil, semconv.GenAIResponseModelKey, r.model)
	list = r.with(list, semconv.GenAIAgentVersionKey, r.version.known())
	return r.with(list, semconv.GenAIConversationIDKey, r.conversation)
}

// count records the metrics of a run or turn. It skips the cumulative usage of a
// resumed session, part of which was counted before.
func (r *recording) count(ctx context.Context, d time.Duration, kind string, usage *agent.Usage) {
	labels := append(r.labels[:len(r.labels):len(r.labels)], semconv.GenAIOperationNameInvokeAgent)
	labels = r.with(labels, semconv.GenAIResponseModelKey, r.model)
	if usage != nil && !(usage.Cumulative && r.resumed) {
		r.instruments.recordUsage(ctx, usage, labels)
	}
	r.instruments.recordDuration(ctx, d, labels, kind)
}

// finish ends the span and returns its duration. The span failed if kind, its error
// type, is not empty.
func (i *invocation) finish(kind, description string) time.Duration {
	if kind != "" {
		i.span.SetAttributes(semconv.ErrorTypeKey.String(kind))
		i.span.SetStatus(codes.Error, description)
	}
	now := time.Now()
	i.span.End(trace.WithTimestamp(now))
	return now.Sub(i.begun)
}

// errorType returns the error type of err: its kind, or that of the conventions for
// other errors.
func errorType(err error) string {
	kind := agent.KindOf(err)
	if kind == "error" {
		return semconv.ErrorTypeOther.Value.AsString()
	}
	return kind
}

func usageAttributes(u *agent.Usage) []attribute.KeyValue {
	list := []attribute.KeyValue{
		semconv.GenAIUsageInputTokensKey.Int64(u.Input), semconv.GenAIUsageOutputTokensKey.Int64(u.Output),
		semconv.GenAIUsageCacheReadInputTokensKey.Int64(u.Cached), semconv.GenAIUsageReasoningOutputTokensKey.Int64(u.Reasoning),
	}
	if u.CostUSD != nil {
		list = append(list, keyCost.Float64(*u.CostUSD))
	}
	if u.Cumulative {
		list = append(list, keyCumulative.Bool(true))
	}
	return list
}
