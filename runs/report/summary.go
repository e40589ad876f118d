package report

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/runs"
)

// states are the outcomes of runs in the order of the page.
var states = []runs.Status{
	runs.StatusCompleted, runs.StatusFailed, runs.StatusCrashed, runs.StatusRunning, runs.StatusUnknown,
}

// stateOf returns the outcome of a run, one of states.
func stateOf(run *runs.Run) runs.Status {
	if slices.Contains(states, run.Status) {
		return run.Status
	}
	return runs.StatusUnknown
}

// durationOf returns how long a run took, or has taken until now.
func durationOf(run *runs.Run, now time.Time) (time.Duration, bool) {
	end := run.EndTime
	if end.IsZero() {
		if run.Status != runs.StatusRunning {
			return 0, false
		}
		end = now
	}
	if run.StartTime.IsZero() {
		return 0, false
	}
	return max(end.Sub(run.StartTime), 0), true
}

// tokens are the numbers of tokens, and the cost, of some runs.
type tokens struct {
	Runs                             int
	input, cached, output, reasoning int64
	known                            int // runs with numbers
	cost                             float64
	CostRuns                         int // runs with a cost
	Cumulative                       bool
}

// counted returns the runs whose usage counts in sums: of those with the cumulative
// usage of one session, the newest. List is newest first.
func counted(list []runs.Run) map[int]bool {
	type session struct{ runtime, id string }
	seen := map[session]bool{}
	out := make(map[int]bool, len(list))
	for i := range list {
		run := &list[i]
		if run.Usage == nil {
			continue
		}
		if key := (session{run.Agent, run.SessionID}); run.Usage.Cumulative && run.SessionID != "" {
			if seen[key] {
				continue
			}
			seen[key] = true
		}
		out[i] = true
	}
	return out
}

func (t *tokens) add(run *runs.Run, counts bool) {
	t.Runs++
	u := run.Usage
	if u == nil {
		return
	}
	t.known++
	t.Cumulative = t.Cumulative || u.Cumulative
	if u.CostUSD != nil {
		t.CostRuns++
	}
	if !counts {
		return
	}
	t.input += u.Input
	t.cached += u.Cached
	t.output += u.Output
	t.reasoning += u.Reasoning
	if u.CostUSD != nil {
		t.cost += *u.CostUSD
	}
}

// Input and the methods below it are the cells of a table.
func (t *tokens) Input() string     { return t.cell(t.input) }
func (t *tokens) Cached() string    { return t.cell(t.cached) }
func (t *tokens) Output() string    { return t.cell(t.output) }
func (t *tokens) Reasoning() string { return t.cell(t.reasoning) }

func (t *tokens) cell(n int64) string {
	if t.known == 0 {
		return ""
	}
	return count(n)
}

// Cost is the sum of the known costs.
func (t *tokens) Cost() string {
	if t.CostRuns == 0 {
		return ""
	}
	return dollars(t.cost, costDigits(t.cost))
}

func costDigits(x float64) int {
	if x < 1 {
		return 4
	}
	return 2
}

// Unknown is the number of runs without a cost.
func (t *tokens) Unknown() int { return t.Runs - t.CostRuns }

// RunCount and UnknownRuns are cells too.
func (t *tokens) RunCount() string { return count(int64(t.Runs)) }

func (t *tokens) UnknownRuns() string {
	if t.CostRuns == 0 && t.Runs > 1 {
		return "all runs"
	}
	return plural(t.Unknown(), "run", "runs")
}

// A usageGroup is a runtime with its models.
type usageGroup struct {
	Runtime string
	All     *tokens
	Models  []*usageRow
}

type usageRow struct {
	Model string
	*tokens
}

// usageOf returns sums by runtime and model.
func usageOf(list []runs.Run) (groups []*usageGroup, all *tokens) {
	all = &tokens{}
	counts := counted(list)
	byRuntime := map[string]*usageGroup{}
	for i := range list {
		run := &list[i]
		all.add(run, counts[i])
		g := byRuntime[run.Agent]
		if g == nil {
			g = &usageGroup{Runtime: line(run.Agent, 80), All: &tokens{}}
			byRuntime[run.Agent] = g
		}
		g.All.add(run, counts[i])
		model := line(run.Model, 80)
		at := slices.IndexFunc(g.Models, func(r *usageRow) bool { return r.Model == model })
		if at < 0 {
			at = len(g.Models)
			g.Models = append(g.Models, &usageRow{Model: model, tokens: &tokens{}})
		}
		g.Models[at].add(run, counts[i])
	}
	for _, g := range byRuntime {
		slices.SortFunc(g.Models, func(a, b *usageRow) int {
			return cmp.Or(cmp.Compare(b.Runs, a.Runs), strings.Compare(a.Model, b.Model))
		})
	}
	groups = slices.SortedFunc(maps.Values(byRuntime), func(a, b *usageGroup) int {
		return cmp.Or(cmp.Compare(b.All.Runs, a.All.Runs), strings.Compare(a.Runtime, b.Runtime))
	})
	return groups, all
}

// A periodRow counts the runs of a day or hour by outcome.
type periodRow struct {
	Time   time.Time
	All    int
	Counts []int // as in states
}

// periodsOf counts by hour for up to two days, otherwise by day. List is newest first.
func periodsOf(list []runs.Run) (rows []periodRow, hours bool) {
	var known []*runs.Run
	for i := range list {
		if !list[i].StartTime.IsZero() {
			known = append(known, &list[i])
		}
	}
	if len(known) == 0 {
		return nil, false
	}
	step := 24 * time.Hour
	if known[0].StartTime.Sub(known[len(known)-1].StartTime) <= 48*time.Hour {
		step, hours = time.Hour, true
	}
	for _, run := range known {
		at := run.StartTime.UTC().Truncate(step)
		if len(rows) == 0 || !rows[len(rows)-1].Time.Equal(at) {
			rows = append(rows, periodRow{Time: at, Counts: make([]int, len(states))})
		}
		row := &rows[len(rows)-1]
		row.All++
		row.Counts[slices.Index(states, stateOf(run))]++
	}
	return rows, hours
}

// toolUse is how often and how long a tool was called.
type toolUse struct {
	Name                    string
	Calls, Failed, answered int
	total, longest          time.Duration
}

// toolsOf returns the tool calls of a conversation by tool.
func toolsOf(c *conversation) map[string]*toolUse {
	var tools map[string]*toolUse
	for _, i := range c.Items {
		if i.Tool == "" || i.Kind == string(agent.KindApproval) {
			continue
		}
		if tools == nil {
			tools = map[string]*toolUse{}
		}
		use := tools[i.Tool]
		if use == nil {
			use = &toolUse{Name: i.Tool}
			tools[i.Tool] = use
		}
		use.Calls++
		if i.Failed {
			use.Failed++
		}
		if i.Until != nil && !c.Untimed {
			took := time.Duration(max(*i.Until-i.At, 0)) * time.Millisecond
			use.answered++
			use.total += took
			use.longest = max(use.longest, took)
		}
	}
	return tools
}

func (u *toolUse) add(other *toolUse) {
	u.Calls += other.Calls
	u.Failed += other.Failed
	u.answered += other.answered
	u.total += other.total
	u.longest = max(u.longest, other.longest)
}

// Total, Mean and Longest are the cells of a table.
func (u *toolUse) Total() string   { return u.cell(u.total) }
func (u *toolUse) Longest() string { return u.cell(u.longest) }
func (u *toolUse) Mean() string    { return u.cell(u.total / time.Duration(max(u.answered, 1))) }

func (u *toolUse) cell(d time.Duration) string {
	if u.answered == 0 {
		return ""
	}
	return span(d)
}
