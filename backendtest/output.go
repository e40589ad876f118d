package backendtest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/busdk/bus-agent/agent"
)

var outputRules = []rule{
	{name: "events", test: events, spoken: true,
		text: "What the CLI reports becomes events in the same order: session, text, tool call, tool result, text, result; the last text is the answer."},
	{name: "unknown-event", test: unknownEvent, spoken: true,
		text: "A line that the runtime does not know, an event of a version to come or no event at all, is kept and shown and ends nothing."},
	{name: "retry", test: retry, spoken: true,
		applies: func(h *Harness) bool { return h.Lines.Retry != "" },
		text:    "A request that is tried again is reported and is not a failure."},
	{name: "last-line", test: lastLine, spoken: true,
		text: "A last line without a line break counts, and half a line is shown and ends nothing."},
	{name: "long-line", test: longLine, spoken: true,
		text: "A line of 2 MiB arrives whole."},
	{name: "parallel", test: parallel, spoken: true,
		text: "Runs at the same time are independent: each has its own events, text and answer."},
}

func events(w *world) {
	s := w.script()
	want := []agent.Kind{agent.KindText, agent.KindText}
	if s.lines.ToolCall != "" {
		want = slices.Insert(want, 1, agent.KindToolCall)
	}
	if s.lines.ToolResult != "" {
		want = slices.Insert(want, len(want)-1, agent.KindToolResult)
	}
	if s.lines.Session != "" {
		want = slices.Insert(want, 0, agent.KindSessionStarted)
	}
	if s.lines.Success != "" && w.Runtime.ReportsResult {
		want = append(want, agent.KindResult)
	}
	o := w.succeed(w.request(), slices.Concat(
		s.say(s.lines.Session, ""), s.say(s.lines.Text, "first words"), s.say(s.lines.ToolCall, ""),
		s.say(s.lines.ToolResult, "the output"), s.say(s.lines.Text, "last words"), s.say(s.lines.Success, ""))...)
	if !inOrder(o.kinds(), want) {
		w.failf("the kinds of events are %v, they lack %v in this order", o.kinds(), want)
	}
	if extra := o.of(agent.KindRaw); len(extra) > 0 {
		w.failf("the line %s of the harness is not understood", clip(extra[0].Text))
	}
	answer := strings.TrimSuffix(o.result.Text, "\n")
	if s.lines.ToolCall == "" {
		answer = answer[strings.LastIndexByte(answer, '\n')+1:]
	}
	if answer != "last words" {
		w.failf("the answer is %s", clip(o.result.Text))
	}
	for _, part := range []string{"first words", "last words"} {
		if strings.Count(o.text, part) != 1 {
			w.failf("the readable text has %q %d times: %s", part, strings.Count(o.text, part), clip(o.text))
		}
	}
	calls, results := o.of(agent.KindToolCall), o.of(agent.KindToolResult)
	if len(calls) > 0 && (calls[0].Tool == nil || calls[0].Tool.Name == "") {
		w.failf("the tool call has no name")
	}
	if len(results) > 0 {
		switch tool := results[0].Tool; {
		case tool == nil || len(calls) > 0 && tool.ID != calls[0].Tool.ID:
			w.failf("the tool result is not that of the call")
		case strings.Contains(s.lines.ToolResult, "{text}") && !strings.Contains(tool.Output.String(), "the output"):
			w.failf("the output of the tool is %s", clip(tool.Output.String()))
		}
	}
}

// inOrder reports whether list has the elements of want in their order, among others.
func inOrder(list, want []agent.Kind) bool {
	for _, kind := range list {
		if len(want) > 0 && kind == want[0] {
			want = want[1:]
		}
	}
	return len(want) == 0
}

func unknownEvent(w *world) {
	const words = "backendtest words that are not an event"
	s := w.script()
	steps := s.say(s.lines.Session, "")
	if unknown := s.lines.Unknown; unknown != "" {
		steps = append(steps, Print(unknown+"\n"))
	}
	steps = slices.Concat(steps, []Step{Print(words + "\n\n")}, s.say(s.lines.Text, "an answer"), s.say(s.lines.Success, ""))
	o := w.succeed(w.request(), steps...)
	if !strings.Contains(o.text, words) {
		w.failf("the readable text is %s", clip(o.text))
	}
	if !strings.Contains(o.result.Text, "an answer") {
		w.failf("the answer is %s", clip(o.result.Text))
	}
	var kept []string
	for _, e := range o.events {
		kept = append(kept, e.Text)
	}
	if !strings.Contains(strings.Join(kept, "\n"), words) {
		w.failf("no event has the words that are not an event")
	}
	if i := slices.IndexFunc(o.events, func(e agent.Event) bool { return e.Kind == agent.KindResult && e.Failed }); i >= 0 {
		w.failf("the line %s is taken for the end", clip(o.events[i].Text))
	}
	if unknown := s.lines.Unknown; unknown != "" && !slices.Contains(kept, unknown) {
		w.failf("no event has the line %s", clip(unknown))
	}
}

func retry(w *world) {
	s := w.script()
	o := w.succeed(w.request(), slices.Concat(s.say(s.lines.Session, ""), s.say(s.lines.Retry, "lost connection"),
		s.say(s.lines.Text, "an answer"), s.say(s.lines.Success, ""))...)
	if len(o.of(agent.KindRetry)) == 0 {
		w.failf("the kinds of events are %v", o.kinds())
	}
	for _, e := range o.of(agent.KindRetry) {
		if e.Failure == agent.FailureAuthentication {
			w.failf("it is taken for a refused login, which ends a run")
		}
	}
}

func lastLine(w *world) {
	s := w.script()
	steps := slices.Concat(s.say(s.lines.Session, ""), s.say(s.lines.Text, "an answer"), s.say(s.lines.Success, ""))
	last := &steps[len(steps)-1]
	last.Text = strings.TrimSuffix(last.Text, "\n")
	o := w.succeed(w.request(), steps...)
	if strings.TrimSpace(o.result.Text) != "an answer" {
		w.failf("the answer is %s", clip(o.result.Text))
	}
	last.Text += "\n"
	half := `{"backendtest":"half a li`
	o = w.succeed(w.request(), append(steps, Print(half))...)
	if !strings.Contains(o.text, "half a li") {
		w.failf("half a line is not in the readable text: %s", clip(o.text))
	}
	if !w.Runtime.ReportsResult {
		return
	}
	result := s.say(s.lines.Success, "")[0].Text
	if o := w.run(w.request(), Print(result[:len(result)/2])); o.err == nil {
		w.failf("half a result counts as one")
	}
}

func longLine(w *world) {
	const size = 2 << 20
	before, after, _ := strings.Cut(fill(w.Lines.Text, "\x00", 1), "\x00")
	s := w.script()
	steps := slices.Concat(s.say(s.lines.Session, ""), []Step{PrintRun(before, size, after)}, s.say(s.lines.Success, ""))
	o := w.succeed(w.request(), steps...)
	if text := strings.TrimSpace(o.result.Text); len(text) != size || strings.Trim(text, "x") != "" {
		w.failf("the answer is %s", clip(o.result.Text))
	}
	for _, e := range o.events {
		if e.Truncated {
			w.failf("an event was cut")
		}
	}
}

func parallel(w *world) {
	const runs = 4
	var all []func()
	for i := range runs {
		all = append(all, func() {
			answer := fmt.Sprint("answer of run ", i)
			s := w.script()
			o := w.run(w.request(), slices.Concat(s.say(s.lines.Session, ""), s.say(s.lines.Text, fmt.Sprint("words of run ", i)),
				s.say(s.lines.ToolCall, ""), s.say(s.lines.Text, answer), s.say(s.lines.Success, ""))...)
			if o.err != nil || !strings.Contains(o.result.Text, answer) {
				w.failf("run %d says %s, %v", i, clip(o.result.Text), o.err)
			}
			for other := range runs {
				if has := strings.Contains(o.text, fmt.Sprint("run ", other)); has != (other == i) {
					w.failf("the text of run %d is %s", i, clip(o.text))
				}
			}
		})
	}
	w.together(all...)
}
