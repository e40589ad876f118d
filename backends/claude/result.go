package claude

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/busdk/bus-agent/agent"
)

// result is the end of a turn. A run can have several turns; the last result counts.
type result struct {
	Subtype   string   `json:"subtype"`
	IsError   bool     `json:"is_error"`
	Text      string   `json:"result"`
	Errors    []string `json:"errors"`
	APIStatus int      `json:"api_error_status"`
	// Terminal begins with "aborted" when the turn was interrupted. Errors is then a
	// diagnostic of the CLI.
	Terminal string `json:"terminal_reason"`
	// Structured is the answer to a request with a schema. The model gives it by a
	// tool call, so no message has it.
	Structured json.RawMessage `json:"structured_output"`

	// Both are totals of the session, also across a resume.
	TotalCost *float64              `json:"total_cost_usd"`
	Models    map[string]modelUsage `json:"modelUsage"`
	// What this process has used since the result before this one.
	Since map[string]modelUsage `json:"model_usage_since_last_result"`
}

type modelUsage struct {
	Input         int64   `json:"inputTokens"`
	Output        int64   `json:"outputTokens"`
	Thinking      int64   `json:"thinkingTokens"`
	CacheRead     int64   `json:"cacheReadInputTokens"`
	CacheCreation int64   `json:"cacheCreationInputTokens"`
	Cost          float64 `json:"costUSD"`
}

func (d *decoder) result(raw []byte, events []agent.Event) ([]agent.Event, bool) {
	var r result
	err := json.Unmarshal(raw, &r)
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); err != nil && !ok {
		return events, false
	}
	var verdict struct {
		Subtype string `json:"subtype"`
		IsError bool   `json:"is_error"`
	}
	if json.Unmarshal(raw, &verdict) != nil { // other members, such as usage, may have any type
		r.IsError, r.Errors = true, []string{"how the turn has ended cannot be read"}
	}
	if u := d.usage(&r); u != nil {
		events = append(events, agent.Event{Kind: agent.KindUsage, Usage: u})
	}
	if len(r.Structured) > 0 && string(r.Structured) != "null" {
		events = append(events, agent.Event{Kind: agent.KindText, Text: string(r.Structured)})
	}
	e := agent.Event{Kind: agent.KindResult, Text: r.Text}
	// An API failure is a "success" with is_error.
	if r.IsError || strings.HasPrefix(r.Subtype, "error") {
		e.Failed = true
		e.Text = r.reason()
		e.Failure = classify(r.APIStatus, "")
		if e.Failure == "" {
			e.Failure = d.failure
		}
		if strings.HasPrefix(r.Terminal, "aborted") {
			e.Interrupted, e.Text, e.Failure = true, "the turn was interrupted", ""
		}
	}
	d.failure = ""
	clear(d.streaming)
	return append(events, e), true
}

func (r *result) reason() string {
	switch {
	case len(r.Errors) > 0:
		return strings.Join(r.Errors, "; ")
	case r.Text != "":
		return r.Text
	case r.Subtype == "error_max_turns":
		return "the limit of turns was reached"
	case r.Subtype == "error_max_budget_usd":
		return "the budget is used up"
	}
	return strings.ReplaceAll(r.Subtype, "_", " ")
}

// usage returns the usage of this process so far, or of the session if the CLI does
// not distinguish them.
func (d *decoder) usage(r *result) *agent.Usage {
	switch {
	case r.Since != nil:
		add(&d.spent, r.Since)
		u := d.spent
		if u == (agent.Usage{}) {
			return nil
		}
		return &u
	case len(r.Models) > 0:
		u := agent.Usage{Cumulative: true}
		add(&u, r.Models)
		if r.TotalCost != nil {
			cost := *r.TotalCost
			u.CostUSD = &cost
		}
		return &u
	}
	return nil
}

func add(u *agent.Usage, models map[string]modelUsage) {
	cost := 0.0
	if u.CostUSD != nil {
		cost = *u.CostUSD
	}
	// Sorted, so that equal lines give equal sums.
	for _, name := range slices.Sorted(maps.Keys(models)) {
		m := models[name]
		u.Input += m.Input + m.CacheRead + m.CacheCreation
		u.Cached += m.CacheRead
		u.Output += m.Output
		u.Reasoning += m.Thinking
		cost += m.Cost
	}
	if len(models) > 0 {
		u.CostUSD = &cost
	}
}
