package run

import (
	"encoding/json"
	"errors"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/commands/cmdline"
)

// runReport is a finished run in JSON.
type runReport struct {
	Text       string       `json:"text"`
	Truncated  bool         `json:"text_truncated,omitempty"`
	Repeated   bool         `json:"repeated,omitempty"`
	Runtime    string       `json:"runtime"`
	Model      string       `json:"model"`
	SessionID  string       `json:"session_id"`
	Usage      *agent.Usage `json:"usage"`
	CostUSD    *float64     `json:"cost_usd"`
	DurationMS int64        `json:"duration_ms"`
	ExitCode   int          `json:"exit_code"`
	Signal     string       `json:"signal,omitempty"`
	Kind       string       `json:"kind"`
	Error      string       `json:"error"`
	Stderr     string       `json:"stderr,omitempty"`
	RunID      string       `json:"run_id,omitempty"`
	Attempts   []attempt    `json:"attempts"`
	Warnings   []string     `json:"warnings"`

	// Structured is the answer where it has to follow a schema.
	Structured json.RawMessage `json:"structured,omitempty"`
}

// attempt is a run of another runtime before the one of the report, in JSON.
type attempt struct {
	agent.Attempt
	CostUSD    *float64 `json:"cost_usd"`
	DurationMS int64    `json:"duration_ms"`
}

func Report(r agent.Result, err error) runReport {
	out := runReport{
		Text: r.Text, Truncated: r.TextTruncated, Repeated: r.Repeated,
		Runtime: r.Runtime, Model: r.Model, SessionID: r.SessionID, RunID: r.RunID,
		Usage: r.Usage, DurationMS: r.Duration.Milliseconds(),
		ExitCode: r.ExitCode, Signal: r.Signal,
		Kind: agent.KindOf(err), Attempts: []attempt{}, Warnings: r.Warnings,
	}
	for _, a := range r.Attempts {
		tried := attempt{Attempt: a, DurationMS: a.Duration.Milliseconds()}
		if a.Usage != nil {
			tried.CostUSD = a.Usage.CostUSD
		}
		out.Attempts = append(out.Attempts, tried)
	}
	if out.Model == "" {
		out.Model = "auto"
	}
	if r.Usage != nil {
		out.CostUSD = r.Usage.CostUSD
	}
	if err != nil {
		out.Error = err.Error()
		out.Stderr = cmdline.StderrOf(err)
		if e, ok := errors.AsType[*agent.Error](err); ok && out.Runtime == "" {
			out.Runtime = e.Runtime
		}
	}
	if out.Warnings == nil {
		out.Warnings = []string{}
	}
	return out
}
