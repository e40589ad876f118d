package delegation

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/runner"
	"github.com/busdk/bus-agent/structured"
)

// A Task is what the caller wants from an agent.
type Task struct {
	Prompt string

	// Runtime, Model and Effort choose the agent. Empty means the defaults of the user.
	Runtime string
	Model   string
	Effort  agent.ReasoningEffort

	// Access of the agent. Empty means the most that the broker allows.
	Access agent.Access

	// Workdir is the folder of the agent, absolute or relative to that of the broker.
	// Empty means that of the broker. Roots are the folders that the caller works in, if
	// it reports them: the agent works in one of them.
	Workdir string
	Roots   []string

	// Timeout bounds the run. Zero means the limit of the broker.
	Timeout time.Duration

	// Resume is the SessionID of an earlier run of the same broker, to continue it.
	Resume string

	// Schema is a JSON Schema that the answer follows; nil means none.
	Schema json.RawMessage
}

// An Answer is the result of a run. With an error it has what is known.
type Answer struct {
	Runtime   string `json:"runtime,omitempty"`
	Model     string `json:"model,omitempty"`
	SessionID string `json:"session_id,omitempty"`

	Text      string `json:"text"`
	Truncated bool   `json:"truncated,omitempty"`                                               // the middle of Text is missing
	Value     any    `json:"value,omitempty" jsonschema:"the answer, if the call has a schema"` // the answer as JSON, if the task has a schema

	Changes    []string     `json:"changes,omitempty"` // files that the agent reports to have changed
	Usage      *agent.Usage `json:"usage,omitempty"`
	DurationMS int64        `json:"duration_ms"`
	RunID      string       `json:"run_id,omitempty"` // of the record
	Warnings   []string     `json:"warnings,omitempty"`
}

// The bounds of Answer.Changes: files, and the bytes of a path.
const (
	maxChanges = 200
	maxPath    = 4096
)

// Run runs an agent to its end. It returns when all its processes are gone, also if ctx
// ends first. progress, which may be nil, is called with what the agent does, a line each,
// and should not block. The errors are those of [runner.Runner.Run], and ErrLimit.
func (b *Broker) Run(ctx context.Context, task Task, progress func(string)) (answer Answer, err error) {
	ctx, done, err := b.begin(ctx)
	if err != nil {
		return answer, err
	}
	defer done()
	req, err := b.request(task)
	if err != nil {
		return answer, err
	}
	schema, err := compile(task.Schema)
	if err != nil {
		return answer, err
	}
	over, err := b.budget.agent()
	if err != nil {
		return answer, err
	}
	defer over()
	limit, ended, err := b.budget.turn(task.Timeout)
	if err != nil {
		return answer, err
	}
	defer ended()
	r := *b.settings.Runner
	if b.settings.Record != nil {
		r.Recorder = agent.Recorders(b.settings.Record.Recorder(), r.Recorder)
		req.Labels = b.settings.Record.Labels
	}
	var changed []string
	story := story{report: func(n note) {
		if progress != nil {
			progress(n.line())
		}
	}}
	out := agent.Output{Events: func(e *agent.Event) error {
		changed = addChanges(changed, e)
		story.add(e)
		return nil
	}}
	var result agent.Result
	req.Timeout = limit
	if schema != nil {
		req.Schema = schema.JSON()
		enforcer := structured.Enforcer{Next: &countedRuns{runner: &r, budget: &b.budget}, Schema: schema, Environ: b.settings.environ(), Warn: r.Warn}
		result, err = enforcer.Run(ctx, req, out)
	} else {
		result, err = r.Run(ctx, req, out)
	}
	story.flush()
	b.remember(result.SessionID, req.Workdir)
	answer = b.answer(result)
	answer.Changes = changed
	if schema != nil && err == nil && !answer.Truncated {
		answer.Value = json.RawMessage(result.Text)
	}
	return answer, err
}

// countedRuns takes the second run of a task, which asks for another answer, from the budget.
type countedRuns struct {
	runner *runner.Runner
	budget *budget
	again  bool
}

func (c *countedRuns) Run(ctx context.Context, req agent.Request, out agent.Output) (agent.Result, error) {
	if c.again {
		if err := c.budget.again(); err != nil {
			return agent.Result{Runtime: req.Runtime, Model: req.Model, ExitCode: -1}, err
		}
	}
	c.again = true
	return c.runner.Run(ctx, req, out)
}

// request returns the request of a task, without its limits.
func (b *Broker) request(task Task) (agent.Request, error) {
	access, err := b.access(task.Access)
	if err != nil {
		return agent.Request{}, err
	}
	dir, err := b.workdir(task.Workdir, task.Roots)
	if err != nil {
		return agent.Request{}, err
	}
	if err := b.resumable(task.Resume, dir); err != nil {
		return agent.Request{}, err
	}
	return agent.Request{
		Runtime: task.Runtime, Prompt: task.Prompt, Workdir: dir, Model: task.Model, ReasoningEffort: task.Effort,
		Access: access, Env: []string{b.environ(access)}, Resume: task.Resume, CaptureLimit: -1,
	}, nil
}

// compile returns the schema of a task, nil for none.
func compile(text json.RawMessage) (*structured.Schema, error) {
	if text == nil {
		return nil, nil
	}
	schema, err := structured.Compile(text)
	if err != nil {
		return nil, agent.Usagef("schema: %w", err)
	}
	return schema, nil
}

// answer returns what the caller gets of a result.
func (b *Broker) answer(result agent.Result) Answer {
	text, cut := bounded(result.Text, b.settings.Output)
	return Answer{
		Runtime: result.Runtime, Model: result.Model, SessionID: result.SessionID,
		Text: text, Truncated: cut || result.TextTruncated,
		Usage: result.Usage, DurationMS: result.Duration.Milliseconds(), RunID: result.RunID, Warnings: result.Warnings,
	}
}

// addChanges adds the files that an event reports as changed.
func addChanges(changed []string, e *agent.Event) []string {
	if e.Kind != agent.KindFileChange || e.Failed {
		return changed
	}
	for _, c := range e.Changes {
		if path := headOf(c.Path, maxPath); len(changed) < maxChanges && !slices.Contains(changed, path) {
			changed = append(changed, path)
		}
	}
	return changed
}
