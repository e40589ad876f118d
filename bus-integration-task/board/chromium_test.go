//go:build acceptance

package board

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/busdk/bus-integration-task/task"
)

// patience bounds how long the browser may take for one test.
const patience = 2 * time.Minute

// A browser is a headless Chromium with one page.
type browser struct {
	t   *testing.T
	ctx context.Context

	mu         sync.Mutex
	complaints []string // messages of the console, exceptions and requests elsewhere
	site       string   // address that requests may go to
}

// openBrowser starts a browser, which ends with the test, and opens a page. The test
// fails if the page makes the browser complain or asks for anything from elsewhere.
func openBrowser(t *testing.T, address string, width, height int64, scheme string) *browser {
	t.Helper()
	program := os.Getenv("BUS_AGENT_CHROMIUM")
	if program == "" {
		t.Fatal("BUS_AGENT_CHROMIUM: not set; name a Chromium, for example the one that make chromium prints")
	}
	limited, stop := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	t.Cleanup(stop)
	allocator, cancel := chromedp.NewExecAllocator(limited, chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.UserDataDir(t.TempDir()), chromedp.Env("TZ=UTC", "LANG=C.UTF-8"))
	t.Cleanup(cancel)
	ctx, end := chromedp.NewContext(allocator)
	t.Cleanup(end)
	b := &browser{t: t, ctx: ctx, site: address[:strings.Index(address, token)]}
	b.run(chromedp.Navigate("about:blank"))
	go b.watchConsole(chromedp.Console(ctx))
	go b.watchRequests(chromedp.Events(ctx, network.RequestWillBeSent))
	b.screen(width, height, scheme)
	b.run(chromedp.Navigate(address))
	b.until(`document.querySelector("#link").textContent === "Live" || document.querySelector("#board").hidden`)
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
		if !strings.HasPrefix(r.Request.URL, b.site) {
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
		b.t.Errorf("the page made the browser complain: %.300s", complaint)
	}
}

// forgive forgets the complaints about requests that failed, after a test made them fail.
func (b *browser) forgive() {
	b.mu.Lock()
	defer b.mu.Unlock()
	kept := b.complaints[:0]
	for _, complaint := range b.complaints {
		if !strings.Contains(complaint, "Failed to load resource") {
			kept = append(kept, complaint)
		}
	}
	b.complaints = kept
}

func (b *browser) run(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

// until waits until an expression is true.
func (b *browser) until(expression string) {
	b.t.Helper()
	if _, err := chromedp.Run(b.ctx, chromedp.Poll[bool]("Boolean("+expression+")", chromedp.WithPollingTimeout(30*time.Second))); err != nil {
		body, _ := chromedp.Run(b.ctx, chromedp.Evaluate[string](`document.body.innerText.slice(0, 1500)`))
		b.t.Fatalf("%v: it did not become true that %s; the page shows\n%s", err, expression, body)
	}
}

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

var yes = true

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

// screenshot keeps a picture of the page where BUS_AGENT_SCREENSHOTS says.
func (b *browser) screenshot(name string) {
	b.t.Helper()
	dir := os.Getenv("BUS_AGENT_SCREENSHOTS")
	if dir == "" {
		return
	}
	var height float64
	b.eval(`Math.min(document.documentElement.scrollHeight, 4000)`, &height)
	var width float64
	b.eval(`document.documentElement.clientWidth`, &width)
	b.run(func(ctx context.Context, t *chromedp.Target) (none chromedp.Void, err error) {
		picture, err := cdp.Call(ctx, t, page.CaptureScreenshot, page.CaptureScreenshotParams{CaptureBeyondViewport: &yes, Clip: &page.Viewport{Width: width, Height: height, Scale: 1}})
		if err != nil {
			return none, err
		}
		return none, os.WriteFile(filepath.Join(dir, name+".png"), picture.Data, 0o600)
	})
}

// expectAccessible checks the page with axe, and that it is not wider than the screen.
func (b *browser) expectAccessible(what string) {
	b.t.Helper()
	file := os.Getenv("BUS_AGENT_AXE")
	axe, err := os.ReadFile(file)
	if err != nil {
		b.t.Fatalf("BUS_AGENT_AXE: %v; make axe installs it", err)
	}
	b.eval(string(axe)+"; 0", nil)
	var violations []struct {
		ID, Help string
		Nodes    []struct{ HTML, FailureSummary string }
	}
	b.eval(`axe.run(document, { resultTypes: ["violations"] }).then((r) => r.violations)`, &violations)
	for _, v := range violations {
		b.t.Errorf("%s: axe: %s: %s (%d): %.300s %.300s", what, v.ID, v.Help, len(v.Nodes), v.Nodes[0].HTML, v.Nodes[0].FailureSummary)
	}
	var wide []string
	b.eval(`(() => {
		const width = document.documentElement.clientWidth;
		if (document.documentElement.scrollWidth <= width) return [];
		return [...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > width + 0.5 && !e.closest(".scroll, pre")).map((e) => e.outerHTML.slice(0, 160));
	})()`, &wide)
	if len(wide) > 0 {
		b.t.Errorf("%s: wider than the screen: %q", what, wide[:min(len(wide), 3)])
	}
}

func TestPageIsAccessibleOnEveryScreen(t *testing.T) {
	t.Parallel()
	address, _ := serve(t, Options{Log: example()})
	b := openBrowser(t, address, 1360, 900, "light")
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{1360, 900, 390} {
			name := fmt.Sprintf("%s-%d", scheme, width)
			b.screen(width, 844, scheme)
			b.eval(`location.hash = "#"`, nil)
			b.until(`document.querySelectorAll("#tasks-body tr").length === 29 && document.querySelectorAll("#approvals-list .ask").length === 3`)
			b.screenshot("board-" + name)
			b.expectAccessible(name)
			for _, ref := range []string{"busdk#82.1", "busdk#95.1"} {
				b.eval(fmt.Sprintf(`location.hash = "#task-" + encodeURIComponent(%q)`, ref), nil)
				b.until(`document.querySelectorAll("#one .item").length > 4`)
				b.eval(`[...document.querySelectorAll("#one details")].forEach((d) => { d.open = true; })`, nil)
				if ref == "busdk#82.1" {
					b.until(`document.querySelectorAll("#one .diff ins").length === 3`)
				}
				b.screenshot("task-" + strings.Trim(ref, "busdk#") + "-" + name)
				b.expectAccessible(name + ", " + ref)
			}
		}
	}
}

func TestUpdatesArriveInPlace(t *testing.T) {
	t.Parallel()
	m := example()
	address, _ := serve(t, Options{Log: m})
	b := openBrowser(t, address, 1360, 900, "light")
	b.until(`document.querySelectorAll("#running-list .turn").length === 5`)
	b.eval(`window.unchanged = document.querySelector("#running-list .turn"); window.shifts = 0;
		new PerformanceObserver((list) => { for (const e of list.getEntries()) { window.shifts += e.value; (window.moved ??= []).push(...e.sources.filter((s) => !s.node?.parentNode?.matches(".live-text, .live-text > div")).map((s) => (s.node?.outerHTML || s.node?.data || "").slice(0, 120))); } }).observe({ type: "layout-shift" });
		document.querySelector("#running-list .turn a").focus(); 0`, nil)
	for i := range 40 {
		m.add(task.Message, task.Payload{WorkRef: "busdk#91.1", WorkerID: "worker-3", AttemptID: "busdk#91.1/worker-3", Text: fmt.Sprintf("step %d\nof many", i)})
	}
	b.until(`document.querySelector("#running-list .live-text").textContent.includes("step 39")`)
	b.expect("the node is the same, with its focus", `window.unchanged === document.querySelector("#running-list .turn") && window.unchanged.contains(document.activeElement)`)
	var moved []string
	if b.eval(`window.moved || []`, &moved); len(moved) > 0 {
		t.Errorf("these have moved: %q", moved)
	}
	m.create("busdk#200.1", "bus-new", "A task that arrives")
	b.until(`document.querySelector("#tasks-body tr a").textContent === "A task that arrives" && document.querySelector("#queues-body").textContent.includes("bus-new")`)

	// The page of a task gets its new lines, and keeps what is open and what is written.
	b.eval(`location.hash = "#task-" + encodeURIComponent("busdk#91.1")`, nil)
	b.until(`document.querySelectorAll("#one .item").length === 45`)
	b.run(chromedp.SendKeys(chromedp.CSS("#say-text"), "half a mess"))
	m.add(task.Message, task.Payload{WorkRef: "busdk#91.1", WorkerID: "worker-3", AttemptID: "busdk#91.1/worker-3", Text: "one more"})
	b.until(`document.querySelectorAll("#one .item").length === 46`)
	b.expect("the message stays", `document.activeElement.id === "say-text" && document.activeElement.value === "half a mess"`)
	end := task.Payload{WorkRef: "busdk#91.1", WorkerID: "worker-3", AttemptID: "busdk#91.1/worker-3", Text: "finished", Attachments: []task.Attachment{{Path: "a.diff", MediaType: "text/x-diff", Content: exampleDiff}}}
	m.add(task.Done, end)
	b.until(`document.querySelector("#one .diff, #one details.block") && document.querySelector("#one .problem.done").textContent === "finished"`)
	b.expect("the diff is collapsed", `!document.querySelector("#one details.block").open && !document.querySelector("#one .diff")`)
	b.run(chromedp.Click(chromedp.CSS("#one details.block summary")))
	b.until(`document.querySelectorAll("#one .diff ins").length === 3 && document.querySelectorAll("#one .diff del").length === 1`)
}

func TestApprovalIsAnsweredByClick(t *testing.T) {
	t.Parallel()
	m := example()
	address, _ := serve(t, Options{Log: m, Sender: "me"})
	b := openBrowser(t, address, 390, 844, "dark")
	b.until(`document.querySelectorAll("#approvals-list .ask").length === 3 && document.title.startsWith("(3)")`)
	b.run(chromedp.Click(chromedp.CSS(`#approvals-list .ask:first-child [data-decision=accept_for_session]`)))
	b.until(`document.querySelectorAll("#approvals-list .ask").length === 2`)
	got := m.last()
	if got.Name != task.ApprovalAnswered || got.WorkRef != "busdk#94.1" || got.ApprovalID != "13" || got.Decision != "accept_for_session" || got.Sender != "me" {
		t.Errorf("the event is %+v", got)
	}
	// By keyboard, on the page of the task.
	b.eval(`location.hash = "#task-" + encodeURIComponent("busdk#95.1")`, nil)
	b.until(`document.querySelector("#one .ask [data-decision=decline]")`)
	b.eval(`document.querySelector("#one .ask [data-decision=decline]").focus()`, nil)
	b.run(chromedp.KeyEvent("\r"))
	b.until(`!document.querySelector("#one .ask")`)
	if got := m.last(); got.ApprovalID != "14" || got.Decision != "decline" {
		t.Errorf("the event is %+v", got)
	}
}

func TestTaskIsActedOn(t *testing.T) {
	t.Parallel()
	m := example()
	address, _ := serve(t, Options{Log: m})
	b := openBrowser(t, address, 1360, 900, "light")
	open := func(ref string) {
		b.eval(fmt.Sprintf(`location.hash = "#task-" + encodeURIComponent(%q)`, ref), nil)
		b.until(fmt.Sprintf(`document.querySelector("#one .ref")?.textContent === %q`, ref))
	}
	published := func(name, text string) {
		t.Helper()
		if got := m.last(); got.Name != name || got.Text != text {
			t.Errorf("the event is %+v, want %s %q", got, name, text)
		}
	}
	open("busdk#91.1")
	b.run(chromedp.SendKeys(chromedp.CSS("#say-text"), "use blue"), chromedp.Click(chromedp.CSS("#one .say")))
	b.until(`document.querySelector("#say-text").value === "" && [...document.querySelectorAll("#one .item")].some((e) => e.textContent.includes("use blue"))`)
	published(task.Message, "use blue")
	b.run(chromedp.Click(chromedp.CSS("#one .cancel")), chromedp.Click(chromedp.CSS("#one .sure")))
	b.until(`document.querySelector("#one .status").textContent === "canceled"`)
	published(task.Canceled, "")
	b.run(chromedp.SendKeys(chromedp.CSS("#say-text"), "now red"), chromedp.Click(chromedp.CSS("#one .reopen")))
	b.until(`document.querySelector("#one .status").textContent === "open"`)
	published(task.Reopened, "now red")
	open("busdk#120.1")
	b.run(chromedp.Click(chromedp.CSS("#one [data-decision=approve]")))
	b.until(`document.querySelector("#one .status").textContent === "open"`)
	published(task.Approved, "")
}

func TestFilterIsInTheAddress(t *testing.T) {
	t.Parallel()
	address, _ := serve(t, Options{Log: example()})
	b := openBrowser(t, address+"#?status=blocked", 1360, 900, "light")
	b.until(`document.querySelectorAll("#tasks-body tr").length === 2 && document.querySelector("#filter-status").value === "blocked"`)
	b.run(chromedp.Click(chromedp.CSS("#filter [type=reset]")))
	b.until(`document.querySelectorAll("#tasks-body tr").length === 29`)
	b.eval(`document.activeElement.blur()`, nil)
	// A key event of the protocol would also write the slash.
	b.eval(`document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "/", bubbles: true, cancelable: true }))`, nil)
	b.run(chromedp.KeyEvent("backups RESTORED"))
	b.until(`document.querySelectorAll("#tasks-body tr").length === 4 && location.hash === "#?q=backups+RESTORED"`)
	b.run(chromedp.SetValue(chromedp.CSS("#filter-recipient"), "bus-ledger"))
	b.eval(`document.querySelector("#filter-recipient").dispatchEvent(new Event("input", { bubbles: true }))`, nil)
	b.until(`[...document.querySelectorAll("#tasks-body .c-recipient")].every((e) => e.textContent === "bus-ledger") && location.hash.endsWith("&recipient=bus-ledger")`)
	b.eval(`document.activeElement.blur()`, nil)
	b.run(chromedp.KeyEvent("j"), chromedp.KeyEvent("\r"))
	b.until(`!document.querySelector("#one").hidden && document.activeElement === document.querySelector("#one h1")`)
	b.run(chromedp.KeyEvent("\u001b"))
	b.until(`!document.querySelector("#board").hidden && document.activeElement.closest("#tasks-body tr")`)
	b.expect("back with the filter", `location.hash === "#?q=backups+RESTORED&recipient=bus-ledger"`)
}

func TestHostileTextStaysText(t *testing.T) {
	t.Parallel()
	m := hostileLog()
	address, _ := serve(t, Options{Log: m})
	b := openBrowser(t, address, 390, 844, "light")
	b.until(fmt.Sprintf(`document.querySelectorAll("#approvals-list .ask").length === %d`, len(hostileTexts)))
	b.screenshot("hostile")
	var refs []string
	b.eval(`[...document.querySelectorAll("#tasks-body a")].map((a) => a.getAttribute("href"))`, &refs)
	if len(refs) != 2*len(hostileTexts) {
		t.Errorf("%d rows", len(refs))
	}
	for _, ref := range append([]string{"#"}, refs...) {
		b.eval(fmt.Sprintf(`location.hash = %q`, ref), nil)
		if ref != "#" {
			b.until(`document.querySelectorAll("#one .item").length > 2`)
			b.eval(`[...document.querySelectorAll("#one details")].forEach((d) => { d.open = true; })`, nil)
			b.eval(`new Promise((done) => requestAnimationFrame(() => setTimeout(done)))`, nil)
		}
		b.expect(ref, `document.documentElement.scrollWidth <= document.documentElement.clientWidth`)
		b.expect(ref, `!/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u200b\u202a-\u202e\u2066-\u2069]/.test(document.body.innerText)`)
		b.expect(ref, `!document.querySelector("img, iframe, svg, body script, object, embed, [onerror], [onmouseover]") && window.zapped === undefined`)
		b.expect(ref, `[...document.querySelectorAll("a")].every((a) => a.getAttribute("href").startsWith("#"))`)
	}
}

func TestLostServerIsReported(t *testing.T) {
	t.Parallel()
	m := example()
	s := newServer(Options{Log: m}, token)
	s.coalesce, s.retry = time.Millisecond, time.Millisecond
	go s.follow(t.Context())
	var mu sync.Mutex
	gone := false
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		is := gone
		mu.Unlock()
		if is {
			panic(http.ErrAbortHandler) // closes the connection
		}
		s.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { web.CloseClientConnections(); web.Close() })
	b := openBrowser(t, web.URL+"/"+token+"/", 1360, 900, "light")
	b.until(`document.querySelectorAll("#tasks-body tr").length === 29`)
	set := func(is bool) { mu.Lock(); gone = is; mu.Unlock() }
	set(true)
	web.CloseClientConnections()
	b.until(`!document.querySelector("#offline").hidden && document.querySelector("#offline").textContent.startsWith("Disconnected at")`)
	b.screenshot("offline")
	b.expectAccessible("offline")
	m.create("busdk#300.1", "bus-dev", "made meanwhile")
	set(false)
	b.until(`document.querySelector("#offline").hidden && document.querySelector("#tasks-body a").textContent === "made meanwhile"`)
	b.forgive()
	m.failWith(fmt.Errorf("connection refused"))
	b.until(`document.querySelector("#problem").textContent.includes("cannot follow the event log: connection refused")`)
	m.failWith(nil)
	b.until(`document.querySelector("#problem").hidden`)
}

// A page of many tasks stays quick: it draws a part of them.
func TestManyTasksInBrowser(t *testing.T) {
	t.Parallel()
	m := newMemory()
	for i := range 10_000 {
		m.create(fmt.Sprintf("t#%d", i), fmt.Sprintf("r-%d", i%300), "work")
	}
	address, _ := serve(t, Options{Log: m, MaxOpen: 10_000})
	b := openBrowser(t, address, 1360, 900, "light")
	b.until(`document.querySelector("#shown").textContent === "10,000"`)
	b.expect("rows", `document.querySelectorAll("#tasks-body tr").length === 50`)
	var took float64
	b.eval(`(() => { const begin = performance.now(); for (let i = 0; i < 5; i++) drawAll(); return (performance.now() - begin) / 5; })()`, &took)
	if took > 500 {
		t.Errorf("drawing takes %.0f ms", took)
	}
	text, _ := json.Marshal(took)
	t.Logf("drawing takes %s ms", text)
}

const exampleDiff = `diff --git a/internal/web/login.go b/internal/web/login.go
--- a/internal/web/login.go
+++ b/internal/web/login.go
@@ -38,7 +38,9 @@ func (s *Server) login(w http.ResponseWriter, r *http.Request) {
 	user, err := s.users.Find(r.FormValue("name"))
-	if err != nil {
+	if errors.Is(err, ErrNoUser) {
+		s.fail(w, r, http.StatusUnauthorized)
+	} else if err != nil {
 		s.fail(w, r, err)
 		return
 	}
`

// example is a log of a day's work, whose latest events are from now.
func example() *memory {
	m := newMemory()
	begin := time.Now().Add(-10 * time.Minute).UTC()
	titles := []string{
		"Users who sign in with an unknown name get a 500", "Sort imports in all packages", "Show the balance of closed accounts",
		"Make the ledger export twice as fast", "Remove the flag --legacy", "Describe how backups are restored", "Retry the mail server once",
	}
	recipients := []string{"bus-dev", "bus-ledger", "bus-integration-docker"}
	ref := func(i int) string { return fmt.Sprintf("busdk#%d.1", 81+i) }
	for i := range 28 {
		m.add(task.Created, task.Payload{
			WorkRef: ref(i), Recipient: recipients[i%3], Sender: "busdk", Text: titles[i%len(titles)], Branch: fmt.Sprintf("work/task-%d", 81+i),
			Labels: task.Labels{WorkerProfile: "large", RequestedModel: "model-5", RequestedEffort: "high", AuthMode: "subscription"},
		})
	}
	for i := range 15 {
		p := m.claim(ref(i), fmt.Sprintf("worker-%d", i%4+1))
		p.Text = "turn started"
		m.add(task.Progress, p)
		p.Text, p.Body = "I read the handler first: it treats every error alike.", ""
		m.add(task.Message, p)
		p.Text = "A user that does not exist is answered like a broken database. I change that and add a test for each case."
		m.add(task.Message, p)
		switch {
		case i < 6:
			p.Text, p.Commit, p.RunID = "unknown users get 401; 2 tests added", "4be1a72c9d", "20260605-0901001234-4711-1"
			p.Attachments = []task.Attachment{
				{Path: "result.diff", Size: int64(len(exampleDiff)), MediaType: "text/x-diff", Content: exampleDiff},
				{Path: "coverage.txt", Size: 1234, MediaType: "text/plain", Content: "no"},
			}
			p.Closeout = json.RawMessage(`{"task_complete":true,"changed_files":["internal/web/login.go"],"required_checks":["make test"]}`)
			m.add(task.Done, p)
		case i < 8:
			p.Text = "the turn produced no worktree changes"
			m.add(task.Blocked, p)
		case i == 8:
			p.Text = "the runtime ended with exit code 1"
			m.add(task.Failed, p)
		case i == 9:
			m.add(task.Canceled, task.Payload{WorkRef: ref(i), Text: "not needed any more", Sender: "busdk"})
		case i > 12:
			p.ApprovalID, p.Text, p.Body = fmt.Sprint(i), "Run make deploy-staging?", "make deploy-staging\n\ncwd: /workspace/bus-ledger\nreason: the test needs the staging database"
			m.add(task.ApprovalRequested, p)
		}
	}
	m.add(task.Created, task.Payload{WorkRef: "busdk#120.1", Recipient: "bus-ledger", Sender: "busdk", Text: "Delete the old archive", Status: "pending"})
	for i := range m.events {
		m.events[i].Time = begin.Add(time.Duration(i) * 6 * time.Second)
	}
	return m
}
