package telemetry

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/busdk/bus-agent/agent"
)

// A recording is one run or session.
type recording struct {
	*Recorder
	runtime string
	session bool
	resumed bool // an earlier session goes on
	mask    *masker

	// whole is the run or the session.
	whole *invocation

	// labels are on every span and metric, start on every span of an invocation
	// from its beginning.
	labels []attribute.KeyValue
	start  []attribute.KeyValue

	mu sync.Mutex // a message of a session can come while an event does

	// turn is the current turn of a session, unsaid when a turn ended whose message
	// was not told.
	turn   *turn
	unsaid time.Time

	model        string // as the agent reported it
	conversation string
	tools        toolCalls
	answer       answer
	usage        agent.Usage // of the session up to now
	before       agent.Usage // what of it earlier turns consumed
}

// An invocation is a span that tool calls belong to: a run, a session or a turn.
type invocation struct {
	ctx   context.Context // holds the span
	span  trace.Span
	begun time.Time
}

// begin starts the span of run.
func (r *Recorder) begin(ctx context.Context, run agent.Recordable) *recording {
	rec := &recording{
		Recorder: r, session: run.Session, mask: newMasker(run.Environ),
		resumed:      run.Request.Resume != "" || run.Request.Continue,
		conversation: run.Request.Resume,
	}
	rec.tools.init()
	rec.runtime = rec.mask.word(run.Start.Runtime)
	provider := run.Provider
	if provider == "" {
		provider = rec.runtime // a value of ours, as the conventions allow
	}
	rec.labels = []attribute.KeyValue{semconv.GenAIAgentName(rec.runtime), semconv.GenAIProviderNameKey.String(rec.mask.word(provider))}
	rec.labels = rec.with(rec.labels, semconv.GenAIRequestModelKey, run.Start.Model)
	rec.labels = rec.with(rec.labels, keyProject, run.Request.Labels.Project)

	rec.start = []attribute.KeyValue{keyAccess.String(rec.mask.word(string(access(run.Request))))}
	rec.start = rec.with(rec.start, keyTask, run.Request.Labels.Task)
	rec.start = rec.with(rec.start, keyParentRun, run.Request.Labels.Parent)
	rec.start = rec.with(rec.start, keyPreviousRun, run.Request.Labels.Previous)
	if len(run.Request.Schema) > 0 {
		rec.start = append(rec.start, semconv.GenAIOutputTypeJSON)
	}

	if run.Session {
		rec.whole = rec.invoke(ctx, "session "+rec.runtime, trace.SpanKindInternal)
		return rec
	}
	rec.whole = rec.invokeAgent(ctx)
	rec.whole.input(rec, run.Request.Prompt)
	return rec
}

func access(req agent.Request) agent.Access {
	if req.Access == "" {
		return agent.AccessWrite
	}
	return req.Access
}

// invokeAgent starts the span of a run or turn. The agent is another process,
// hence the kind.
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

// with returns list with value under key, unless it is empty.
func (r *recording) with(list []attribute.KeyValue, key attribute.Key, value string) []attribute.KeyValue {
	if value == "" {
		return list
	}
	return append(list, key.String(r.mask.word(value)))
}

// current is what the agent's doings belong to.
func (r *recording) current() *invocation {
	if r.turn != nil {
		return r.turn.invocation
	}
	return r.whole
}

// event takes in what the agent reported. It keeps no more of e than strings.
func (r *recording) event(e *agent.Event) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.session && r.turn == nil && e.Subagent == "" && beginsTurn(e) {
		r.beginTurn()
	}
	switch e.Kind {
	case agent.KindSessionStarted:
		if e.Subagent == "" {
			r.note(e)
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
	case agent.KindText:
		if r.content && e.Subagent == "" {
			r.answer.add(e)
		}
	case agent.KindUsage:
		if e.Usage != nil && e.Subagent == "" {
			r.usage = *e.Clone().Usage
		}
	case agent.KindResult:
		if r.session && e.Subagent == "" {
			r.turnOver(e)
		}
	}
	return nil
}

func (r *recording) note(e *agent.Event) {
	if e.Model != "" {
		r.model = e.Model
	}
	if e.SessionID != "" {
		r.conversation = e.SessionID
	}
}

// end closes every span with what the run came to.
func (r *recording) end(_ context.Context, result agent.Result, err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if result.SessionID != "" {
		r.conversation = result.SessionID
	}
	if r.turn != nil {
		if err == nil {
			r.turn.span.SetAttributes(keyInterrupted.Bool(true))
		}
		r.endTurn(errorType(err), "the agent ended during the turn")
	}
	r.endTools()
	w := r.whole
	w.span.SetAttributes(r.known()...)
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
		return nil // its turns are counted
	}
	r.count(w.ctx, d, kind, result.Usage)
	return nil
}

// known returns what the agent has told of itself.
func (r *recording) known() []attribute.KeyValue {
	list := r.with(nil, semconv.GenAIResponseModelKey, r.model)
	return r.with(list, semconv.GenAIConversationIDKey, r.conversation)
}

// count records the metrics of an invocation. Usage of a whole session that went
// on cannot be told apart from what was counted before.
func (r *recording) count(ctx context.Context, d time.Duration, kind string, usage *agent.Usage) {
	labels := append(r.labels[:len(r.labels):len(r.labels)], semconv.GenAIOperationNameInvokeAgent)
	labels = r.with(labels, semconv.GenAIResponseModelKey, r.model)
	if usage != nil && !(usage.Cumulative && r.resumed) {
		r.instruments.recordUsage(ctx, usage, labels)
	}
	if kind != "" {
		labels = append(labels, semconv.ErrorTypeKey.String(kind))
	}
	r.instruments.recordDuration(ctx, d, labels)
}

// finish ends the span, as failed when kind is not empty, and returns how long it
// took.
func (i *invocation) finish(kind, description string) time.Duration {
	if kind != "" {
		i.span.SetAttributes(semconv.ErrorTypeKey.String(kind))
		i.span.SetStatus(codes.Error, description)
	}
	now := time.Now()
	i.span.End(trace.WithTimestamp(now))
	return now.Sub(i.begun)
}

// errorType returns err as a word of agent.KindOf, or the word of the conventions
// for what has none.
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
