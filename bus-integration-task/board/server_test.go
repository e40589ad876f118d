package board

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-integration-task/task"
)

const token = "TESTTOKEN"

// serve serves a log with short waits and returns the address of its page.
func serve(t *testing.T, o Options) (address string, s *server) {
	t.Helper()
	s = newServer(o, token)
	s.coalesce, s.retry = time.Millisecond, time.Millisecond
	web := httptest.NewServer(s)
	ctx, cancel := context.WithCancel(t.Context())
	followed := make(chan struct{})
	go func() { defer close(followed); s.follow(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-followed
		web.CloseClientConnections()
		web.Close()
	})
	return web.URL + "/" + token + "/", s
}

// send sends a request and returns status, headers and body.
func send(t *testing.T, method, address, body string, change func(*http.Request)) (int, http.Header, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Origin", "http://"+r.URL.Host)
	}
	if change != nil {
		change(r)
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	got, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = got.Body.Close() }()
	text, err := io.ReadAll(got.Body)
	if err != nil {
		t.Fatal(err)
	}
	return got.StatusCode, got.Header, string(text)
}

func TestRequestsThatAreRefused(t *testing.T) {
	t.Parallel()
	m := newMemory()
	m.create("a#1", "x", "work")
	address, _ := serve(t, Options{Log: m})
	base := strings.TrimSuffix(address, token+"/")
	say := `{"do":"say","ref":"a#1","text":"hi"}`
	host := func(name string) func(*http.Request) { return func(r *http.Request) { r.Host = name } }
	origin := func(name string) func(*http.Request) {
		return func(r *http.Request) {
			if r.Header.Del("Origin"); name != "" {
				r.Header.Set("Origin", name)
			}
		}
	}
	for _, c := range []struct {
		name, method, address, body string
		change                      func(*http.Request)
		status                      int
	}{
		{"page", "GET", address, "", nil, 200},
		{"head", "HEAD", address, "", nil, 200},
		{"no slash", "GET", strings.TrimSuffix(address, "/"), "", nil, 303},
		{"no token", "GET", base, "", nil, 403},
		{"other token", "GET", base + "TESTTOKEX/", "", nil, 403},
		{"beginning of the token", "GET", base + "TEST/", "", nil, 403},
		{"token in the query", "GET", base + "?token=" + token, "", nil, 403},
		{"stream without the token", "GET", base + "events", "", nil, 403},
		{"action without the token", "POST", base + "act", say, nil, 403},
		{"unknown path", "GET", address + "secret", "", nil, 404},
		{"path that climbs", "GET", address + "..%2f..%2fserver.go", "", nil, 307},
		{"host of an attacker", "GET", address, "", host("attacker.example:80"), 403},
		{"host that begins like this one", "GET", address, "", host("127.0.0.1.attacker.example"), 403},
		{"address that is not of this machine", "GET", address, "", host("192.0.2.1"), 403},
		{"localhost", "GET", address, "", host("localhost:1234"), 200},
		{"version 6", "GET", address, "", host("[::1]:1234"), 200},
		{"method of the page", "POST", address, "", nil, 405},
		{"method of an action", "GET", address + "act", "", nil, 405},
		{"unknown method", "DELETE", address + "act", "", origin("http://" + strings.Split(base, "/")[2]), 405},
		{"action", "POST", address + "act", say, nil, 202},
		{"no origin", "POST", address + "act", say, origin(""), 403},
		{"origin null", "POST", address + "act", say, origin("null"), 403},
		{"other origin", "POST", address + "act", say, origin("http://127.0.0.1:1"), 403},
		{"form", "POST", address + "act", say, func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }, 415},
		{"too long", "POST", address + "act", `{"do":"say","text":"` + strings.Repeat("x", maxActionSize) + `"}`, nil, 413},
		{"not JSON", "POST", address + "act", `do=say`, nil, 400},
		{"unknown member", "POST", address + "act", `{"do":"say","ref":"a#1","text":"hi","worker_id":"w"}`, nil, 400},
		{"task without a reference", "GET", address + "task", "", nil, 400},
		{"task that does not exist", "GET", address + "task?ref=b", "", nil, 404},
	} {
		status, header, body := send(t, c.method, c.address, c.body, c.change)
		if status != c.status {
			t.Errorf("%s: status %d, want %d: %.200s", c.name, status, c.status, body)
		}
		if status != 303 && strings.Contains(body+fmt.Sprint(header), token) {
			t.Errorf("%s: the answer contains the token", c.name)
		}
		for name, want := range map[string]string{
			"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer", "Content-Security-Policy": policy,
		} {
			if got := header.Get(name); got != want {
				t.Errorf("%s: %s is %q", c.name, name, got)
			}
		}
	}
	expect(t, "events", len(m.events), 2) // one action was taken
}

// The policy allows no code but that of the files of the page, and they need no more.
func TestPageNeedsNothingInline(t *testing.T) {
	t.Parallel()
	for _, rule := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'", "require-trusted-types-for 'script'"} {
		if !strings.Contains(policy, rule) || strings.Contains(policy, "unsafe") || strings.Contains(policy, "*") {
			t.Errorf("the policy lacks %q or is too wide: %s", rule, policy)
		}
	}
	address, _ := serve(t, Options{Log: newMemory()})
	_, _, html := send(t, "GET", address, "", nil)
	if regexp.MustCompile(`(?i)<script[^>]*>[^<]|\son\w+=|\sstyle=|<style|https?:|javascript:`).MatchString(html) {
		t.Error("the page has something inline or remote")
	}
	files := regexp.MustCompile(`(?:src|href)="([^"#]+)"`).FindAllStringSubmatch(html, -1)
	if len(files) < 4 {
		t.Errorf("%d files", len(files))
	}
	unsafe := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|setAttribute\("style"|https?://`)
	for _, file := range files {
		status, header, text := send(t, "GET", address+file[1], "", nil)
		if status != 200 || header.Get("Content-Type") == "" {
			t.Errorf("%s: status %d, type %q", file[1], status, header.Get("Content-Type"))
		}
		if found := unsafe.FindString(text); found != "" && file[1] != "icon.svg" {
			t.Errorf("%s uses %s", file[1], found)
		}
	}
}

func TestListenAddresses(t *testing.T) {
	t.Parallel()
	for listen, want := range map[string]string{
		"": "127.0.0.1:0", "127.0.0.1:80": "127.0.0.1:80", "localhost:0": "127.0.0.1:0", "[::1]:8": "[::1]:8", "127.9.9.9:1": "127.9.9.9:1",
		"0.0.0.0:80": "", ":80": "", "[::]:80": "", "192.0.2.1:80": "", "example.com:80": "", "127.0.0.1": "", "127.0.0.1.example.com:80": "",
	} {
		got, err := Options{Log: newMemory(), Listen: listen}.listenAddress()
		if got != want || (want == "") != errors.Is(err, agent.ErrUsage) {
			t.Errorf("%q: %q, %v; want %q", listen, got, err, want)
		}
		if err != nil && (!strings.Contains(err.Error(), listen) || !strings.Contains(err.Error(), "use 127.0.0.1:PORT")) {
			t.Errorf("%q: the error does not help: %v", listen, err)
		}
	}
	published := Options{Log: newMemory(), Listen: "0.0.0.0:80", Published: true}
	if got, err := published.listenAddress(); got != published.Listen || err != nil || published.Check() != nil {
		t.Errorf("published: %q, %v", got, err)
	}
	if got := published.visible(&net.TCPAddr{IP: net.IPv6unspecified, Port: 80}); got != "127.0.0.1:80" {
		t.Errorf("published: the page is at %s", got)
	}
	if err := (Options{Log: newMemory(), Listen: "0.0.0.0:80"}).Check(); !errors.Is(err, agent.ErrUsage) {
		t.Errorf("not published: %v", err)
	}
	if err := Serve(t.Context(), Options{}); !errors.Is(err, agent.ErrUsage) {
		t.Errorf("without a log: %v", err)
	}
}

func TestServeEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	m := newMemory()
	m.create("a#1", "x", "work")
	addresses, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		ended <- Serve(ctx, Options{Log: m, Started: func(address string) { addresses <- address }})
	}()
	address := <-addresses
	if !regexp.MustCompile(`^http://127\.0\.0\.1:\d+/[A-Z2-7]{26}/$`).MatchString(address) {
		t.Errorf("the address is %s", address)
	}
	updates := watch(t, address)
	for u := range updates { // a connected page does not keep the server
		if len(u.Tasks) == 1 {
			break
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := Serve(t.Context(), Options{Log: m, Listen: "127.0.0.1:99999"}); err == nil {
		t.Error("a port that does not exist is served")
	}
}

// watch connects as a page does and returns its updates.
func watch(t *testing.T, address string) <-chan update {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address+"events", nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	expect(t, "status of the stream", got.StatusCode, 200)
	expect(t, "type of the stream", got.Header.Get("Content-Type"), "text/event-stream")
	updates := make(chan update)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(func() { cancel(); _ = got.Body.Close() })
	go func() {
		defer close(updates)
		lines := bufio.NewReader(got.Body)
		for {
			text, err := lines.ReadString('\n')
			if err != nil {
				return
			}
			data, ok := strings.CutPrefix(text, "data: ")
			if !ok {
				continue
			}
			var u update
			if err := json.Unmarshal([]byte(data), &u); err != nil {
				t.Errorf("an update is not JSON: %v", err)
			}
			select {
			case updates <- u:
			case <-ctx.Done():
				return
			}
		}
	}()
	return updates
}

// until reads updates until one of a task is as wanted, and returns the task.
func until(t *testing.T, updates <-chan update, ref string, wanted func(*entry) bool) *entry {
	t.Helper()
	limit := time.After(20 * time.Second)
	for {
		select {
		case u, ok := <-updates:
			if !ok {
				t.Fatal("the stream ended")
			}
			for _, e := range u.Tasks {
				if e.Ref == ref && wanted(e) {
					return e
				}
			}
		case <-limit:
			t.Fatalf("no update of %s is as wanted", ref)
		}
	}
}

func TestStreamSendsWhatChanges(t *testing.T) {
	t.Parallel()
	m := newMemory()
	m.create("a#1", "bus-dev", "paint it")
	address, _ := serve(t, Options{Log: m})
	updates := watch(t, address)
	until(t, updates, "a#1", func(e *entry) bool { return e.Status == open && e.Text == "paint it" && e.Recipient == "bus-dev" })
	p := m.claim("a#1", "w1")
	p.Text = "mixing colors"
	m.add(task.Message, p)
	e := until(t, updates, "a#1", func(e *entry) bool { return len(e.Lines) == 3 })
	if e.Status != running || e.Worker != "w1" || e.Lease != 60 || e.Lines[2].Text != "mixing colors" || e.Renewed <= e.Claimed {
		t.Errorf("%+v", e)
	}
	p.ApprovalID, p.Text = "7", "run make"
	m.add(task.ApprovalRequested, p)
	e = until(t, updates, "a#1", func(e *entry) bool { return e.Status == waiting })
	if len(e.Approvals) != 1 || e.Approvals[0].ID != "7" || e.Approvals[0].Text != "run make" {
		t.Errorf("%+v", e.Approvals)
	}
}

func TestActionsBecomeEvents(t *testing.T) {
	t.Parallel()
	m := newMemory()
	for _, ref := range []string{"open", "running", "done", "asks"} {
		m.create(ref, "bus-dev", "work")
	}
	m.add(task.Created, task.Payload{WorkRef: "pending", Recipient: "bus-dev", Status: "pending"})
	m.claim("running", "w")
	m.add(task.Done, m.claim("done", "w"))
	asks := m.claim("asks", "w")
	asks.ApprovalID = "7"
	m.add(task.ApprovalRequested, asks)
	address, s := serve(t, Options{Log: m, Sender: "me"})
	waitFor(t, s, m)
	count := len(m.events)
	for _, c := range []struct {
		name, body string
		status     int
		event      string
		payload    task.Payload
	}{
		{"say", `{"do":"say","ref":"running","text":" use blue\n"}`, 202, task.Message, task.Payload{WorkRef: "running", Sender: "me", Text: "use blue"}},
		{"say lines", `{"do":"say","ref":"open","text":"use blue\nor red"}`, 202, task.Message, task.Payload{WorkRef: "open", Sender: "me", Text: "use blue", Body: "use blue\nor red"}},
		{"say nothing", `{"do":"say","ref":"running","text":" \n"}`, 400, "", task.Payload{}},
		{"say to an ended task", `{"do":"say","ref":"done","text":"hi"}`, 409, "", task.Payload{}},
		{"say to an unknown task", `{"do":"say","ref":"what","text":"hi"}`, 404, "", task.Payload{}},
		{"approve", `{"do":"approve","ref":"pending"}`, 202, task.Approved, task.Payload{WorkRef: "pending", Recipient: "bus-dev", Sender: "me"}},
		{"approve an open task", `{"do":"approve","ref":"open"}`, 409, "", task.Payload{}},
		{"reopen", `{"do":"reopen","ref":"done","text":"again"}`, 202, task.Reopened, task.Payload{WorkRef: "done", Recipient: "bus-dev", Sender: "me", Text: "again"}},
		{"reopen a running task", `{"do":"reopen","ref":"running"}`, 409, "", task.Payload{}},
		{"answer another request", `{"do":"answer","ref":"asks","approval":"8","decision":"accept"}`, 409, "", task.Payload{}},
		{"answer another task", `{"do":"answer","ref":"running","approval":"7","decision":"accept"}`, 409, "", task.Payload{}},
		{"answer in other words", `{"do":"answer","ref":"asks","approval":"7","decision":"yes"}`, 400, "", task.Payload{}},
		{"answer", `{"do":"answer","ref":"asks","approval":"7","decision":"accept_for_session"}`, 202, task.ApprovalAnswered, task.Payload{WorkRef: "asks", Sender: "me", ApprovalID: "7", Decision: "accept_for_session"}},
		{"answer again", `{"do":"answer","ref":"asks","approval":"7","decision":"decline"}`, 409, "", task.Payload{}},
		{"cancel", `{"do":"cancel","ref":"running","text":"no need"}`, 202, task.Canceled, task.Payload{WorkRef: "running", Sender: "me", Text: "no need"}},
		{"cancel again", `{"do":"cancel","ref":"running"}`, 409, "", task.Payload{}},
		{"something else", `{"do":"done","ref":"open"}`, 400, "", task.Payload{}},
	} {
		status, _, body := send(t, "POST", address+"act", c.body, nil)
		if status != c.status {
			t.Errorf("%s: status %d, want %d: %s", c.name, status, c.status, body)
		}
		if c.event != "" {
			count++
			if got := m.last(); got.Name != c.event || fmt.Sprint(got.Payload) != fmt.Sprint(c.payload) {
				t.Errorf("%s: %s %+v", c.name, got.Name, got.Payload)
			}
		}
		expect(t, c.name+": events", len(m.events), count)
		waitFor(t, s, m)
	}
	m.failWith(errors.New("token expired"))
	status, _, body := send(t, "POST", address+"act", `{"do":"say","ref":"open","text":"hi"}`, nil)
	if status != 502 || !strings.Contains(body, "not published: token expired") {
		t.Errorf("a log that fails: %d %s", status, body)
	}
}

// waitFor waits until the board has folded every event of a log.
func waitFor(t *testing.T, s *server, m *memory) {
	t.Helper()
	w := s.tasks.watch()
	defer s.tasks.unwatch(w)
	for want := m.last().ID; s.tasks.position() != want; {
		select {
		case <-w.wake:
		case <-t.Context().Done():
			t.Fatal("the board does not follow the log")
		}
	}
}
