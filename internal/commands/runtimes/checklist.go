package runtimes

import (
	"cmp"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/busdk/bus-agent/internal/commands/cmdline"
	"github.com/busdk/bus-agent/verify"
)

// A checklist shows the checks of one runtime while they run: the results, and on a
// terminal what runs now.
type checklist struct {
	prog    *cmdline.Program
	id      string
	results bool // show them
	checks  int

	begun  time.Time
	counts map[verify.Status]int
	err    error // of the first failed write
}

func newChecklist(prog *cmdline.Program, id string, checks int, results bool) *checklist {
	return &checklist{prog: prog, id: id, results: results, checks: checks, begun: time.Now(), counts: map[verify.Status]int{}}
}

func (l *checklist) print(text string) {
	if l.results && l.err == nil {
		l.err = l.prog.Out.Print(text)
	}
}

// spin shows on a terminal how far the checks are.
func (l *checklist) spin(doing string) {
	if !l.prog.Env.Terminal.Stderr {
		return
	}
	done := 0
	for _, n := range l.counts {
		done += n
	}
	label := fmt.Sprintf("%s: %d of %d checks done%s", l.id, done, l.checks, doing)
	l.prog.Screen.Spin(label) // again: a result on a terminal has ended it
	l.prog.Screen.SpinOn(label)
}

func (l *checklist) begin(c verify.Check) { l.spin(", " + c.Name) }

func (l *checklist) done(r verify.Result) {
	if len(l.counts) == 0 {
		l.print(l.id + "\n")
	}
	l.counts[r.Status]++
	l.print(resultText(r))
	l.spin("")
}

// end shows a summary.
func (l *checklist) end(version string) {
	text := fmt.Sprintf("%s %s: %d kept, %d broken", l.id, cmp.Or(cmdline.Printable(version), "of unknown version"), l.counts[verify.Kept], l.counts[verify.Broken])
	if n := l.counts[verify.KnownFailure]; n > 0 {
		text += ", " + cmdline.Count(n, "known failure", "known failures")
	}
	if n := l.counts[verify.Unsupported]; n > 0 {
		text += fmt.Sprintf(", %d unsupported", n)
	}
	l.print(fmt.Sprintf("%s in %.0f s\n", text, time.Since(l.begun).Seconds()))
}

// resultText returns a result as a line of the checklist and, unless the check passed,
// the reason below it.
func resultText(r verify.Result) string {
	text := fold(fmt.Sprintf("  %-11s  %-14s  ", r.Status, r.Check), r.Promise)
	reason := func(line string) {
		if line != "" {
			text += fold(strings.Repeat(" ", 15), line)
		}
	}
	switch {
	case r.Known != "" && r.Status == verify.KnownFailure:
		reason("Known: " + r.Known)
	case r.Known != "":
		reason("It is listed as a known failure: " + r.Known)
	}
	reason(r.Detail)
	return text
}

// fold appends the words of text to begin. It continues on lines with the same margin
// rather than exceed 79 columns.
func fold(begin, text string) string {
	const columns = 79
	line, margin := begin, strings.Repeat(" ", utf8.RuneCountInString(begin))
	var folded strings.Builder
	for i, word := range strings.Fields(cmdline.OneWord(text)) {
		switch {
		case i == 0:
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > columns:
			folded.WriteString(line + "\n")
			line = margin
		default:
			line += " "
		}
		line += word
	}
	return folded.String() + line + "\n"
}
