package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"iter"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/runs"
)

func write(t *testing.T, list []runs.Info, o Options) string {
	t.Helper()
	if o.Now.IsZero() {
		o.Now = madeAt
	}
	var page bytes.Buffer
	if err := Write(&page, asRuns(list), o); err != nil {
		t.Fatal(err)
	}
	return page.String()
}

// takeApart returns the data of a page by ID, and the page without its data, style
// and script.
func takeApart(t *testing.T, page string) (data map[string]string, markup string) {
	t.Helper()
	data = map[string]string{}
	var rest strings.Builder
	for {
		before, after, found := strings.Cut(page, `<script type="application/json" id="`)
		rest.WriteString(before)
		if !found {
			break
		}
		id, after, _ := strings.Cut(after, `">`)
		data[id], page, found = strings.Cut(after, "</script>")
		if !found {
			t.Fatalf("%s does not end", id)
		}
	}
	markup = rest.String()
	for _, own := range []string{pageStyle, earlyScript, pageScript()} {
		if strings.Count(markup, own) != 1 {
			t.Fatal("the page lacks its style or script, or has it twice")
		}
		markup = strings.Replace(markup, own, "", 1)
	}
	return data, markup
}

// hostile are texts that try to be more than text.
var hostile = []string{
	`</script><zap>`, `</SCRIPT ><zap>`, `<!--<script><zap>`, `--><zap>`, `]]><zap>`, `</title></style></textarea><zap>`,
	`" zap="1`, `' zap='1`, "` zap=`1", `"><zap>`, `javascript:zap()`, `{{zap}}`, `${zap}`, `\u003czap\u003e`, `&lt;zap&gt;`, `\"><zap>`,
	"exe\u202etxt", "\x1b]0;zap\x07", "nul\x00zap", "\u2028zap()", "\xff<zap>", "../../#run-zap",
}

func hostileRun(text string) runs.Info {
	return runs.Info{
		RunID: text, ParentRunID: text, PreviousRunID: text, ProjectID: text, TaskID: text, Agent: text, Status: runs.Status(text),
		StartTime: madeAt, EndTime: madeAt.Add(time.Second), CWD: text, CommandLine: text, ErrorSummary: text, AgentVersion: text,
		Model: text, SessionID: text, Access: text, Signal: text, ErrorKind: text, Error: text, Warnings: []string{text}, RecordProblem: text,
	}
}

func hostileEntries(text string) iter.Seq2[runs.Event, error] {
	quoted, _ := json.Marshal(map[string]string{text: text})
	tool := &agent.Tool{ID: text, Name: text, Input: quoted, Output: agent.Plain(text)}
	var events []agent.Event
	for _, kind := range append(agent.Kinds(), runs.KindMessage, agent.Kind(text)) {
		events = append(events, agent.Event{
			Kind: kind, SessionID: text, Model: text, MessageID: text, Text: text, Tool: tool, Failure: agent.Failure(text), Failed: true,
			Plan: []agent.PlanStep{{Text: text, Status: text}}, Changes: []agent.FileChange{{Path: text, Action: text, Diff: "+" + text}}, Subagent: text,
		})
	}
	return entriesOf(events...)
}

func TestNothingOfAgentsBecomesMarkup(t *testing.T) {
	t.Parallel()
	var list []runs.Info
	for _, text := range hostile {
		run := hostileRun(text)
		failed := run
		failed.Status = runs.StatusFailed
		list = append(list, run, failed)
	}
	page := write(t, list, Options{
		Filter: strings.Join(hostile, ""), Root: strings.Join(hostile, ""), MaxRuns: len(list) - 1,
		Events:  func(run *runs.Run) iter.Seq2[runs.Event, error] { return hostileEntries(run.RunID) },
		Command: func(run *runs.Run) string { return run.RunID },
	})
	if i := strings.IndexFunc(page, acts); i >= 0 {
		t.Errorf("the page has the character %q", page[i:i+4])
	}
	data, markup := takeApart(t, page)
	if len(data) != len(list) { // the runs, and all but one have a conversation
		t.Errorf("%d blocks of data", len(data))
	}
	for id, text := range data {
		if !json.Valid([]byte(text)) {
			t.Errorf("%s is not JSON", id)
		}
		if i := strings.IndexAny(text, "<>&"); i >= 0 {
			t.Errorf("%s has %q", id, text[i:min(len(text), i+20)])
		}
	}
	for _, bad := range []string{"<zap", `" zap=`, `' zap=`} {
		if i := strings.Index(strings.ToLower(markup), bad); i >= 0 {
			t.Errorf("the page has %q", markup[max(0, i-60):i+20])
		}
	}
	for _, m := range regexp.MustCompile(`(?:href|src|action|srcset|data)="([^"]*)"`).FindAllStringSubmatch(markup, -1) {
		if !strings.HasPrefix(m[1], "#") {
			t.Errorf("the page has the address %q", m[1])
		}
	}
	if m := regexp.MustCompile(`<[^>]*\s(on[a-z]+|style)=`).FindString(markup); m != "" {
		t.Errorf("the page has %q", m)
	}
	shown := html.UnescapeString(markup)
	for _, text := range hostile {
		if want := line(text, 1000); !strings.Contains(shown, want) {
			t.Errorf("the table lacks %q", want)
		}
	}
}

// A record of texts without end takes no more of the page than its share.
func TestHostileMetadataIsBounded(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		strings.Repeat("<", 1<<20), strings.Repeat("\u202e", 300_000), strings.Repeat("a\n", 500_000), strings.Repeat("\xff", 1<<20),
	} {
		run := hostileRun(text)
		run.Status, run.Warnings = runs.StatusFailed, slices.Repeat([]string{text}, 1000)
		data, markup := takeApart(t, write(t, []runs.Info{run}, Options{
			Events: func(*runs.Run) iter.Seq2[runs.Event, error] {
				return func(yield func(runs.Event, error) bool) { yield(runs.Event{}, errors.New(text)) }
			},
			Command: func(run *runs.Run) string { return run.RunID },
		}))
		if _, plainMarkup := takeApart(t, write(t, []runs.Info{hostileRun("x")}, Options{})); len(markup) > len(plainMarkup)+50_000 {
			t.Errorf("%.10q: %d bytes of markup", text, len(markup))
		}
		var known struct {
			Runs []map[string]any `json:"runs"`
		}
		var c conversation
		if json.Unmarshal([]byte(data["runs-data"]), &known) != nil || json.Unmarshal([]byte(data["conversation-0"]), &c) != nil {
			t.Fatal("the data are not JSON")
		}
		texts := map[string]string{"the problem": c.Problem}
		for name, value := range known.Runs[0] {
			switch value := value.(type) {
			case string:
				texts[name] = value
			case []any:
				if last := value[len(value)-1]; len(value) != shownWarnings+1 || last != "… 980 warnings left out …" {
					t.Errorf("%d warnings, in the end %q", len(value), last)
				}
				texts[name] = value[0].(string)
			}
		}
		if len(texts) < 15 {
			t.Errorf("only %d texts of the record are on the page", len(texts))
		}
		for name, shown := range texts {
			long := len(shown) > 100 || name == "access" || name == "signal" || name == "failure_kind"
			switch {
			case len(shown) > metadataText+64: // and the mark
				t.Errorf("%.10q: %s takes %d bytes", text, name, len(shown))
			case long && !strings.Contains(shown, "…"):
				t.Errorf("%.10q: %s does not say that it is cut: %.40q", text, name, shown)
			case strings.Contains(shown, "\n") && !slices.Contains([]string{"failure", "show", "the problem"}, name):
				t.Errorf("%.10q: %s has many lines", text, name)
			}
		}
	}
}

func TestHostileTextSurvivesInConversations(t *testing.T) {
	t.Parallel()
	for i, text := range hostile {
		data, _ := takeApart(t, write(t, []runs.Info{hostileRun(text)}, Options{
			Events: func(*runs.Run) iter.Seq2[runs.Event, error] { return hostileEntries(text) },
		}))
		var c conversation
		if err := json.Unmarshal([]byte(data["conversation-0"]), &c); err != nil {
			t.Fatal(err)
		}
		said := slices.IndexFunc(c.Items, func(i *item) bool { return i.Kind == "text" && i.Text == plain(text) })
		did := slices.IndexFunc(c.Items, func(i *item) bool { return i.Kind == "tool_call" && i.Output == plain(text) })
		if said < 0 || did < 0 {
			t.Errorf("hostile text %d is not in the conversation", i)
		}
	}
}

// The policy allows the page's own style and script, by their hashes, and no more.
func TestPolicyAllowsThePageAlone(t *testing.T) {
	t.Parallel()
	page := write(t, exampleRuns(3), exampleOptions())
	policy := regexp.MustCompile(`Content-Security-Policy" content="([^"]*)"`).FindStringSubmatch(page)
	if policy == nil {
		t.Fatal("there is no policy")
	}
	want := "default-src 'none'; style-src '" + hashOf(pageStyle) + "'; script-src '" + hashOf(earlyScript) + "' '" +
		hashOf(pageScript()) + "'; base-uri 'none'; form-action 'none'"
	if policy[1] != want {
		t.Errorf("policy %q, want %q", policy[1], want)
	}
	if at := strings.Index(page, "<style"); at < strings.Index(page, "Content-Security-Policy") {
		t.Error("the policy comes after what it governs")
	}
	for _, source := range []string{pageScript(), pageStyle, earlyScript} {
		if m := regexp.MustCompile(`(?i)</(script|style)|<!--|innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|url\(|@import|fetch\(|XMLHttp|import\(`).FindString(source); m != "" {
			t.Errorf("style or script has %q", m)
		}
	}
}

func TestSameRunsGiveTheSamePage(t *testing.T) {
	t.Parallel()
	list := exampleRuns(300)
	first := write(t, list, exampleOptions())
	slices.Reverse(list)
	for i := range list {
		list[i].StartTime = list[i].StartTime.In(time.FixedZone("there", 7*3600))
	}
	if second := write(t, list, exampleOptions()); first != second {
		t.Error("the page depends on the order of the runs or the zone of their times")
	}
}

func TestNewestRunsAreOnThePage(t *testing.T) {
	t.Parallel()
	list := exampleRuns(DefaultRuns + 1)
	o := exampleOptions()
	o.Events, o.Messages = nil, nil
	data, markup := takeApart(t, write(t, list, o))
	if n := strings.Count(markup, `<tr id="run-`); n != DefaultRuns {
		t.Errorf("%d rows", n)
	}
	var runsData pageData
	if err := json.Unmarshal([]byte(data["runs-data"]), &runsData); err != nil || len(runsData.Runs) != DefaultRuns {
		t.Errorf("%d runs, %v", len(runsData.Runs), err)
	}
	if oldest := list[DefaultRuns].RunID; strings.Contains(markup, `id="run-`+oldest) {
		t.Error("the oldest run is on the page")
	}
	for _, want := range []string{"1 older run is left out", "newest 5,000 of 5,001", "--runtime", "There are no conversations on this page", "bus-agent runs tail " + list[DefaultRuns-1].RunID} {
		if !strings.Contains(markup, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if _, markup := takeApart(t, write(t, list[:3], o)); strings.Contains(markup, "left out") {
		t.Error("a page of all runs says that some are left out")
	}
}

// Runs of 1 MB each: the newest twenty or so fit.
func TestNewestConversationsAreOnThePage(t *testing.T) {
	t.Parallel()
	list := exampleRuns(24)
	o := exampleOptions()
	o.Open, o.Messages, o.MaxConversations = nil, nil, 20_000_000
	reads := 0
	o.Events = func(*runs.Run) iter.Seq2[runs.Event, error] {
		reads++
		var events []agent.Event
		for range 16 {
			events = append(events, agent.Event{Kind: agent.KindText, Text: strings.Repeat("x", longText)})
		}
		return entriesOf(events...)
	}
	page := write(t, list, o)
	data, markup := takeApart(t, page)
	room := 0
	for id, text := range data {
		if id != "runs-data" {
			room += len(text)
		}
	}
	inside := len(data) - 1
	if inside < 17 || inside > 19 || room > o.MaxConversations {
		t.Errorf("%d conversations in %d bytes", inside, room)
	}
	if reads != inside+1 {
		t.Errorf("%d conversations were read for %d", reads, inside)
	}
	for i := range inside {
		if data[fmt.Sprintf("conversation-%d", i)] == "" {
			t.Errorf("conversation %d is missing", i)
		}
	}
	for _, want := range []string{fmt.Sprintf("newest %d conversations are on this page", inside), "bus-agent runs tail " + list[23].RunID} {
		if !strings.Contains(markup, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	o.MaxConversations = -1
	if data, _ := takeApart(t, write(t, list, o)); len(data) != 1 {
		t.Errorf("%d blocks of data where there should be no conversation", len(data))
	}
}

// One conversation that cannot be cut to its part leaves the others on the page.
func TestTooLargeConversationLeavesTheOthers(t *testing.T) {
	t.Parallel()
	list := exampleRuns(12)
	o := exampleOptions()
	o.MaxConversations = 500_000
	large := map[string]bool{list[0].RunID: true}
	o.Events = func(run *runs.Run) iter.Seq2[runs.Event, error] {
		plan := agent.Event{Kind: agent.KindPlan}
		for range 60 {
			plan.Plan = append(plan.Plan, agent.PlanStep{Text: strings.Repeat("x", 1000)})
		}
		if large[run.RunID] {
			return entriesOf(agent.Event{Kind: agent.KindText, Text: "the plan"}, plan)
		}
		return exampleEntries(run)
	}
	check := func(inside int, want ...string) {
		t.Helper()
		data, markup := takeApart(t, write(t, list, o))
		for i, run := range list {
			if on := data[fmt.Sprintf("conversation-%d", i)] != ""; on == large[run.RunID] {
				t.Errorf("conversation %d is on the page: %t", i, on)
			}
		}
		var known pageData
		if err := json.Unmarshal([]byte(data["runs-data"]), &known); err != nil {
			t.Fatal(err)
		}
		for i, run := range known.Runs {
			if run.Large != large[list[i].RunID] {
				t.Errorf("run %d is too large: %t", i, run.Large)
			}
		}
		for _, text := range append(want, fmt.Sprintf("newest %d conversations are on this page", inside)) {
			if !strings.Contains(markup, text) {
				t.Errorf("the page does not say %q", text)
			}
		}
		if strings.Contains(markup, "A command shows any other") {
			t.Error("the page names a command for others, and there are none")
		}
	}
	check(11, "One conversation is too large for it; this command shows it: <code>bus-agent runs tail "+list[0].RunID)
	large[list[4].RunID] = true
	check(10, "2 conversations are too large for it; a command shows each, for example: <code>bus-agent runs tail "+list[0].RunID)
	large = nil
	if _, markup := takeApart(t, write(t, list, o)); strings.Contains(markup, "too large") {
		t.Error("a page of all conversations says that one is too large")
	}
}

func TestPageWithoutRuns(t *testing.T) {
	t.Parallel()
	_, markup := takeApart(t, write(t, nil, Options{}))
	if !strings.Contains(markup, "There are no runs yet") || strings.Contains(markup, "<table") {
		t.Error("an empty page does not say so")
	}
	_, markup = takeApart(t, write(t, nil, Options{Filter: "--status failed"}))
	if !strings.Contains(markup, "No run was chosen") || !strings.Contains(markup, "<code>--status failed</code>") {
		t.Error("an empty page does not name the filter")
	}
}

func TestNewestRunIsFirst(t *testing.T) {
	t.Parallel()
	_, markup := takeApart(t, write(t, []runs.Info{
		{RunID: "b", StartTime: madeAt.Add(-time.Hour)}, {RunID: "a", StartTime: madeAt}, {RunID: "c", StartTime: madeAt.Add(-2 * time.Hour)},
	}, Options{MaxRuns: 2}))
	rows := regexp.MustCompile(`<tr id="run-(.)"`).FindAllStringSubmatch(markup, -1)
	if len(rows) != 2 || rows[0][1] != "a" || rows[1][1] != "b" {
		t.Errorf("rows %q", rows)
	}
}

func TestRunsWithTheSameIDAreDistinct(t *testing.T) {
	t.Parallel()
	_, markup := takeApart(t, write(t, []runs.Info{{RunID: "same", ProjectID: "a"}, {RunID: "same", ProjectID: "b"}}, Options{}))
	if !strings.Contains(markup, `id="run-same"`) || !strings.Contains(markup, `href="#run-same~2"`) {
		t.Error("two runs have the same address")
	}
}

type brokenWriter struct{ left int }

func (w *brokenWriter) Write(b []byte) (int, error) {
	if w.left -= len(b); w.left < 0 {
		return 0, io.ErrShortWrite
	}
	return len(b), nil
}

func TestWriteReportsThatItFailed(t *testing.T) {
	t.Parallel()
	o := exampleOptions()
	whole := len(write(t, exampleRuns(50), o))
	for _, left := range []int{0, 1 << 16, whole / 2, whole - 1} {
		if err := Write(&brokenWriter{left}, asRuns(exampleRuns(50)), o); !errors.Is(err, io.ErrShortWrite) {
			t.Errorf("after %d bytes: %v", left, err)
		}
	}
}

func BenchmarkWrite(b *testing.B) {
	list := asRuns(exampleRuns(DefaultRuns))
	for b.Loop() {
		if err := Write(io.Discard, list, exampleOptions()); err != nil {
			b.Fatal(err)
		}
	}
}
