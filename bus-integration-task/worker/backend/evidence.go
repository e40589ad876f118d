package backend

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	"github.com/busdk/bus-agent/agent"

	"github.com/busdk/bus-integration-task/closeout"
)

// evidence is what the events of a conversation show.
type evidence struct {
	reporter *reporter
	reading  []string // tools that change nothing

	mu       *sync.Mutex
	info     Conversation
	usage    *agent.Usage
	commands closeout.CommandLog
	running  map[string]string // calls of commands by ID, as they were reported
	plan     []agent.PlanStep
	mayHave  bool // changed something
	worked   bool // it has answered, or called a tool
}

func newEvidence(r *reporter, reading []string) evidence {
	return evidence{reporter: r, reading: reading, mu: new(sync.Mutex), running: map[string]string{}, commands: closeout.CommandLog{Mask: r.mask.Text}}
}

// started notes the ID of the run record.
func (v *evidence) started(runID string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.info.RunID = runID
}

// opened notes and reports the thread and the model, if they are news.
func (v *evidence) opened(threadID, model string) {
	v.mu.Lock()
	before := v.info
	if threadID != "" {
		v.info.ThreadID = threadID
	}
	if model != "" {
		v.info.Model = model
	}
	info := v.info
	v.mu.Unlock()
	if f := v.reporter.listener.Opened; f != nil && info != before {
		v.reporter.call(func() { f(info) })
	}
}

// mayHaveChanged reports whether the agent may have changed something.
func (v *evidence) mayHaveChanged() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.mayHave
}

// describe completes an outcome.
func (v *evidence) describe(o *Outcome) {
	v.mu.Lock()
	defer v.mu.Unlock()
	o.Conversation, o.Usage = v.info, v.usage
	o.Plan, o.Commands = v.plan, v.commands.Commands()
}

// event notes and reports an event of the agent.
func (v *evidence) event(e *agent.Event) error {
	switch e.Kind {
	case agent.KindText, agent.KindToolCall, agent.KindFileChange, agent.KindPlan:
		v.mu.Lock()
		v.worked = true
		v.mu.Unlock()
	}
	switch e.Kind {
	case agent.KindSessionStarted:
		v.opened(e.SessionID, e.Model)
	case agent.KindText:
		if e.Subagent == "" {
			v.reporter.message(e.MessageID, e.Text, e.Delta)
		}
	case agent.KindToolCall:
		v.called(e)
	case agent.KindToolResult:
		v.returned(e)
	case agent.KindFileChange:
		v.fileChange(e)
	case agent.KindPlan:
		v.planned(e)
	case agent.KindApproval:
		if e.Failed {
			v.reporter.progress("declined: " + e.Text)
		}
	case agent.KindRetry:
		v.reporter.progress("the model request is repeated: " + e.Text)
	case agent.KindWarning:
		v.reporter.progress("warning: " + e.Text)
	case agent.KindUsage:
		if e.Usage != nil && e.Subagent == "" {
			v.mu.Lock()
			v.usage = e.Clone().Usage
			v.mu.Unlock()
		}
	case agent.KindRaw:
		if e.Truncated {
			v.mu.Lock()
			v.mayHave = true
			v.mu.Unlock()
		}
	}
	return nil
}

// called notes the call of a tool.
func (v *evidence) called(e *agent.Event) {
	if e.Tool == nil {
		return
	}
	command := commandOf(e.Tool)
	text := line(v.reporter.mask.Text(cmp.Or(command, e.Tool.Name)), maxSummary)
	v.mu.Lock()
	v.mayHave = v.mayHave || !slices.Contains(v.reading, e.Tool.Name)
	v.commands.Add(e)
	if command != "" && e.Tool.ID != "" && len(v.running) < closeout.MaxCommands {
		v.running[e.Tool.ID] = text
	}
	v.mu.Unlock()
	v.reporter.progress("running: " + text)
}

// returned notes the end of a tool.
func (v *evidence) returned(e *agent.Event) {
	if e.Tool == nil {
		return
	}
	v.mu.Lock()
	text, ok := v.running[e.Tool.ID]
	delete(v.running, e.Tool.ID)
	v.commands.Add(e)
	v.mu.Unlock()
	switch code := e.Tool.ExitCode; {
	case !ok:
	case code != nil:
		v.reporter.progress(fmt.Sprintf("exit code %d: %s", *code, text))
	case e.Failed:
		v.reporter.progress("failed: " + text)
	}
}

func (v *evidence) fileChange(e *agent.Event) {
	v.mu.Lock()
	v.mayHave = true
	v.mu.Unlock()
	outcome := ""
	if e.Failed {
		outcome = " failed"
	}
	const most = 10
	for i, c := range e.Changes {
		if i == most {
			v.reporter.progress(fmt.Sprintf("and %d more files", len(e.Changes)-most))
			break
		}
		v.reporter.progress(c.Action + " " + c.Path + outcome)
	}
}

// maxPlan bounds the steps of a plan.
const maxPlan = 100

func (v *evidence) planned(e *agent.Event) {
	done := 0
	var plan []agent.PlanStep
	for _, s := range e.Plan[:min(len(e.Plan), maxPlan)] {
		if s.Status == "completed" {
			done++
		}
		s.Text = line(v.reporter.mask.Text(s.Text), maxSummary)
		plan = append(plan, s)
	}
	v.mu.Lock()
	v.plan = plan
	v.mu.Unlock()
	v.reporter.progress(fmt.Sprintf("plan: %d of %d steps completed", done, len(plan)))
}
