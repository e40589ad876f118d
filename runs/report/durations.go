package report

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/busdk/bus-agent/runs"
)

// A durationRow has the durations of the runs of a runtime.
type durationRow struct {
	Runtime           string
	Runs              int
	median, p90, most time.Duration
	Bars              []bar
}

func (r *durationRow) Median() string  { return span(r.median) }
func (r *durationRow) P90() string     { return span(r.p90) }
func (r *durationRow) Longest() string { return span(r.most) }

// A bar is a column of a small chart, in its units.
type bar struct {
	X, Y, Height int
	Label        string
}

// steps are the upper ends of the columns of durations; the last column has none.
var steps = []struct {
	end  time.Duration
	name string
}{
	{time.Second, "1 s"}, {3 * time.Second, "3 s"}, {10 * time.Second, "10 s"}, {30 * time.Second, "30 s"},
	{time.Minute, "1 m"}, {3 * time.Minute, "3 m"}, {10 * time.Minute, "10 m"}, {30 * time.Minute, "30 m"},
	{time.Hour, "1 h"}, {3 * time.Hour, "3 h"},
}

// barWidth and barHeight are the size of a column and the gap after it.
const barWidth, barHeight = 12, 28

// durationsOf returns the durations of the ended runs, by runtime.
func durationsOf(list []runs.Run) []*durationRow {
	took := map[string][]time.Duration{}
	for i := range list {
		run := &list[i]
		if d, ok := durationOf(run, time.Time{}); ok && !run.EndTime.IsZero() {
			took[run.Agent] = append(took[run.Agent], d)
		}
	}
	var rows []*durationRow
	for runtime, all := range took {
		slices.Sort(all)
		rows = append(rows, &durationRow{
			Runtime: line(runtime, 80), Runs: len(all), Bars: barsOf(all),
			median: rank(all, 50), p90: rank(all, 90), most: all[len(all)-1],
		})
	}
	slices.SortFunc(rows, func(a, b *durationRow) int {
		return cmp.Or(cmp.Compare(b.Runs, a.Runs), strings.Compare(a.Runtime, b.Runtime))
	})
	return rows
}

// rank returns the smallest value that at least percent of all do not exceed. All is
// sorted.
func rank(all []time.Duration, percent int) time.Duration {
	return all[(len(all)*percent+99)/100-1]
}

func barsOf(all []time.Duration) []bar {
	counts := make([]int, len(steps)+1)
	for _, d := range all {
		at := 0
		for at < len(steps) && d >= steps[at].end {
			at++
		}
		counts[at]++
	}
	most := slices.Max(counts)
	bars := make([]bar, len(counts))
	for i, n := range counts {
		height := (n*barHeight + most - 1) / most
		if n > 0 {
			height = max(height, 2)
		}
		bars[i] = bar{X: i * barWidth, Y: barHeight - height, Height: height, Label: stepLabel(i) + ": " + plural(n, "run", "runs")}
	}
	return bars
}

func stepLabel(i int) string {
	switch i {
	case 0:
		return "under " + steps[0].name
	case len(steps):
		return steps[i-1].name + " and more"
	}
	return steps[i-1].name + " to " + steps[i].name
}
