//go:build acceptance

package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/runs"
)

// text returns the text of the first element of a selector.
func (b *browser) text(selector string) (text string) {
	b.t.Helper()
	b.eval(fmt.Sprintf(`document.querySelector(%q)?.textContent ?? "(none)"`, selector), &text)
	return text
}

// goTo changes the fragment of the address.
func (b *browser) goTo(fragment string) {
	b.t.Helper()
	b.eval(fmt.Sprintf(`location.hash = %q`, fragment), nil)
	b.settle()
}

// sums are the markup of the sums, without the space between the elements.
const sums = `Object.fromEntries(["figures", "time-table", "failures", "usage", "durations", "tools"].map((id) =>
	[id, document.getElementById(id)?.outerHTML.replace(/>\s+/g, ">").replace(/\s+</g, "<").replace(/ open=""/, "")]))`

// The script's sums of all runs are those that the page was written with.
func TestSumsOfTheScriptAreThoseOfThePage(t *testing.T) {
	t.Parallel()
	b := quietBrowser(t)
	silent := exampleRuns(5)
	for i := range silent {
		silent[i].Usage, silent[i].ToolCalls = nil, 0
	}
	for name, list := range map[string][]runs.Info{"700": exampleRuns(700), "many": exampleRuns(3000), "few": exampleRuns(12), "without usage": silent} {
		b.open(pageFile(t, list, exampleOptions()))
		var written, shown map[string]string
		b.eval(sums, &written)
		b.choose("filter-text", "xyzzy")
		b.expect(name, `document.querySelector("#figures dd").textContent === "0"`)
		b.choose("filter-text", "")
		b.eval(sums, &shown)
		for id, want := range written {
			if got := shown[id]; got != want {
				at := 0
				for at < min(len(got), len(want)) && got[at] == want[at] {
					at++
				}
				t.Errorf("%s runs: %s differs: %.200q, want %.200q", name, id, got[max(0, at-50):], want[max(0, at-50):])
			}
		}
		if written["usage"] == "" || written["figures"] == "" {
			t.Errorf("%s: the page has no sums", name)
		}
	}
}

// Filters choose the rows, the timeline and the sums, and are in the address.
func TestFiltersApplyToAllAndAreInTheAddress(t *testing.T) {
	t.Parallel()
	b := quietBrowser(t)
	list := exampleRuns(200)
	want, cost := 0, 0.0
	for _, run := range list {
		if run.Status == runs.StatusFailed && run.Agent == "claude" {
			want++
			cost += *run.Usage.CostUSD
		}
	}
	b.open(pageFile(t, list, exampleOptions()))
	b.choose("filter-status", "failed")
	b.choose("filter-runtime", "claude")
	check := func(when string) {
		t.Helper()
		b.expect(when, fmt.Sprintf(`document.querySelector("#shown").textContent === "%d of 200" && document.querySelectorAll("#table tbody tr").length === %[1]d`, want))
		b.expect(when, `[...document.querySelectorAll("#table tbody tr")].every((r) => r.querySelector(".failed") && r.querySelector(".c-runtime").firstChild.data.trim() === "claude")`)
		b.expect(when, fmt.Sprintf(`document.querySelectorAll("#time-chart .bar").length === %d`, want))
		b.expect(when, fmt.Sprintf(`document.querySelector("#figures dd").textContent === "%d" && document.querySelector("#figures").textContent.includes(%q)`, want, dollars(cost, 2)))
		b.expect(when, fmt.Sprintf(`document.querySelector("#failed").textContent === "%d of %[1]d runs"`, want))
		b.expect(when, `[...document.querySelectorAll("#usage .group th, #durations tbody th")].map((e) => e.textContent).join() === "claude,claude"`)
		b.expect(when, fmt.Sprintf(`[...document.querySelectorAll("#time-table td:nth-child(2)")].reduce((sum, e) => sum + Number(e.textContent), 0) === %d`, want))
		b.expect(when, fmt.Sprintf(`document.querySelector("#inside").textContent === "in the %d conversations on this page"`, want))
		b.expect(when, `location.hash === "#?status=failed&runtime=claude"`)
	}
	check("chosen")
	b.reload()
	check("loaded from its address")
	b.click("#table tbody a")
	b.expect("a run", `!document.querySelector("#run").hidden`)
	b.click("#run .back a")
	check("back")
	b.click(`nav a[href="#usage"]`)
	check("after going to a section")
	b.choose("filter-order", "cost up")
	b.choose("time-group", "project")
	b.expect("ordered", `location.hash === "#?status=failed&runtime=claude&order=cost+up&group=project"`)
	b.goTo("#?model=of-another-page")
	b.expect("a model that no run has", `document.querySelector("#shown").textContent === "0 of 200" && document.querySelector("#filter-model").value === "of-another-page"`)
	b.click("#filter button[type=reset]")
	b.expect("cleared", `document.querySelector("#shown").textContent === "200" && location.hash.length < 2`)
}

func TestSearchCoversPromptsConversationsAndStderr(t *testing.T) {
	t.Parallel()
	b := quietBrowser(t)
	list := exampleRuns(5)
	o := Options{
		Open: filesOf(map[string]string{list[0].RunID + " prompt.md": "Paint the Bikeshed", list[1].RunID + " agent-stderr.txt": "warning: \"glue\" <dried>"}),
		Events: func(run *runs.Run) iter.Seq2[runs.Event, error] {
			if run.RunID != list[2].RunID {
				return entriesOf()
			}
			return entriesOf(call("1", "shell", `{"command":"grep \"needle <x>\" hay"}`), answer("1", "hay: found"),
				agent.Event{Kind: agent.KindPlan, Plan: []agent.PlanStep{{Text: "sharpen it"}}},
				agent.Event{Kind: agent.KindFileChange, Changes: []agent.FileChange{{Path: "f", Action: "add", Diff: "+thimble\n", Truncated: true}}})
		},
		Messages: func(run *runs.Run) ([]runs.Message, error) {
			return []runs.Message{{Run: list[3].RunID, Type: "FACT", Body: "the moon is full"}}, nil
		},
	}
	b.open(pageFile(t, list, o))
	for words, at := range map[string]int{
		"BIKESHED paint": 0, `"glue" <dried>`: 1, "needle <x>": 2, "hay: found": 2, "sharpen": 2, "thimble": 2, "the moon": 3, list[4].RunID: 4,
	} {
		b.choose("filter-text", words)
		b.expect(words, fmt.Sprintf(`[...document.querySelectorAll("#table tbody tr")].map((r) => r.id).join() === "run-%s"`, list[at].RunID))
	}
	b.choose("filter-text", "true")
	b.expect("text without a match", `document.querySelector("#table tbody").textContent.includes("No run matches")`)
	b.choose("filter-text", "needle")
	b.reload()
	b.expect("loaded with words", fmt.Sprintf(`[...document.querySelectorAll("#table tbody tr")].map((r) => r.id).join() === "run-%s"`, list[2].RunID))
}

func TestFailureShowsItsReasonAndStderr(t *testing.T) {
	t.Parallel()
	b := quietBrowser(t)
	b.open(pageFile(t, []runs.Info{
		{RunID: "bad", Agent: "a", Status: runs.StatusFailed, ErrorKind: "agent", Error: "a: exit code 3: broken"}, {RunID: "good", Status: runs.StatusCompleted},
	}, Options{Open: filesOf(map[string]string{"bad agent-stderr.txt": "panic: <oh>\n", "good agent-stderr.txt": "only a note\n"})}))
	b.expect("the row", `document.querySelector("#run-bad .reason").textContent === "exit code 3: broken"`)
	b.goTo("#run-bad")
	if got := b.text("#run .problem"); !strings.HasPrefix(got, "agent failurea: exit code 3: broken") || !strings.HasSuffix(got, "panic: <oh>") {
		t.Errorf("the failure is %q", got)
	}
	b.goTo("#run-good")
	b.expect("a completed run", `!document.querySelector("#run .problem") && document.querySelector("#run section[aria-label='Standard error'] pre").textContent === "only a note"`)
}

// runOf opens a page of one run with a conversation, at that run.
func (b *browser) runOf(entries ...agent.Event) {
	b.t.Helper()
	path := pageFile(b.t, []runs.Info{{RunID: "one", TaskID: "t", SessionID: "s", CommandLine: "x exec -"}}, Options{
		Events: func(*runs.Run) iter.Seq2[runs.Event, error] { return entriesOf(entries...) },
	})
	b.open(path + "#run-one")
}

func TestMarkdownIsRendered(t *testing.T) {
	t.Parallel()
	b := quietBrowser(t)
	code := func(name, text string) string { return "[" + name + "]<pre>" + text + "</pre>" }
	cases := []struct{ text, want string }{
		{"one\ntwo\n\nthree", "<p>one\ntwo</p><p>three</p>"},
		{"# A\n### B ##\n## C\nD\n===\n#no", "<h3>A</h3><h4>B</h4><h4>C</h4><h3>D</h3><p>#no</p>"},
		{"*a* **b** ***c*** _d_ __e__ ~~f~~", "<p><em>a</em> <strong>b</strong> <strong><em>c</em></strong> <em>d</em> <strong>e</strong> <s>f</s></p>"},
		{"**a *b***, a*b*c", "<p><strong>a <em>b</em></strong>, a<em>b</em>c</p>"},
		{"snake_case_name, 2 * 3 * 4, **open, *, _, _x", "<p>snake_case_name, 2 * 3 * 4, **open, *, _, _x</p>"},
		{"`a`, ``b ` c``, ` `` `, `open", "<p><code>a</code>, <code>b ` c</code>, <code>``</code>, `open</p>"},
		{`\*a\* \<b> \x`, `<p>*a* &lt;b&gt; \x</p>`},
		{"<b>x</b> &amp; <!-- y -->", "<p>&lt;b&gt;x&lt;/b&gt; &amp;amp; &lt;!-- y --&gt;</p>"},
		{"[a **b**](http://c.d/e_f_(g) \"t\")", "<p>a <strong>b</strong><span> (http://c.d/e_f_(g), t)</span></p>"},
		{"[http://a](http://b) [http://a](http://a)", "<p>http://a<span> (http://b)</span> <span>http://a</span></p>"},
		{"![alt](x.png) [no](", "<p>image: alt<span> (x.png)</span> [no](</p>"},
		{"- a\n- b\n  c\n\n  d\n- [ ] e", "<ul><li><p>a</p></li><li><p>b\nc</p><p>d</p></li><li><p>[ ] e</p></li></ul>"},
		{"text\n- a\n  1. b\n  2. c\n- d", "<p>text</p><ul><li><p>a</p><ol><li><p>b</p></li><li><p>c</p></li></ol></li><li><p>d</p></li></ul>"},
		{"3) a\n4) b\n\nc", "<ol start=\"3\"><li><p>a</p></li><li><p>b</p></li></ol><p>c</p>"},
		{"- a\n  ```\n  x\n  \ty\n  ```", "<ul><li><p>a</p>" + code("Code", "x\n    y") + "</li></ul>"},
		{"> a\n> > b\nc", "<blockquote><p>a</p><blockquote><p>b</p></blockquote></blockquote><p>c</p>"},
		{"```go info\n<b>\n\n\tx\n```\nafter", code("go info", "&lt;b&gt;\n\n\tx") + "<p>after</p>"},
		{"~~~\n```\n~~~~\n    code\n\n    more\n", code("Code", "```") + code("Code", "code\n\nmore")},
		{"```\nnever closed", code("Code", "never closed")},
		{"```diff\n-a\n+b\n c\n```", code("diff", "<del>-a\n</del><ins>+b\n</ins> c\n")},
		{"a\n\n---\n***\nb", "<p>a</p><hr><hr><p>b</p>"},
		{"| a | b |\n|---|:-:|\n| 1 | `x` \\| y |\n\nz", "[table]<thead><tr><th>a</th><th>b</th></tr></thead><tbody><tr><td>1</td><td><code>x</code> | y</td></tr></tbody><p>z</p>"},
		{"a | b\nno rule", "<p>a | b\nno rule</p>"},
		{strings.Repeat("> ", 30) + "deep", strings.Repeat("<blockquote>", 8) + "<p>" + strings.Repeat("&gt; ", 22) + "deep</p>" + strings.Repeat("</blockquote>", 8)},
	}
	var entries []agent.Event
	for _, c := range cases {
		entries = append(entries, agent.Event{Kind: agent.KindText, Text: c.text})
	}
	b.runOf(entries...)
	var got []string
	b.eval(`[...document.querySelectorAll("#run .item.text .prose")].map((prose) => {
		for (const code of prose.querySelectorAll(".code")) code.replaceWith("[" + code.querySelector(".code-head span").textContent + "]", code.querySelector("pre"));
		for (const table of prose.querySelectorAll(".scroll")) table.replaceWith("[table]", ...table.firstChild.childNodes);
		for (const e of prose.querySelectorAll("*")) for (const { name } of [...e.attributes]) if (name !== "start" || e.start === 1) e.removeAttribute(name);
		return prose.innerHTML;
	})`, &got)
	if len(got) != len(cases) {
		t.Fatalf("%d texts", len(got))
	}
	for i, c := range cases {
		if got[i] != c.want {
			t.Errorf("%q\n is  %s\nwant %s", c.text, got[i], c.want)
		}
	}
}

// The work that Markdown causes is proportional to its length, whatever it is. Work is the
// time of the page's thread on a processor, so that other programs do not count.
func TestMarkdownWorkIsProportional(t *testing.T) {
	t.Parallel()
	b := quietBrowser(t)
	b.call("Performance.enable", `{"timeDomain":"threadTicks"}`, nil)
	work := func(length int) float64 {
		var entries []agent.Event
		for _, piece := range []string{
			"*", "*a ", "**a", "_a_", "`", "`` `` ", "[", "[a](", "![a](b", "> ", "- ", "  - a\n", "- a\n\n", "|a", "|\n|-", "| - ", "#", "# # ", "~~a", "\\", "\t", " ", "1. ",
			"a\n=", "```\n", "<", "*_", "[](((", "\n    ", "---\n", "a **b _c ~~d ", "(\"", " #",
		} {
			entries = append(entries, agent.Event{Kind: agent.KindText, Text: strings.Repeat(piece, length/len(piece)) + "x"})
		}
		before := b.scriptSeconds()
		b.runOf(entries...)
		b.expect("opened", fmt.Sprintf(`document.querySelectorAll("#run .item").length >= %d`, len(entries)))
		return b.scriptSeconds() - before
	}
	// Work that is quadratic in the length is 256 times as much, not 16 times.
	const times = 16
	part, whole := work(longText/times), work(longText)
	if part <= 0 || whole > 4*times*part {
		t.Errorf("%v s of work for %d bytes, %v s for %d times as much", part, longText/times, whole, times)
	}
}

// scriptSeconds returns the time that the scripts of the page have used.
func (b *browser) scriptSeconds() float64 {
	b.t.Helper()
	var got struct {
		Metrics []struct {
			Name  string
			Value float64
		}
	}
	b.call("Performance.getMetrics", `{}`, &got)
	for _, m := range got.Metrics {
		if m.Name == "ScriptDuration" {
			return m.Value
		}
	}
	b.t.Fatal("the browser does not measure scripts")
	return 0
}

func TestCopyButtons(t *testing.T) {
	t.Parallel()
	b := quietBrowser(t)
	b.runOf(agent.Event{Kind: runs.KindMessage, Text: "do **it**"}, call("1", "shell", `{"command":"rm -r <x>"}`), answer("1", "removed\n"),
		agent.Event{Kind: agent.KindText, Text: "I did **it**:\n\n```sh\nrm\n```"})
	b.call("Browser.grantPermissions", `{"permissions":["clipboardReadWrite","clipboardSanitizedWrite"]}`, nil)
	b.openAll()
	for _, c := range []struct{ label, want string }{
		{"Copy run ID", "one"}, {"Copy task ID", "t"}, {"Copy session ID", "s"}, {"Copy command", "x exec -"}, {"Copy prompt", "do **it**"},
		{"Copy input", "rm -r <x>"}, {"Copy output", "removed\n"}, {"Copy code", "rm"}, {"Copy answer", "I did **it**:\n\n```sh\nrm\n```"},
	} {
		b.click(`#run button[aria-label="` + c.label + `"]`)
		b.expect(c.label, `document.activeElement.textContent === "Copied"`)
		var got string
		b.eval(`navigator.clipboard.readText()`, &got)
		if got != c.want {
			t.Errorf("%s copies %q, want %q", c.label, got, c.want)
		}
	}
}

// Children and attempts are below the run that they belong to.
func TestRunsAreATree(t *testing.T) {
	t.Parallel()
	b := quietBrowser(t)
	run := func(id, parent, previous string) runs.Info {
		at := madeAt.Add(-time.Duration('z'-id[0]) * time.Minute)
		return runs.Info{RunID: id, TaskID: id, ProjectID: "p", ParentRunID: parent, PreviousRunID: previous, StartTime: at, EndTime: at.Add(time.Second),
			Status: map[bool]runs.Status{true: runs.StatusFailed, false: runs.StatusCompleted}[id == "c"]}
	}
	b.open(pageFile(t, []runs.Info{
		run("a", "", ""), run("b", "a", ""), run("c", "", "b"), run("d", "", "c"), run("e", "d", ""), run("f", "", ""),
		run("m", "n", ""), run("n", "m", ""), run("o", "o", "o"), run("q", "gone", ""),
	}, Options{}))
	tree := `[...document.querySelectorAll("#table tbody tr")].map((r) => (r.dataset.depth || "0") + r.id.slice(4)).join(" ")`
	for when, want := range map[string]string{"": "0q 0o 0n 1m 0f 0a 1b 2d 3e 2c", "failed": "0c"} {
		b.choose("filter-status", when)
		var got string
		if b.eval(tree, &got); got != want {
			t.Errorf("status %q: %q, want %q", when, got, want)
		}
	}
	b.expect("an attempt", `document.querySelector("#run-c .c-task").textContent.includes("attempt 2")`)
	b.choose("filter-status", "")
	b.choose("filter-order", "task up")
	b.expect("in another order", `!document.querySelector("#table [data-depth]")`)
	for id, want := range map[string]string{"e": "abcde", "a": "abcde", "m": "nm", "f": "", "q": ""} {
		b.goTo("#run-" + id)
		var got string
		b.eval(`[...document.querySelectorAll("#run .tree a")].map((a) => a.textContent).join("")`, &got)
		if got != want {
			t.Errorf("the tree of %s is %q, want %q", id, got, want)
		}
	}
	b.goTo("#run-q")
	b.expect("a parent that is not here", `document.querySelector("#run").textContent.includes("The run that started it is not on this page: gone")`)
	b.goTo("#run-e")
	b.expect("nested", `document.querySelector("#run .tree [aria-current]").textContent === "e" && document.querySelector("#run .tree > li > ul > li > ul > li > ul > li a[aria-current]")`)
}

func TestEditsAreDifferences(t *testing.T) {
	t.Parallel()
	b := quietBrowser(t)
	long := strings.Repeat("same\n", 20)
	inputs := []map[string]any{
		{"path": "x", "old_string": "a\nb\nc", "new_string": "a\nB\nc\nd"},
		{"edits": []map[string]string{{"oldText": "1", "newText": "2"}, {"oldText": "", "newText": "<3>"}}},
		{"old_string": long + "old", "new_string": long + "new"},
		{"command": []string{"apply_patch", "*** Begin Patch\n*** Update File: x\n@@\n-a\n+b\n*** End Patch"}},
		{"old_string": strings.Repeat("a\n", 3000), "new_string": strings.Repeat("b\n", 3000)},
		{"path": "x", "content": "- no\n+ difference"},
	}
	var entries []agent.Event
	for i, input := range inputs {
		text, _ := json.Marshal(input)
		entries = append(entries, call(fmt.Sprint(i), "edit", string(text)), answer(fmt.Sprint(i), ""))
	}
	entries = append(entries, call("g", "git", `{}`), answer("g", "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"),
		agent.Event{Kind: agent.KindFileChange, Changes: []agent.FileChange{
			{Path: "new", Action: "add"}, {Path: "x.sql", Action: "update", Diff: "@@ -1,2 +1,2 @@\n--- <a>\n+++ b\n c\n", Truncated: true},
		}})
	b.runOf(entries...)
	var got [][]string
	b.eval(`[...document.querySelectorAll("#run .item")].map((item) => [...item.querySelectorAll(".diff")].map((pre) =>
		[...pre.childNodes].map((n) => (n.nodeName === "INS" ? "ins:" : n.nodeName === "DEL" ? "del:" : "") + n.textContent).join("")))`, &got)
	for i, want := range [][]string{
		{" a\ndel:-b\nins:+B\n c\nins:+d\n"}, {"del:-1\nins:+2\n", "ins:+<3>\n"}, {"…\n same\n same\n same\ndel:-old\nins:+new\n"},
		{"apply_patch\n*** Begin Patch\n*** Update File: x\n@@\ndel:-a\nins:+b\n*** End Patch\n"}, nil, {}, {"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\ndel:-a\nins:+b\n"},
		{"@@ -1,2 +1,2 @@\ndel:--- <a>\nins:+++ b\n c\n"},
	} {
		if want != nil && !slices.Equal(got[i], want) {
			t.Errorf("edit %d: %q, want %q", i, got[i], want)
		}
	}
	b.expect("a changed file", `(([first, second]) => first.textContent === "add new" && second.textContent.startsWith("update x.sqlEditCopy") &&
		second.textContent.endsWith("The rest of the edit is not in the record."))(document.querySelectorAll("#item-7 li"))`)
	b.expect("a large edit", `document.querySelectorAll("#item-4 del").length === 3000 && document.querySelectorAll("#item-4 ins").length === 3000`)
}

func TestKeys(t *testing.T) {
	t.Parallel()
	b := quietBrowser(t)
	b.open(pageFile(t, exampleRuns(30), exampleOptions()))
	row := func(n int) string {
		return fmt.Sprintf(`document.activeElement === document.querySelector("#table tbody tr:nth-child(%d) a")`, n)
	}
	b.key("/", "/")
	b.expect("after /", `document.activeElement === document.querySelector("#filter-text") && document.activeElement.value === ""`)
	b.key("j", "j")
	b.expect("j in the search", `document.querySelector("#filter-text").value === "j"`)
	b.key("Escape", "")
	b.expect("Escape clears the search", `document.querySelector("#filter-text").value === "" && location.hash.length < 2`)
	b.key("Escape", "")
	b.expect("Escape leaves the search", `document.activeElement === document.body`)
	for range 3 {
		b.key("j", "j")
	}
	b.key("k", "k")
	b.expect("after j j j k", row(2))
	b.key("Enter", "\r")
	b.expect("after Enter", `!document.querySelector("#run").hidden`)
	b.key("j", "j")
	b.key("j", "j")
	b.expect("j in a run", `document.activeElement.id === "item-1"`)
	b.key("k", "k")
	b.expect("k in a run", `document.activeElement.id === "item-0"`)
	b.key("Escape", "")
	b.expect("Escape in a run", `document.querySelector("#run").hidden && `+row(2))
	b.key("Enter", "\r")
	b.key("/", "/")
	b.expect("/ in a run", `document.querySelector("#run").hidden && document.activeElement.id === "filter-text"`)
}

func TestConversationFiltersByKind(t *testing.T) {
	t.Parallel()
	b := quietBrowser(t)
	b.open(pageFile(t, exampleRuns(3), exampleOptions()))
	b.click("#table tbody a")
	box := func(name string) {
		b.eval(fmt.Sprintf(`[...document.querySelectorAll("#run .kinds-shown label")].find((l) => l.textContent.startsWith(%q)).click()`, name), nil)
		b.settle()
	}
	shown := `[...new Set([...document.querySelectorAll("#run .item:not([hidden]) .who")].map((e) => e.textContent))].join()`
	b.expect("at first", `document.querySelectorAll("#run .items .item[hidden]").length === 0 && document.querySelectorAll("#run .kinds-shown input:checked").length > 8`)
	b.expect("counts", `document.querySelector("#run .kinds-shown").textContent.includes("Tool 6")`)
	box("Tool")
	box("Thinking")
	b.expect("hidden", `!/Tool|Thinking/.test(`+shown+`) && /Agent/.test(`+shown+`) && location.hash.endsWith("?hide=Tool%2CThinking")`)
	b.reload()
	b.expect("loaded from its address", `!/Tool|Thinking/.test(`+shown+`)`)
	box("Tool")
	b.expect("shown again", `/Tool/.test(`+shown+`) && !/Thinking/.test(`+shown+`)`)
	b.expect("messages", `document.querySelector("#run .messages").textContent.includes("the tests need a database") && !document.querySelector("#run .messages").textContent.includes("of another run")`)
}

// axe-core reports no violation in any view.
func TestPageIsAccessible(t *testing.T) {
	t.Parallel()
	axe, err := os.ReadFile(os.Getenv("BUS_AGENT_AXE"))
	if err != nil {
		t.Fatalf("BUS_AGENT_AXE names no axe.min.js; make acceptance sets it: %v", err)
	}
	b := startBrowser(t)
	list := exampleRuns(60)
	list[5].Warnings, list[5].RecordProblem = []string{"no room"}, "the disk is full"
	o := exampleOptions()
	o.Messages = func(run *runs.Run) ([]runs.Message, error) {
		messages, _ := exampleMessages(run)
		return messages, errors.New("the rest is damaged")
	}
	path := pageFile(t, list, o)
	empty := pageFile(t, nil, Options{})
	check := func(view string) {
		t.Helper()
		b.eval(string(axe), nil)
		var found struct {
			Passes     int
			Violations []string
		}
		b.eval(`axe.run(document).then((r) => ({ passes: r.passes.length, violations: r.violations.map((v) =>
			v.id + " (" + v.impact + ", " + v.nodes.length + "): " + v.help + ": " + v.nodes.slice(0, 3).map((n) => n.html.slice(0, 150)).join(" | ")) }))`, &found)
		if found.Passes < 10 {
			t.Errorf("%s: only %d rules were checked", view, found.Passes)
		}
		for _, v := range found.Violations {
			t.Errorf("%s: %s", view, v)
		}
	}
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int{1360, 390} {
			view := fmt.Sprintf("%s, %d: ", scheme, width)
			b.screen(width, 900, scheme)
			b.open(path)
			check(view + "list")
			b.goTo("#run-" + list[5].RunID)
			b.openAll()
			check(view + "run with all open")
		}
		b.open(path)
		b.eval(`document.querySelector("#time-table").open = true`, nil)
		b.choose("filter-text", "xyzzy")
		check(scheme + ": nothing found")
		b.goTo("#run-" + list[9].RunID)
		check(scheme + ": another run")
		b.open(empty)
		check(scheme + ": without runs")
	}
}

// The page has the same policy and loads nothing, whatever Markdown asks for.
func TestMarkdownLoadsNothing(t *testing.T) {
	t.Parallel()
	page := write(t, exampleRuns(3), exampleOptions())
	if m := regexp.MustCompile(`connect-src|img-src|unsafe`).FindString(page[:2000]); m != "" {
		t.Errorf("the policy allows %s", m)
	}
	b := quietBrowser(t)
	b.screen(390, 844, "light")
	var events []agent.Event
	for _, text := range []string{
		"![x](http://127.0.0.1:9/x.png)", "[x](javascript:window.zapped=1)", "[![x](data:image/png;base64,AA)](file:///etc/passwd)", "<http://127.0.0.1:9/>",
		"http://127.0.0.1:9/", "[a]: http://127.0.0.1:9/ \"t\"\n[a]", "<img src=http://127.0.0.1:9/>", "| <img src=http://127.0.0.1:9/ onerror=window.zapped=1> |\n| --- |\n| ![](http://127.0.0.1:9/) |",
		"```html onload=window.zapped=1\n<script>window.zapped=1</script>\n```", "# [x](http://127.0.0.1:9/) `<script>`", "> - 1. **<iframe src=http://127.0.0.1:9/>**",
	} {
		for _, kind := range []agent.Kind{agent.KindText, agent.KindThinking, runs.KindMessage} {
			events = append(events, agent.Event{Kind: kind, Text: text})
		}
	}
	b.runOf(events...)
	b.openAll()
	b.settle()
	b.expect("nothing but text", `!document.querySelector("#run .prose :is(a, img, script, iframe, [href], [src], [onerror], [onload], [style])") && window.zapped === undefined`)
	b.expect("all addresses are shown", fmt.Sprintf(`document.querySelector("#run .items").textContent.split("127.0.0.1:9").length > %d`, 3*8))
}
