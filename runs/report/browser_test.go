//go:build acceptance

package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/runs"
)

// pageFile writes a page to a file.
func pageFile(t *testing.T, list []runs.Info, o Options) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(path, []byte(write(t, list, o)), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// expectQuiet checks that the browser had nothing to complain about and loaded
// nothing but the pages.
func (b *browser) expectQuiet() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.events {
		switch e.Method {
		case "Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled":
			b.t.Errorf("the page made the browser say: %.600s", e.Params)
		case "Network.requestWillBeSent":
			var sent struct {
				Type    string
				Request struct{ URL string }
			}
			if json.Unmarshal(e.Params, &sent) != nil || sent.Type != "Document" || !strings.HasPrefix(sent.Request.URL, "file:///") {
				b.t.Errorf("the page asked for something: %.300s", e.Params)
			}
		}
	}
}

// expect evaluates an expression that should be true.
func (b *browser) expect(what, expression string) {
	b.t.Helper()
	var got bool
	if b.eval("Boolean("+expression+")", &got); !got {
		b.t.Errorf("%s: it is false that %s", what, expression)
	}
}

// expectFits checks that the page is not wider than the screen.
func (b *browser) expectFits(what string) {
	b.t.Helper()
	var wide []string
	b.eval(`(() => {
		const width = document.documentElement.clientWidth;
		if (document.documentElement.scrollWidth <= width) return [];
		return [...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > width + 0.5 && !e.closest(".scroll")).map((e) => e.outerHTML.slice(0, 120));
	})()`, &wide)
	if len(wide) > 0 {
		b.t.Errorf("%s: wider than the screen: %q", what, wide[:min(len(wide), 3)])
	}
}

// contrastOf returns the texts whose contrast to what is behind them is below that
// of WCAG AA, and how many texts there are.
const contrastOf = `(() => {
	const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
	const rgba = (color) => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1); return canvas.getImageData(0, 0, 1, 1).data; };
	const luminance = ([r, g, b]) => [r, g, b].map((c) => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4).reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
	const behind = (e) => { for (; e; e = e.parentElement) { const c = rgba(getComputedStyle(e).backgroundColor); if (c[3] === 255) return c; } return [255, 255, 255]; };
	const bad = new Map();
	let texts = 0;
	for (const e of document.querySelectorAll("body *")) {
		const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
		if (!own || !e.getClientRects().length || e.closest("script, noscript, title, option, .skip")) continue;
		texts++;
		const style = getComputedStyle(e);
		const [x, y] = [luminance(rgba(e instanceof SVGElement ? style.fill : style.color)), luminance(behind(e))].sort((a, b) => b - a);
		const ratio = (x + 0.05) / (y + 0.05);
		if (ratio < 4.5) bad.set(e.tagName + "." + (e.getAttribute("class") || ""), ratio.toFixed(2) + " " + e.textContent.slice(0, 30));
	}
	return { texts, bad: [...bad].map(String) };
})()`

func (b *browser) expectContrast(what string) {
	b.t.Helper()
	var got struct {
		Texts int
		Bad   []string
	}
	b.eval(contrastOf, &got)
	if got.Texts < 20 || len(got.Bad) > 0 {
		b.t.Errorf("%s: of %d texts these are hard to read: %q", what, got.Texts, got.Bad)
	}
}

// choose sets a control as a reader does.
func (b *browser) choose(id, value string) {
	b.t.Helper()
	b.eval(fmt.Sprintf(`(() => { const e = document.getElementById(%q); e.value = %q; e.dispatchEvent(new Event("input", { bubbles: true })); e.dispatchEvent(new Event("change", { bubbles: true })); })()`, id, value), nil)
	b.settle()
}

// luminance of the page's background, 0 to 255.
func (b *browser) background() (light int) {
	b.eval(`getComputedStyle(document.body).backgroundColor.match(/\d+/g).slice(0, 3).reduce((sum, c) => sum + Number(c), 0) / 3 | 0`, &light)
	return light
}

func TestPageInBrowser(t *testing.T) {
	t.Parallel()
	b := quietBrowser(t)
	path := pageFile(t, exampleRuns(140), exampleOptions())
	for _, screen := range []struct {
		name, scheme  string
		width, height int
	}{{"light", "light", 1360, 900}, {"dark", "dark", 1360, 900}, {"middle", "light", 900, 900}, {"phone", "light", 390, 844}, {"phone-dark", "dark", 390, 844}} {
		b.screen(screen.width, screen.height, screen.scheme)
		b.open(path)
		b.screenshot("list-"+screen.name, true)
		b.expectFits(screen.name)
		b.expectContrast(screen.name)
		if light := b.background(); light > 60 == (screen.scheme == "dark") {
			t.Errorf("%s: the background is %d of 255", screen.name, light)
		}
		b.expect(screen.name, `document.querySelectorAll("#time-chart .bar").length === 140`)
		b.expect(screen.name, `[...document.querySelectorAll("#time-chart .bar")].every((e) => { const r = e.getBoundingClientRect(); return r.width >= 2 && r.right <= innerWidth; })`)

		// A failed run, with all that it holds open.
		b.eval(`location.hash = [...document.querySelectorAll("#table tbody tr")].find((r) => r.querySelector(".failed")).querySelector("a").getAttribute("href")`, nil)
		b.settle()
		b.openAll()
		b.settle()
		b.screenshot("run-"+screen.name, true)
		b.expectFits(screen.name + ", a run")
		b.expectContrast(screen.name + ", a run")
		b.expect(screen.name, `document.querySelectorAll("#run .chart .bar").length === 6`)
	}
}

func TestPageWithoutRunsInBrowser(t *testing.T) {
	t.Parallel()
	b := quietBrowser(t)
	for n := range 2 {
		b.screen(390, 844, "light")
		b.open(pageFile(t, exampleRuns(n), exampleOptions()))
		b.screenshot(fmt.Sprintf("of-%d", n), true)
		b.expectFits(fmt.Sprintf("%d runs", n))
	}
}

func TestRunOpensByMouseAndKeyboard(t *testing.T) {
	t.Parallel()
	b := quietBrowser(t)
	b.open(pageFile(t, exampleRuns(30), exampleOptions()))
	b.expect("at first", `!document.querySelector("#list").hidden && document.querySelector("#run").hidden`)

	b.click("#table tbody tr:nth-child(3) a")
	b.expect("after a click", `document.querySelector("#list").hidden && document.activeElement === document.querySelector("#run h1")`)
	b.expect("after a click", `document.querySelector(".message .body").textContent.startsWith("Users who sign in")`)
	b.expect("tools are closed", `!document.querySelector("#run .tool_call details").open`)
	b.eval(`document.querySelector("#run .tool_call summary").focus()`, nil)
	b.key("Enter", "\r")
	b.expect("after Enter on a tool call", `document.querySelector("#run .tool_call details").open && document.querySelector("#run .tool_call .inside").textContent.includes("internal/web/login.go:41")`)
	b.click("#run .chart .bar:last-of-type")
	b.expect("after a click in the chart", `document.activeElement.tagName === "SUMMARY" && document.activeElement.parentNode.open`)
	b.eval(`history.back()`, nil)
	b.settle()
	b.expect("after going back", `!document.querySelector("#list").hidden && document.activeElement.closest("tr") === document.querySelector("#table tbody tr:nth-child(3)")`)

	b.eval(`[...document.querySelectorAll("#table tbody tr")].find((r) => r.nextSibling.dataset.depth).querySelector("a").focus()`, nil)
	b.key("Tab", "")
	b.expect("after Tab", `document.activeElement.closest("tr").dataset.depth`)
	b.key("Enter", "\r")
	b.expect("after Enter", `document.querySelector("#list").hidden && !document.querySelector("#run").hidden`)
	b.expect("linked runs", `document.querySelector("#run .tree a:not([aria-current])")`)
	var before, after string
	b.eval(`document.querySelector("#run .about").textContent`, &before)
	b.click("#run .tree a:not([aria-current])")
	b.eval(`document.querySelector("#run .about").textContent`, &after)
	if before == after {
		t.Error("a linked run does not open")
	}
}

func TestTableSearchesAndSorts(t *testing.T) {
	t.Parallel()
	b := quietBrowser(t)
	b.open(pageFile(t, exampleRuns(700), exampleOptions()))
	b.expect("at first", `document.querySelectorAll("#table tbody tr").length === 50`)
	b.click("#more button")
	b.expect("after more", `document.querySelectorAll("#table tbody tr").length === 300`)

	b.eval(`document.querySelector("#filter-text").focus()`, nil)
	b.call("Input.insertText", `{"text":"LEDGER usage"}`, nil)
	b.settle()
	b.expect("searched", `[...document.querySelectorAll("#table tbody tr")].every((r) => r.textContent.includes("ledger/") && r.textContent.includes("usage limit"))`)
	b.choose("filter-text", "nothing is called this")
	b.expect("nothing found", `document.querySelector("#table tbody").textContent.includes("No run matches")`)
	b.choose("filter-text", "")

	b.eval(`document.querySelector("th[data-sort=input] button").focus()`, nil)
	b.key("Enter", "\r")
	var inputs []int64
	read := `[...document.querySelectorAll("#table tbody .c-input")].map((c) => Number(c.textContent.replaceAll(",", "")))`
	b.eval(read, &inputs)
	if !slices.IsSortedFunc(inputs, func(x, y int64) int { return int(y - x) }) || inputs[0] == 0 {
		t.Errorf("not sorted: %d", inputs[:10])
	}
	b.expect("sorted", `document.querySelector("th[data-sort=input]").getAttribute("aria-sort") === "descending"`)
	b.choose("filter-order", "duration up")
	b.choose("filter-status", "completed")
	b.expect("sorted", `document.querySelector("th[data-sort=duration]").getAttribute("aria-sort") === "ascending"`)

	b.choose("time-group", "task")
	b.expect("grouped", `document.querySelector("#time-chart").textContent.includes("shop/sort-imports")`)
	b.choose("time-span", "86400000")
	b.expect("the last day", `document.querySelectorAll("#time-chart .bar").length < 200`)
}

// What agents say stays text in a browser, in every place of the page.
func TestHostileTextStaysText(t *testing.T) {
	t.Parallel()
	b := quietBrowser(t)
	b.screen(390, 844, "light")
	attacks := append(slices.Clone(hostile),
		`<img src=x onerror="window.zapped=1">`, `<script>window.zapped=1</script>`, `<svg onload="window.zapped=1">`, `<a href="javascript:window.zapped=1">x</a>`,
		`<iframe src="http://127.0.0.1:9/">`, `<link rel=stylesheet href="http://127.0.0.1:9/">`, `<base href="http://127.0.0.1:9/">`, `<meta http-equiv=refresh content="0;url=http://127.0.0.1:9/">`,
		"```\n<script>window.zapped=1</script>\n```", "[x](javascript:window.zapped=1) ![x](http://127.0.0.1:9/x.png) <http://127.0.0.1:9/> [x]: http://127.0.0.1:9/", "# <img src=x onerror=window.zapped=1>\n> <script>window.zapped=1</script>\n\n| <b>x</b> | `<b>` |\n| --- | --- |\n| ![](http://127.0.0.1:9/y.png) | **<i onclick=zap>** |",
		"~~~<script>\n</code></pre><script>window.zapped=1</script>", "&lt;img src=x onerror=window.zapped=1&gt; \\<script>", `{"__proto__":{"class":"zap"},"command":"\u202e<img src=x onerror=window.zapped=1>"}`, strings.Repeat("W", 5000),
		strings.Repeat("\n\u202e<", 5000))
	var list []runs.Info
	for _, text := range attacks {
		run := hostileRun(text)
		run.Status = runs.StatusFailed
		list = append(list, run)
	}
	b.open(pageFile(t, list, Options{
		MaxConversations: 20_000_000,
		Open:             func(run *runs.Run, _ string) (io.ReadCloser, error) { return textFile(run.Error), nil },
		Messages: func(run *runs.Run) ([]runs.Message, error) {
			return []runs.Message{{Type: run.Error, Body: run.Error}, {Run: run.RunID, Type: run.Error, Body: run.Error}}, errors.New(run.Error)
		},
		Events: func(run *runs.Run) iter.Seq2[runs.Event, error] {
			raw := agent.Event{Kind: agent.KindToolCall, Tool: &agent.Tool{ID: "raw", Name: run.Error, Input: json.RawMessage(run.Error)}}
			return func(yield func(runs.Event, error) bool) {
				_ = yield(runs.Event{Time: madeAt, Event: raw}, nil)
				hostileEntries(run.Error)(yield)
			}
		},
		Command: func(run *runs.Run) string { return run.RunID },
	}))
	b.expectFits("the list")
	elements := `[...new Set([...document.querySelectorAll("body *")].map((e) => e.localName))].sort().join(" ")`
	var names string
	b.eval(elements, &names)
	for _, group := range []string{"runtime", "project", "task"} {
		b.eval(fmt.Sprintf(`(() => { const e = document.getElementById("time-group"); e.value = %q; e.dispatchEvent(new Event("input", { bubbles: true })); })()`, group), nil)
	}
	var keys []string
	b.eval(`[...document.querySelectorAll("#table tbody a")].map((a) => a.getAttribute("href"))`, &keys)
	if len(keys) != len(attacks) {
		t.Fatalf("%d rows for %d runs", len(keys), len(attacks))
	}
	for _, key := range keys {
		b.eval(fmt.Sprintf(`location.hash = %q`, key), nil)
		b.settle()
		b.expect(key, `!document.querySelector("#run").hidden && document.querySelectorAll("#run .item").length > 8`)
		b.openAll()
		b.expectFits(key)
		b.expect(key, `!/[\u0000-\u0008\u001b\u202a-\u202e\u2066-\u2069]/.test(document.querySelector("#run").textContent)`)
		var more string
		b.eval(elements, &more)
		names += " " + more
	}
	known := strings.Fields("a blockquote button circle code dd del details div dl dt em fieldset footer form g h1 h2 h3 h4 h5 h6 header hr i input ins kbd label legend li line main nav noscript ol option p pre rect s script section select span strong summary svg table tbody td text tfoot th thead time title tr tspan ul")
	for _, name := range strings.Fields(names) {
		if !slices.Contains(known, name) {
			t.Errorf("the page has an element %s", name)
		}
	}
	b.expect("in the end", `window.zapped === undefined && ({}).class === undefined`)
	b.expect("in the end", `[...document.querySelectorAll("a")].every((a) => a.getAttribute("href").startsWith("#"))`)
}

// A run whose conversation is too large says so, and what shows it.
func TestTooLargeConversationNamesItsCommand(t *testing.T) {
	t.Parallel()
	b := quietBrowser(t)
	b.screen(390, 844, "light")
	o := exampleOptions()
	o.MaxConversations = 300 // a tenth of it is less than any entry takes
	b.open(pageFile(t, exampleRuns(3), o))
	b.expectFits("the list")
	b.expect("the list", `document.querySelector("#runs .foot").textContent.includes("3 conversations are too large for it; a command shows each")`)
	b.expect("the list", `document.querySelector("#runs .foot code + button").textContent === "Copy"`)
	b.click("#table tbody a")
	b.expect("the run", `document.querySelector("#run .conversation").textContent.includes("It is too large for this page.This command shows it: bus-agent runs tail")`)
}

// Without JavaScript there are the summary and the whole table.
func TestPageWithoutScript(t *testing.T) {
	t.Parallel()
	b := startBrowser(t)
	b.screen(390, 844, "light") // needs scripts to wait
	b.call("Emulation.setScriptExecutionDisabled", `{"value":true}`, nil)
	b.openPlain(pageFile(t, exampleRuns(140), exampleOptions()))
	b.screenshot("no-script", true)
	b.expectFits("without a script")
	b.expect("without a script", `[...document.querySelectorAll("#table tbody tr")].filter((r) => r.getClientRects().length).length === 140`)
	b.expect("without a script", `!document.querySelector("#filter").getClientRects().length && document.querySelector("noscript").getClientRects().length`)
}

// The largest page is loaded in reasonable time.
func TestLargestPageInBrowser(t *testing.T) {
	t.Parallel()
	b := quietBrowser(t)
	b.screen(1360, 900, "dark")
	b.open(pageFile(t, exampleRuns(DefaultRuns), exampleOptions()))
	b.screenshot("largest", false)
	b.expect("the largest page", `document.querySelectorAll("#time-chart .bar").length > 4900`)
	b.eval(`location.hash = document.querySelector("#table tbody a").getAttribute("href")`, nil)
	b.settle()
	b.expect("the largest page", `document.querySelectorAll("#run .item").length > 10`)
}

// On paper is the table of all runs, as a table.
func TestPageOnPaper(t *testing.T) {
	t.Parallel()
	b := startBrowser(t)
	b.screen(1000, 900, "dark")
	b.open(pageFile(t, exampleRuns(140), exampleOptions()))
	b.call("Emulation.setEmulatedMedia", `{"media":"print"}`, nil)
	b.eval(`dispatchEvent(new Event("beforeprint"))`, nil)
	b.settle()
	b.screenshot("paper", true)
	if light := b.background(); light < 200 {
		t.Errorf("the background is %d of 255", light)
	}
	b.expect("on paper", `document.querySelectorAll("#table tbody tr").length === 140 && getComputedStyle(document.querySelector("#table tbody tr")).display === "table-row" && !document.querySelector("#filter").getClientRects().length`)
	b.expect("on paper", `[...document.querySelectorAll("#table tbody td")].every((c) => c.scrollWidth <= c.clientWidth + 8 || c.classList.contains("c-task"))`)
}
