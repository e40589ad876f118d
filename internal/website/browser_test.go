//go:build acceptance

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/network"
	protocol "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// patience bounds how long the browser may take for one test.
const patience = 10 * time.Minute

// A browser is a headless Chromium with one page of a site that is opened from its files.
type browser struct {
	t   *testing.T
	ctx context.Context
	out string

	mu         sync.Mutex
	complaints []string
}

// openBrowser starts a browser, which ends with the test. The test fails if a page makes
// the browser complain or asks for anything but files of the site.
func openBrowser(t *testing.T, out string) *browser {
	t.Helper()
	program := os.Getenv("BUS_AGENT_CHROMIUM")
	if program == "" {
		t.Fatal("BUS_AGENT_CHROMIUM names no browser; make docs-test sets it")
	}
	limited, stop := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	t.Cleanup(stop)
	allocator, cancel := chromedp.NewExecAllocator(limited, chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.UserDataDir(t.TempDir()), chromedp.Env("TZ=UTC", "LANG=C.UTF-8"))
	t.Cleanup(cancel)
	ctx, end := chromedp.NewContext(allocator)
	t.Cleanup(end)
	b := &browser{t: t, ctx: ctx, out: out}
	b.run(chromedp.Navigate("about:blank"))
	go b.watchConsole(chromedp.Console(ctx))
	go b.watchRequests(chromedp.Events(ctx, network.RequestWillBeSent))
	t.Cleanup(b.expectQuiet)
	return b
}

func (b *browser) watchConsole(messages iter.Seq2[chromedp.ConsoleMessage, error]) {
	for m, err := range messages {
		if err != nil {
			return // the browser has ended
		}
		b.complain(fmt.Sprintf("%s: %s %s", m.Type, m.Text, m.URL))
	}
}

func (b *browser) watchRequests(requests iter.Seq2[network.EventRequestWillBeSent, error]) {
	for r, err := range requests {
		if err != nil {
			return
		}
		if !strings.HasPrefix(r.Request.URL, "file://"+b.out+"/") && r.Request.URL != "data:," {
			b.complain("it asked for " + r.Request.URL)
		}
	}
}

func (b *browser) complain(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.complaints = append(b.complaints, text)
}

func (b *browser) expectQuiet() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, complaint := range b.complaints {
		b.t.Errorf("a page made the browser complain: %.300s", complaint)
	}
}

func (b *browser) run(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

func (b *browser) open(name string) {
	b.t.Helper()
	b.run(chromedp.Navigate("file://" + filepath.Join(b.out, name)))
}

// until waits until an expression is true.
func (b *browser) until(expression string) {
	b.t.Helper()
	if _, err := chromedp.Run(b.ctx, chromedp.Poll[bool]("Boolean("+expression+")", chromedp.WithPollingTimeout(30*time.Second))); err != nil {
		b.t.Fatalf("%v: it did not become true that %s", err, expression)
	}
}

var yes = true

// eval evaluates an expression, or what it promises, in the page.
func (b *browser) eval(expression string, into any) {
	b.t.Helper()
	text, err := chromedp.Run(b.ctx, chromedp.Evaluate[[]byte](expression, func(p *runtime.EvaluateParams) { p.AwaitPromise = &yes }))
	if err == nil && into != nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		b.t.Fatalf("%.300s: %v", expression, err)
	}
}

func (b *browser) expect(what, expression string) {
	b.t.Helper()
	var got bool
	if b.eval("Boolean("+expression+")", &got); !got {
		b.t.Errorf("%s: it is false that %s", what, expression)
	}
}

func (b *browser) screen(width, height int64, scheme string) {
	b.t.Helper()
	b.run(func(ctx context.Context, t *chromedp.Target) (none chromedp.Void, err error) {
		if _, err = cdp.Call(ctx, t, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: height, DeviceScaleFactor: 1, Mobile: width < 500}); err == nil {
			_, err = cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
		}
		return none, err
	})
}

// key presses a key. Unlike chromedp.KeyEvent it sends the text with the key, so that a page
// that handles the key keeps the text from the field.
func (b *browser) key(name, text string, code int64) {
	b.t.Helper()
	b.run(func(ctx context.Context, t *chromedp.Target) (none chromedp.Void, err error) {
		if _, err = cdp.Call(ctx, t, input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: "keyDown", Key: name, Text: text, WindowsVirtualKeyCode: code}); err == nil {
			_, err = cdp.Call(ctx, t, input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: "keyUp", Key: name, WindowsVirtualKeyCode: code})
		}
		return none, err
	})
}

// screenshot keeps a picture of the page where BUS_AGENT_SCREENSHOTS says.
func (b *browser) screenshot(name string) {
	b.t.Helper()
	dir := os.Getenv("BUS_AGENT_SCREENSHOTS")
	if dir == "" {
		return
	}
	b.run(func(ctx context.Context, t *chromedp.Target) (none chromedp.Void, err error) {
		picture, err := cdp.Call(ctx, t, protocol.CaptureScreenshot, protocol.CaptureScreenshotParams{})
		if err != nil {
			return none, err
		}
		return none, os.WriteFile(filepath.Join(dir, name+".png"), picture.Data, 0o600)
	})
}

// expectAccessible checks the page with axe, and that it is not wider than the screen. axe
// preloads nothing, because the browser lets no script read a stylesheet that is a file.
func (b *browser) expectAccessible(what string) {
	b.t.Helper()
	axe, err := os.ReadFile(os.Getenv("BUS_AGENT_AXE"))
	if err != nil {
		b.t.Fatalf("BUS_AGENT_AXE: %v; make axe installs it", err)
	}
	b.eval(string(axe)+"; 0", nil)
	var violations []struct {
		ID, Help string
		Nodes    []struct{ HTML, FailureSummary string }
	}
	b.eval(`axe.run(document, { resultTypes: ["violations"], preload: false }).then((r) => r.violations)`, &violations)
	for _, v := range violations {
		b.t.Errorf("%s: axe: %s: %s (%d): %.300s %.300s", what, v.ID, v.Help, len(v.Nodes), v.Nodes[0].HTML, v.Nodes[0].FailureSummary)
	}
	var wide []string
	b.eval(`(() => {
		const width = document.documentElement.clientWidth;
		if (document.documentElement.scrollWidth <= width) return [];
		return [...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > width + 0.5 && !e.closest(".scroll, pre")).map((e) => e.outerHTML.slice(0, 160));
	})()`, &wide)
	b.expect(what, `document.documentElement.scrollWidth <= innerWidth`)
	if len(wide) > 0 {
		b.t.Errorf("%s: wider than the screen: %q", what, wide[:min(len(wide), 3)])
	}
}

func TestPagesAreAccessibleOnEveryScreen(t *testing.T) {
	t.Parallel()
	s, out := realSite(t)
	b := openBrowser(t, out)
	for _, source := range slices.Sorted(maps.Keys(s.pages)) {
		name := s.pages[source].Out
		for _, width := range []int64{1400, 390} {
			for _, scheme := range []string{"light", "dark"} {
				what := fmt.Sprintf("%s, %d, %s", name, width, scheme)
				b.screen(width, 844, scheme)
				b.open(name)
				b.screenshot(strings.NewReplacer("/", "-", ", ", "-").Replace(what))
				b.expectAccessible(what)
				var light int
				b.eval(`getComputedStyle(document.body).backgroundColor.match(/\d+/g).slice(0, 3).reduce((sum, c) => sum + Number(c), 0) / 3 | 0`, &light)
				if light > 60 == (scheme == "dark") {
					t.Errorf("%s: the background is %d of 255", what, light)
				}
			}
		}
	}
}

// search types a query as a reader does and waits for the results.
func (b *browser) search(query string) {
	b.t.Helper()
	b.eval(fmt.Sprintf(`(() => { const e = document.getElementById("words"); e.focus(); e.value = %q; e.dispatchEvent(new Event("input", { bubbles: true })); document.getElementById("count").textContent = ""; })()`, query), nil)
	b.until(`document.getElementById("count").textContent`)
}

func TestSearchFindsSections(t *testing.T) {
	t.Parallel()
	_, out := realSite(t)
	b := openBrowser(t, out)
	for _, width := range []int64{1400, 390} {
		b.screen(width, 844, "light")
		b.open("docs/runtimes/claude.html")
		b.expect("at first", `!window.searchIndex && document.getElementById("found").hidden && !document.getElementById("search").hidden`)
		b.search("what is kept")
		b.expect("the first result", `document.querySelector("#results b").textContent === "What is kept" && document.querySelector("#results a").href.endsWith("/docs/runs.html#what-is-kept")`)
		b.screenshot(fmt.Sprintf("search-%d", width))
		b.expectAccessible(fmt.Sprintf("the results at %d", width))
		b.search("RECORDS output.md masked")
		b.expect("words in any case and order", `document.querySelectorAll("#results li").length > 0 && document.querySelectorAll("#results mark").length > 0`)
		b.search("zzyzx")
		b.expect("without a match", `document.getElementById("count").textContent === "No results" && !document.querySelector("#results li")`)
		b.search("<img src=x onerror=window.zapped=1>")
		b.expect("HTML in the query", `!window.zapped && !document.querySelector("#search img")`)
	}

	// By keyboard: / goes to the field, the arrows to the results, Escape back.
	b.open("docs/cli.html")
	b.key("/", "/", 191)
	b.expect("after /", `document.activeElement.id === "words" && document.activeElement.value === ""`)
	b.run(chromedp.KeyEvent("cooldown"))
	b.until(`document.querySelectorAll("#results a").length > 1`)
	b.key("ArrowDown", "", 40)
	b.expect("after the arrow", `document.activeElement === document.querySelector("#results a")`)
	b.key("Escape", "", 27)
	b.expect("after Escape", `document.activeElement.id === "words" && document.getElementById("found").hidden`)
	b.search("cooldown")
	b.eval(`document.addEventListener("click", (e) => { window.opened = e.target.closest("a").href; e.preventDefault(); }, true)`, nil)
	b.key("Enter", "\r", 13)
	b.expect("after Enter", `window.opened?.endsWith("/docs/selection.html#cooldown")`)
}

// Every result leads to a heading that exists.
func TestResultsLeadToHeadings(t *testing.T) {
	t.Parallel()
	s, out := realSite(t)
	b := openBrowser(t, out)
	b.open("index.html")
	b.search("the")
	var pages map[string][]string
	b.eval(`Object.fromEntries(searchIndex.map((p) => [p.page, p.sections.map((s) => s.anchor)]))`, &pages)
	if len(pages) != len(s.pages) {
		t.Errorf("the search has %d pages of %d", len(pages), len(s.pages))
	}
	for _, p := range s.pages {
		for _, anchor := range pages[p.Out] {
			if anchor != "" && !p.anchors[anchor] {
				t.Errorf("%s has no heading #%s", p.Out, anchor)
			}
		}
	}
}

// Without scripts the pages and the menu are complete, and no search is offered.
func TestPagesWithoutScript(t *testing.T) {
	t.Parallel()
	_, out := realSite(t)
	b := openBrowser(t, out)
	b.screen(390, 844, "light")
	b.run(func(ctx context.Context, t *chromedp.Target) (none chromedp.Void, err error) {
		_, err = cdp.Call(ctx, t, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
		return none, err
	})
	b.open("docs/cli.html")
	b.expect("without a script", `!document.getElementById("search").getClientRects().length && document.querySelectorAll("#menu a").length > 30 && document.querySelector("#run")`)
}
