package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/runs"
)

// filesOf are files by the ID of their run and their name.
func filesOf(files map[string]string) func(*runs.Run, string) (io.ReadCloser, error) {
	return func(run *runs.Run, name string) (io.ReadCloser, error) {
		text, ok := files[run.RunID+" "+name]
		if !ok {
			return nil, fs.ErrNotExist
		}
		return textFile(text), nil
	}
}

func dataOf(t *testing.T, page string) []runData {
	t.Helper()
	data, _ := takeApart(t, page)
	var known pageData
	if err := json.Unmarshal([]byte(data["runs-data"]), &known); err != nil {
		t.Fatal(err)
	}
	return known.Runs
}

func TestRowShowsTheFirstLineOfThePrompt(t *testing.T) {
	t.Parallel()
	_, markup := takeApart(t, write(t, []runs.Info{{RunID: "a"}, {RunID: "b"}, {RunID: "c"}, {RunID: "d"}, {RunID: "e"}}, Options{
		Open: filesOf(map[string]string{
			"a prompt.md": "\n  Fix <it>.\nThen test it.\n",
			"b prompt.md": "JRUN_TASK_FOLDER=/x\nJRUN_ID=b\nWrite output.md to /x/output.md\n\n## Completion\nEnd.\n\n---\n\nSort the imports\n",
			"c prompt.md": strings.Repeat("long ", 1000),
			"e prompt.md": "---\ntitle: x\n---\n",
		}),
		Events: func(run *runs.Run) iter.Seq2[runs.Event, error] {
			return entriesOf(agent.Event{Kind: agent.KindSessionStarted, SessionID: "s"}, agent.Event{Kind: runs.KindMessage, Text: "said to " + run.RunID + "\nmore"})
		},
	}))
	rows := map[string]string{}
	for _, m := range regexp.MustCompile(`<tr id="run-(.)".*?<span class="prompt" dir="auto">([^<]*)</span>`).FindAllStringSubmatch(markup, -1) {
		rows[m[1]] = m[2]
	}
	for id, want := range map[string]string{"a": "Fix &lt;it&gt;.", "b": "Sort the imports", "d": "said to d", "e": "---"} {
		if rows[id] != want {
			t.Errorf("run %s: %q, want %q", id, rows[id], want)
		}
	}
	if long := rows["c"]; len(long) > promptLine+len("…") || !strings.HasSuffix(long, "…") {
		t.Errorf("a long line is %q", long)
	}
}

// The end of standard error, for failed runs first where there is little room.
func TestStderrIsOnThePage(t *testing.T) {
	t.Parallel()
	list := []runs.Info{
		{RunID: "newest", StartTime: madeAt, Status: runs.StatusCompleted},
		{RunID: "failed", StartTime: madeAt.Add(-time.Hour), Status: runs.StatusFailed},
		{RunID: "silent", StartTime: madeAt.Add(-2 * time.Hour), Status: runs.StatusFailed},
	}
	var lines strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&lines, "line %d \x1b[31mred\x1b[0m\n", i)
	}
	o := Options{Open: filesOf(map[string]string{
		"newest agent-stderr.txt": strings.Repeat("\u202e", 10_000), "failed agent-stderr.txt": lines.String(), "silent agent-stderr.txt": "",
	})}
	got := dataOf(t, write(t, list, o))
	end := got[1].Stderr
	if !strings.HasSuffix(end, "\nline 999 red") || !strings.HasPrefix(end, "…\nline ") || len(end) > stderrEnd {
		t.Errorf("the end is %d bytes: %.40q", len(end), end)
	}
	if shown := got[0].Stderr; shown == "" || len(shown) > 2*stderrEnd || !strings.HasPrefix(shown, "…") {
		t.Errorf("%d bytes of the newest run: %.40q", len(shown), shown)
	}
	if got[2].Stderr != "" {
		t.Errorf("silent: %q", got[2].Stderr)
	}

	// There is not room for all.
	list, o.MaxConversations = list[:1], -1
	for i := range 2 * stderrEnds / stderrEnd {
		list = append(list, runs.Info{RunID: "failed", StartTime: madeAt.Add(-time.Duration(i+1) * time.Hour), Status: runs.StatusFailed})
	}
	got = dataOf(t, write(t, list, o))
	if got[0].Stderr != "" || got[1].Stderr == "" || got[len(got)-1].Stderr != "" {
		t.Error("the newest failed runs do not come first")
	}
}

func TestEndOfAReaderThatCannotSeek(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"all\nof it\n": "all\nof it",
		strings.Repeat("a line\n", stderrEnd) + "the end\n": "…\n" + strings.Repeat("a line\n", (stderrEnd-len("the end\n"))/len("a line\n")) + "the end",
	} {
		for _, r := range []io.Reader{struct{ io.Reader }{strings.NewReader(text)}, iotest.OneByteReader(strings.NewReader(text)), strings.NewReader(text)} {
			if got := readEnd(r); got != want {
				t.Errorf("%T: %d bytes, want %d: %.40q", r, len(got), len(want), got)
			}
		}
	}
}

func TestMessagesOfTheRunAndItsTask(t *testing.T) {
	t.Parallel()
	at := madeAt.Add(-time.Minute)
	reads := 0
	o := Options{
		Events: func(*runs.Run) iter.Seq2[runs.Event, error] { return entriesOf() },
		Messages: func(run *runs.Run) ([]runs.Message, error) {
			reads++
			if run.TaskID == "broken" {
				return nil, errors.New("too many\x1b[2J")
			}
			list := []runs.Message{
				{Type: "RUN_STOP", Run: "a", Time: at.Add(time.Second), Body: "stopped"}, {Type: "FACT", Time: at, Body: "for \u202eall"},
				{Type: "RUN_START", Run: "b", Body: strings.Repeat("x", 10*busText)},
			}
			for i := range 2 * busMessages {
				list = append(list, runs.Message{Type: fmt.Sprint(i), Run: "c"})
			}
			return list, nil
		},
	}
	list := []runs.Info{{RunID: "a"}, {RunID: "b"}, {RunID: "c"}, {RunID: "d", TaskID: "broken"}}
	data, _ := takeApart(t, write(t, list, o))
	if reads != 2 {
		t.Errorf("the messages of 2 tasks were read %d times", reads)
	}
	by := map[string]conversation{}
	for i, run := range dataOf(t, write(t, list, o)) {
		var c conversation
		if err := json.Unmarshal([]byte(data[fmt.Sprintf("conversation-%d", i)]), &c); err != nil {
			t.Fatal(err)
		}
		by[run.ID] = c
	}
	want := []message{{Time: at.UnixMilli(), Type: "FACT", Text: "for ⟨U+202E⟩all", Task: true}, {Time: at.Add(time.Second).UnixMilli(), Type: "RUN_STOP", Text: "stopped"}}
	if got := by["a"].Messages; !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
	if got := by["b"].Messages; len(got) != 2 || len(got[0].Text) > busText+64 || !strings.Contains(got[0].Text, "left out") {
		t.Errorf("a long message is not cut")
	}
	if got := by["c"].Messages; len(got) != busMessages+1 || got[busMessages-1].Type != fmt.Sprint(2*busMessages-1) {
		t.Errorf("%d messages", len(got))
	}
	if got := by["d"]; got.MessagesProblem != "too many␛[2J" || len(got.Messages) != 0 {
		t.Errorf("%+v", got)
	}
}

// A page of 500 runs is under 5 MB, however much they said.
func TestFiveHundredRunsFit(t *testing.T) {
	t.Parallel()
	list := exampleRuns(500)
	for i := range list {
		list[i].Status, list[i].Error = runs.StatusFailed, strings.Repeat("because ", 30)
	}
	o := exampleOptions()
	said := strings.Repeat("<said>\n", 10_000)
	o.Events = func(*runs.Run) iter.Seq2[runs.Event, error] {
		return entriesOf(agent.Event{Kind: agent.KindText, Text: said}, call("1", "shell", `{}`), answer("1", said))
	}
	o.Open = func(*runs.Run, string) (io.ReadCloser, error) { return textFile(said), nil }
	o.Messages = func(run *runs.Run) ([]runs.Message, error) {
		return slices.Repeat([]runs.Message{{Type: "FACT", Body: said}}, 50), nil
	}
	if page := write(t, list, o); len(page) > 5_000_000 {
		t.Errorf("%d bytes", len(page))
	}
}

func TestRunsComeAfterTheTimeline(t *testing.T) {
	t.Parallel()
	_, markup := takeApart(t, write(t, exampleRuns(20), exampleOptions()))
	var ids []string
	for _, m := range regexp.MustCompile(`<section id="([a-z]*)"`).FindAllStringSubmatch(markup, -1) {
		ids = append(ids, m[1])
	}
	if want := []string{"time", "runs", "failures", "usage", "durations", "tools"}; !slices.Equal(ids, want) {
		t.Errorf("sections %q, want %q", ids, want)
	}
}

func BenchmarkFiveHundredRuns(b *testing.B) {
	list := asRuns(exampleRuns(500))
	for b.Loop() {
		if err := Write(io.Discard, list, exampleOptions()); err != nil {
			b.Fatal(err)
		}
	}
}
