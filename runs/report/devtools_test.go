//go:build acceptance

package report

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// patience bounds how long the browser may take for one thing.
const patience = 3 * time.Minute

// A browser is a headless Chromium that is spoken to through pipes.
type browser struct {
	t       *testing.T
	to      io.Writer
	mu      sync.Mutex
	next    int
	waiting map[int]chan reply
	events  []event
	changed chan struct{} // closed at each event
	gone    chan struct{}
	session string
}

type reply struct {
	Result json.RawMessage
	Error  *struct{ Message string }
}

type event struct {
	Method string
	Params json.RawMessage
}

// startBrowser starts one, which ends with the test, and opens an empty page. Chromium 156
// rarely crashes at its start ("Segmentation fault"); it is then started again.
func startBrowser(t *testing.T) *browser {
	t.Helper()
	b := launchBrowser(t)
	for range 2 {
		if b.runs() {
			break
		}
		b = launchBrowser(t)
	}
	var target struct{ TargetID string }
	b.call("Target.createTarget", `{"url":"about:blank"}`, &target)
	var attached struct{ SessionID string }
	b.call("Target.attachToTarget", fmt.Sprintf(`{"targetId":%q,"flatten":true}`, target.TargetID), &attached)
	b.session = attached.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		b.call(domain+".enable", `{}`, nil)
	}
	return b
}

func launchBrowser(t *testing.T) *browser {
	t.Helper()
	program := os.Getenv("BUS_AGENT_CHROMIUM")
	if program == "" {
		t.Fatal("BUS_AGENT_CHROMIUM names no browser; make acceptance sets it")
	}
	home := t.TempDir()
	inRead, inWrite := pipe(t)
	outRead, outWrite := pipe(t)
	cmd := exec.Command(program, "--headless", "--no-sandbox", "--remote-debugging-pipe", "--disable-gpu",
		"--disable-dev-shm-usage", "--hide-scrollbars", "--no-first-run", "--user-data-dir="+filepath.Join(home, "data"))
	cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + home, "LANG=C.UTF-8", "TZ=UTC"}
	cmd.ExtraFiles = []*os.File{inRead, outWrite} // 3 and 4
	stderr := &strings.Builder{}
	cmd.Stderr = stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = inRead.Close()
	_ = outWrite.Close()
	b := &browser{t: t, to: inWrite, waiting: map[int]chan reply{}, changed: make(chan struct{}), gone: make(chan struct{})}
	go b.read(outRead)
	t.Cleanup(func() { b.end(cmd, inWrite, stderr) })
	return b
}

// runs reports whether the browser has started.
func (b *browser) runs() bool {
	b.t.Helper()
	answer, err := b.send("Browser.getVersion", `{}`)
	if err != nil {
		return false
	}
	select {
	case <-answer:
		return true
	case <-b.gone:
		return false
	}
}

// quietBrowser starts a browser with a wide, light screen. The test fails if a page makes
// it complain.
func quietBrowser(t *testing.T) *browser {
	t.Helper()
	b := startBrowser(t)
	b.screen(1360, 900, "light")
	t.Cleanup(b.expectQuiet)
	return b
}

// openAll opens all that is collapsed in a run.
func (b *browser) openAll() {
	b.t.Helper()
	b.eval(`[...document.querySelectorAll("#run details")].forEach((d) => { d.open = true; })`, nil)
}

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = r.Close(), w.Close() })
	return r, w
}

// end asks the browser to end, and sees to it that it does.
func (b *browser) end(cmd *exec.Cmd, to io.Closer, stderr *strings.Builder) {
	b.mu.Lock()
	_, _ = io.WriteString(b.to, `{"id":0,"method":"Browser.close"}`+"\x00")
	b.mu.Unlock()
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		_ = cmd.Process.Kill()
		<-ended
	}
	_ = to.Close()
	if b.t.Failed() {
		b.t.Log(stderr.String())
	}
}

func (b *browser) read(from io.Reader) {
	defer close(b.gone)
	r := bufio.NewReaderSize(from, 1<<20)
	for {
		text, err := r.ReadBytes(0)
		if err != nil {
			return
		}
		var message struct {
			ID int
			reply
			event
		}
		if json.Unmarshal(text[:len(text)-1], &message) != nil {
			continue
		}
		b.mu.Lock()
		if wait := b.waiting[message.ID]; message.ID != 0 && wait != nil {
			delete(b.waiting, message.ID)
			wait <- message.reply
		} else if message.Method != "" {
			b.events = append(b.events, message.event)
			close(b.changed)
			b.changed = make(chan struct{})
		}
		b.mu.Unlock()
	}
}

// call calls a method of the protocol and reads its result into result.
func (b *browser) call(method, params string, result any) {
	b.t.Helper()
	wait, err := b.send(method, params)
	if err != nil {
		b.t.Fatalf("%s: %v", method, err)
	}
	select {
	case got := <-wait:
		if got.Error != nil {
			b.t.Fatalf("%s: %s", method, got.Error.Message)
		}
		if result != nil {
			if err := json.Unmarshal(got.Result, result); err != nil {
				b.t.Fatalf("%s: %v", method, err)
			}
		}
	case <-b.gone:
		b.t.Fatalf("%s: the browser has ended", method)
	case <-time.After(patience):
		b.t.Fatalf("%s: no answer", method)
	}
}

// send calls a method and returns the channel of its reply.
func (b *browser) send(method, params string) (<-chan reply, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.next++
	wait := make(chan reply, 1)
	b.waiting[b.next] = wait
	session := ""
	if b.session != "" {
		session = fmt.Sprintf(`,"sessionId":%q`, b.session)
	}
	_, err := fmt.Fprintf(b.to, `{"id":%d,"method":%q,"params":%s%s}`+"\x00", b.next, method, params, session)
	return wait, err
}

// await returns the first event that wanted accepts, of those from the from-th on.
func (b *browser) await(from int, what string, wanted func(event) bool) {
	b.t.Helper()
	limit := time.After(patience)
	for {
		b.mu.Lock()
		events, changed := b.events[from:], b.changed
		b.mu.Unlock()
		for _, e := range events {
			if wanted(e) {
				return
			}
		}
		select {
		case <-changed:
		case <-b.gone:
			b.t.Fatalf("%s: the browser has ended", what)
		case <-limit:
			b.t.Fatalf("%s did not happen", what)
		}
	}
}

// open loads a file and waits until it is loaded and drawn.
func (b *browser) open(path string) {
	b.t.Helper()
	b.openPlain(path)
	b.settle()
}

// openPlain loads a file and waits until it is loaded.
func (b *browser) openPlain(path string) {
	b.t.Helper()
	b.load("Page.navigate", fmt.Sprintf(`{"url":%q}`, "file://"+path))
}

// reload loads the page again at its address and waits until it is loaded and drawn.
func (b *browser) reload() {
	b.t.Helper()
	b.load("Page.reload", `{}`)
	b.settle()
}

func (b *browser) load(method, params string) {
	b.t.Helper()
	b.mu.Lock()
	from := len(b.events)
	b.mu.Unlock()
	b.call(method, params, nil)
	b.await(from, "loading the page", func(e event) bool { return e.Method == "Page.loadEventFired" })
}

// settle waits until what the page has to draw is drawn.
func (b *browser) settle() {
	b.t.Helper()
	b.eval(`new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 50))))`, nil)
}

// screen sets size and colors of the screen.
func (b *browser) screen(width, height int, scheme string) {
	b.t.Helper()
	b.call("Emulation.setDeviceMetricsOverride", fmt.Sprintf(`{"width":%d,"height":%d,"deviceScaleFactor":1,"mobile":%t}`, width, height, width < 500), nil)
	b.call("Emulation.setEmulatedMedia", fmt.Sprintf(`{"features":[{"name":"prefers-color-scheme","value":%q}]}`, scheme), nil)
	b.settle()
}

// eval evaluates an expression, or what it promises, in the page.
func (b *browser) eval(expression string, into any) {
	b.t.Helper()
	quoted, _ := json.Marshal(expression)
	var got struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct{ Exception struct{ Description string } }
	}
	b.call("Runtime.evaluate", fmt.Sprintf(`{"expression":%s,"awaitPromise":true,"returnByValue":true,"userGesture":true}`, quoted), &got)
	if got.ExceptionDetails != nil {
		b.t.Fatalf("%s: %s", expression, got.ExceptionDetails.Exception.Description)
	}
	if into != nil && len(got.Result.Value) > 0 {
		if err := json.Unmarshal(got.Result.Value, into); err != nil {
			b.t.Fatalf("%s: %v", expression, err)
		}
	}
}

// key presses a key.
func (b *browser) key(name, text string) {
	b.t.Helper()
	code := map[string]int{"Enter": 13, "Tab": 9, "Escape": 27, " ": 32}[name]
	for _, kind := range []string{"keyDown", "keyUp"} {
		written := ""
		if kind == "keyDown" && text != "" {
			written = fmt.Sprintf(`,"text":%q`, text)
		}
		b.call("Input.dispatchKeyEvent", fmt.Sprintf(`{"type":%q,"key":%q,"code":%q,"windowsVirtualKeyCode":%d%s}`, kind, name, name, code, written), nil)
	}
	b.settle()
}

// click clicks in the middle of the first element of a selector.
func (b *browser) click(selector string) {
	b.t.Helper()
	var at struct{ X, Y float64 }
	b.eval(fmt.Sprintf(`(() => { const e = document.querySelector(%q); e.scrollIntoView({block: "center"}); const r = e.getClientRects()[0]; return {x: r.x + r.width / 2, y: r.y + r.height / 2}; })()`, selector), &at)
	for _, kind := range []string{"mousePressed", "mouseReleased"} {
		b.call("Input.dispatchMouseEvent", fmt.Sprintf(`{"type":%q,"x":%f,"y":%f,"button":"left","clickCount":1}`, kind, at.X, at.Y), nil)
	}
	b.settle()
}

// screenshot keeps a picture of the whole page, up to a height, in the folder
// BUS_AGENT_SCREENSHOTS, for developers.
func (b *browser) screenshot(name string, whole bool) {
	b.t.Helper()
	dir := os.Getenv("BUS_AGENT_SCREENSHOTS")
	if dir == "" {
		return
	}
	params := `{"format":"png"}`
	if whole {
		var size struct{ W, H float64 }
		b.eval(`({w: document.documentElement.clientWidth, h: Math.min(document.documentElement.scrollHeight, 4000)})`, &size)
		params = fmt.Sprintf(`{"format":"png","captureBeyondViewport":true,"clip":{"x":0,"y":0,"width":%f,"height":%f,"scale":1}}`, size.W, size.H)
	}
	var shot struct{ Data string }
	b.call("Page.captureScreenshot", params, &shot)
	png, err := base64.StdEncoding.DecodeString(shot.Data)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name+".png"), png, 0o600)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}
