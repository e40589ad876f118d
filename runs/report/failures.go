package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/busdk/bus-agent/runs"
)

// A failureGroup is the runs that failed with one kind of error.
type failureGroup struct {
	Kind    string
	Runs    int
	Reasons []*failureReason
	More    int // reasons that are not listed
}

type failureReason struct {
	Text  string
	Runs  int
	Links []link // the newest of them
	More  int
}

// A link leads to a run on the page.
type link struct{ Key, Runtime, Start string }

// shownReasons bounds the reasons listed for a kind, shownLinks the runs of a reason.
const shownReasons, shownLinks = 12, 4

// kindWords describes the kinds of errors.
var kindWords = map[string]string{
	"usage":          "wrong request",
	"not_installed":  "not installed",
	"none_available": "no runtime available",
	"authentication": "authentication",
	"quota":          "quota or rate limit",
	"agent":          "agent failure",
	"timeout":        "timeout",
	"idle_timeout":   "idle timeout",
	"canceled":       "canceled",
	"error":          "other error",
}

// failureKind returns the kind of a run's failure, "" without one.
func failureKind(run *runs.Run) string {
	switch {
	case run.Status == runs.StatusCrashed:
		return "crashed"
	case run.Status != runs.StatusFailed:
		return ""
	}
	if words := kindWords[run.ErrorKind]; words != "" {
		return words
	}
	if run.ErrorKind != "" {
		return line(run.ErrorKind, 40)
	}
	return "kind not recorded"
}

// failureText returns the reason of a run's failure.
func failureText(run *runs.Run) string {
	// The page shows the runtime next to it.
	text := strings.TrimPrefix(cmp.Or(run.Error, run.ErrorSummary), run.Agent+": ")
	switch {
	case failureKind(run) == "":
		return ""
	case text != "":
		return line(text, 400)
	case run.Status == runs.StatusCrashed:
		return "the program that ran it is gone"
	case run.Signal != "":
		return "ended by " + line(run.Signal, 40)
	case run.ExitCode > 0:
		return fmt.Sprintf("exit code %d", run.ExitCode)
	}
	return "no reason recorded"
}

// failuresOf groups the failed runs by kind and reason, the most frequent first.
func failuresOf(rows []*row) []*failureGroup {
	kinds := map[string]*failureGroup{}
	reasons := map[string]map[string]*failureReason{}
	for _, r := range rows {
		if r.kind == "" {
			continue
		}
		g := kinds[r.kind]
		if g == nil {
			g = &failureGroup{Kind: r.kind}
			kinds[r.kind], reasons[r.kind] = g, map[string]*failureReason{}
		}
		g.Runs++
		reason := reasons[r.kind][r.Reason]
		if reason == nil {
			reason = &failureReason{Text: r.Reason}
			reasons[r.kind][r.Reason] = reason
			g.Reasons = append(g.Reasons, reason)
		}
		reason.Runs++
		if len(reason.Links) < shownLinks {
			reason.Links = append(reason.Links, link{r.Key, r.Runtime, r.Start})
		} else {
			reason.More++
		}
	}
	groups := slices.SortedFunc(maps.Values(kinds), func(a, b *failureGroup) int {
		return cmp.Or(cmp.Compare(b.Runs, a.Runs), strings.Compare(a.Kind, b.Kind))
	})
	for _, g := range groups {
		slices.SortStableFunc(g.Reasons, func(a, b *failureReason) int { return cmp.Compare(b.Runs, a.Runs) })
		if len(g.Reasons) > shownReasons {
			g.More = len(g.Reasons) - shownReasons
			g.Reasons = g.Reasons[:shownReasons]
		}
	}
	return groups
}
