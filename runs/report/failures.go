package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/busdk/bus-agent/runs"
)

// A failureGroup is the runs that failed in one way.
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

// shownReasons is how many reasons of a kind are listed, shownLinks how many runs of
// a reason.
const shownReasons, shownLinks = 12, 4

// kindWords says the kinds of errors in words.
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

// failureKind says in which way a run failed, "" where it did not.
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

// failureText says why a run failed.
func failureText(run *runs.Run) string {
	// The runtime is told beside it.
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

// failuresOf groups what failed by kind and reason, the most frequent first.
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
