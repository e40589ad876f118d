package report

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/busdk/bus-agent/runs"
)

func usd(x float64) *float64 { return &x }

func TestCumulativeUsageCountsOnce(t *testing.T) {
	t.Parallel()
	whole := func(session string, input int64) runs.Info {
		return runs.Info{Agent: "a", Model: "m", SessionID: session, Usage: &runs.Usage{Input: input, Cumulative: true}}
	}
	list := []runs.Info{ // newest first
		whole("one", 300), whole("one", 200), whole("one", 100), whole("two", 50), whole("", 7), whole("", 8),
		{Agent: "a", Model: "m", SessionID: "one", Usage: &runs.Usage{Input: 1000}},
		{Agent: "b", SessionID: "one", Usage: &runs.Usage{Input: 5, Cumulative: true}},
	}
	groups, all := usageOf(asRuns(list))
	if all.input != 300+50+7+8+1000+5 || !all.Cumulative {
		t.Errorf("all: %d, cumulative %t", all.input, all.Cumulative)
	}
	if len(groups) != 2 || groups[0].Runtime != "a" || groups[0].All.Runs != 7 || groups[0].Models[0].input != 1365 {
		t.Errorf("%+v", groups[0])
	}
}

func TestUnknownCostIsShownAsUnknown(t *testing.T) {
	t.Parallel()
	list := []runs.Info{
		{Agent: "stated", Usage: &runs.Usage{CostUSD: usd(1.5)}},
		{Agent: "stated", Usage: &runs.Usage{CostUSD: usd(0)}},
		{Agent: "silent", Usage: &runs.Usage{Input: 3}},
		{Agent: "silent"},
	}
	groups, all := usageOf(asRuns(list))
	if all.Cost() != "$1.50" || all.UnknownRuns() != "2 runs" {
		t.Errorf("all: %q, unknown for %q", all.Cost(), all.UnknownRuns())
	}
	silent, stated := groups[0], groups[1]
	if silent.Runtime != "silent" || silent.All.Cost() != "" || silent.All.UnknownRuns() != "all runs" {
		t.Errorf("%+v", silent.All)
	}
	if stated.All.Unknown() != 0 {
		t.Errorf("%+v", stated.All)
	}
	page := write(t, list, Options{})
	for _, want := range []string{"Known cost", "unknown for 2 runs", "<i>unknown</i>"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if page := write(t, list[2:], Options{}); !strings.Contains(page, "no run reports it") || strings.Contains(page, "$0") {
		t.Error("an unknown cost is shown")
	}
}

func TestInvalidCostIsUnknown(t *testing.T) {
	t.Parallel()
	for _, x := range []float64{math.NaN(), math.Inf(1)} {
		list := []runs.Info{{Agent: "a", Usage: &runs.Usage{Input: 4, CostUSD: &x}}}
		if page := write(t, list, Options{}); !strings.Contains(page, "no run reports it") {
			t.Errorf("%v is a cost", x)
		}
		if list[0].Usage.CostUSD == nil {
			t.Error("the caller's record was changed")
		}
	}
}

func TestDurations(t *testing.T) {
	t.Parallel()
	start := madeAt.Add(-24 * time.Hour)
	var list []runs.Info
	for i := 1; i <= 10; i++ {
		list = append(list, runs.Info{Agent: "a", StartTime: start, EndTime: start.Add(time.Duration(i) * time.Second)})
	}
	list = append(list,
		runs.Info{Agent: "a", StartTime: start, Status: runs.StatusRunning},
		runs.Info{Agent: "a", StartTime: start, Status: runs.StatusCrashed},
		runs.Info{Agent: "b", StartTime: start, EndTime: start.Add(5 * time.Hour)})
	rows := durationsOf(asRuns(list))
	if len(rows) != 2 || rows[0].Runs != 10 || rows[0].Median() != "5.0 s" || rows[0].P90() != "9.0 s" || rows[0].Longest() != "10.0 s" {
		t.Fatalf("%+v", rows[0])
	}
	var heights []int
	for _, b := range rows[0].Bars {
		heights = append(heights, b.Height)
	}
	// 1 and 2 s, 3 to 9 s, 10 s
	if heights[0] != 0 || heights[1] != 8 || heights[2] != barHeight || heights[3] != 4 || heights[4] != 0 {
		t.Errorf("heights %v", heights)
	}
	if last := rows[1].Bars[len(steps)]; last.Height != barHeight || last.Label != "3 h and more: 1 run" {
		t.Errorf("%+v", last)
	}
}

func TestFailuresByKindAndReason(t *testing.T) {
	t.Parallel()
	failed := func(agent, kind, text, summary string, code int) runs.Info {
		return runs.Info{RunID: kind + text, Agent: agent, Status: runs.StatusFailed, ErrorKind: kind, Error: text, ErrorSummary: summary, ExitCode: code}
	}
	list := []runs.Info{
		failed("a", "quota", "a: used up", "agent reported failure", 1), failed("b", "quota", "b: used up", "", 1), failed("a", "quota", "a: too fast", "", 1),
		failed("c", "", "", "timed out", -1), failed("c", "", "", "", 7),
		{Agent: "d", Status: runs.StatusCrashed}, {Agent: "d", Status: runs.StatusCompleted, ErrorSummary: "no matter"}, {Agent: "d", Status: runs.StatusRunning},
	}
	p := &page{options: &Options{}, runs: asRuns(list), texts: make([]texts, len(list))}
	p.summarize()
	if p.Failed != 6 || len(p.Failures) != 3 {
		t.Fatalf("%d failed in %d groups", p.Failed, len(p.Failures))
	}
	quota, other, crashed := p.Failures[0], p.Failures[1], p.Failures[2]
	if quota.Kind != "quota or rate limit" || quota.Runs != 3 || quota.Reasons[0].Text != "used up" || quota.Reasons[0].Runs != 2 || quota.Reasons[1].Text != "too fast" {
		t.Errorf("%+v", quota)
	}
	if other.Kind != "kind not recorded" || other.Reasons[0].Text != "timed out" || other.Reasons[1].Text != "exit code 7" {
		t.Errorf("%+v", other)
	}
	if crashed.Kind != "crashed" || crashed.Runs != 1 {
		t.Errorf("%+v", crashed)
	}
}

func TestPeriodsAreHoursOrDays(t *testing.T) {
	t.Parallel()
	at := func(ago time.Duration, status runs.Status) runs.Info {
		return runs.Info{StartTime: madeAt.Add(-ago), Status: status}
	}
	rows, hours := periodsOf(asRuns([]runs.Info{at(0, "completed"), at(8*time.Minute, "failed"), at(20*time.Minute, "strange"), {}}))
	if !hours || len(rows) != 2 || rows[0].All != 2 || rows[0].Counts[1] != 1 || rows[1].Counts[4] != 1 || rows[1].Time.Hour() != 14 {
		t.Errorf("%v %+v", hours, rows)
	}
	rows, hours = periodsOf(asRuns([]runs.Info{at(0, "completed"), at(10*time.Hour, "completed"), at(72*time.Hour, "completed")}))
	if hours || len(rows) != 2 || rows[0].All != 2 {
		t.Errorf("%v %+v", hours, rows)
	}
}
