package board

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/busdk/bus-integration-task/task"
)

func TestEndedTasksAreForgottenAndReadAgain(t *testing.T) {
	t.Parallel()
	m := newMemory()
	for i := range 5 {
		ref := fmt.Sprintf("a#%d", i)
		m.create(ref, "r", "work")
		m.add(task.Blocked, m.claim(ref, "w"))
	}
	b := folded(m, 2, 0)
	expect(t, "kept", len(b.kept), 2)
	expect(t, "forgotten", b.forgotten, 3)
	expect(t, "counted", b.queues["r"].Tasks[blocked], 5)

	address, s := serve(t, Options{Log: m, MaxEnded: 2})
	waitFor(t, s, m)
	updates := watch(t, address)
	status, _, body := send(t, "POST", address+"act", `{"do":"reopen","ref":"a#0","text":"again"}`, nil)
	expect(t, "status of reopening a forgotten task: "+body, status, 202)
	e := until(t, updates, "a#0", func(e *entry) bool { return e.Status == open })
	if e.Text != "work" || e.Recipient != "r" || e.Round != 2 {
		t.Errorf("%+v", e)
	}
	s.tasks.mu.Lock()
	defer s.tasks.mu.Unlock()
	expect(t, "forgotten", s.tasks.forgotten, 2)
	expect(t, "blocked", s.tasks.queues["r"].Tasks[blocked], 4)
	expect(t, "open", s.tasks.queues["r"].Tasks[open], 1)
}

func TestReopenedTaskThatCannotBeReadIsReported(t *testing.T) {
	t.Parallel()
	m := newMemory()
	for _, ref := range []string{"a", "b"} {
		m.create(ref, "r", "work")
		m.add(task.Done, m.claim(ref, "w"))
	}
	m.noTask = errors.New("connection refused")
	warned := make(chan string, 1)
	address, s := serve(t, Options{Log: m, MaxEnded: 1, Warn: func(text string) { warned <- text }})
	waitFor(t, s, m)
	m.add(task.Reopened, task.Payload{WorkRef: "a"})
	if text := <-warned; !strings.Contains(text, `the reopened task "a": connection refused`) {
		t.Error(text)
	}
	status, _, body := send(t, "GET", address+"task?ref=a", "", nil)
	if status != 502 || !strings.Contains(body, "connection refused") {
		t.Errorf("%d %s", status, body)
	}
}

// Open tasks beyond the limit get a row as soon as there is room, the oldest first.
func TestOpenTasksBeyondTheLimit(t *testing.T) {
	t.Parallel()
	m := newMemory()
	for i := range 6 {
		m.create(fmt.Sprintf("a#%d", i), "r", "work")
	}
	shown := func(b *tasks) (refs string) {
		for i := range 6 {
			if b.kept[fmt.Sprintf("a#%d", i)].shown {
				refs += fmt.Sprint(i)
			}
		}
		return refs
	}
	b := folded(m, 0, 2)
	expect(t, "at first", shown(b), "01")
	expect(t, "hidden", b.hidden, 4)
	m.claim("a#4", "w") // one without a row
	m.claim("a#0", "w")
	b = folded(m, 0, 2)
	expect(t, "after two claims", shown(b), "0124")
	expect(t, "hidden", b.hidden, 2)
	expect(t, "open", b.queues["r"].Tasks[open], 4)
}

// An update has the latest state of a task once, however often it has changed, and a page
// that takes none costs no more than references.
func TestSlowPageGetsTheLatest(t *testing.T) {
	t.Parallel()
	b := newTasks(10, 0)
	w := b.watch()
	m := newMemory()
	m.create("live", "r", "work")
	p := m.claim("live", "w")
	for i := range 5000 {
		p.Text = fmt.Sprintf("message %d", i)
		m.add(task.Message, p)
		ref := fmt.Sprintf("a#%d", i)
		m.create(ref, "r", "work")
		m.add(task.Canceled, task.Payload{WorkRef: ref})
	}
	for _, e := range m.events {
		b.apply(e)
	}
	if len(w.dirty) > 2000 {
		t.Errorf("the page waits for %d references", len(w.dirty))
	}
	seen := 0
	for more := true; more; {
		text, next, err := b.next(w)
		if err != nil {
			t.Fatal(err)
		}
		var u update
		if err := json.Unmarshal(text, &u); err != nil {
			t.Fatal(err)
		}
		for _, e := range u.Tasks {
			if e.Ref == "live" {
				seen++
				expect(t, "latest line", e.Lines[len(e.Lines)-1].Text, "message 4999")
				expect(t, "lines", len(e.Lines), maxLines)
				expect(t, "count", e.Count, 5002)
			}
		}
		more = next
	}
	expect(t, "updates of the task", seen, 1)
}

// Memory does not grow with the length of the log. Not parallel: it measures the heap.
func TestMemoryIsBounded(t *testing.T) {
	b := newTasks(0, 0)
	id := 0
	apply := func(name string, p task.Payload) {
		id++
		b.apply(task.Event{ID: fmt.Sprintf("evt_%019d", id), Name: name, Time: begin, Payload: p})
	}
	text := strings.Repeat("text ", 200)
	run := func(tasks int) uint64 {
		for range tasks {
			p := task.Payload{WorkRef: fmt.Sprintf("a#%d", id), Recipient: "r", Text: text, Body: text}
			apply(task.Created, p)
			p.WorkerID, p.AttemptID = "w", "x"
			apply(task.Claimed, p)
			p.Attachments = []task.Attachment{{MediaType: "text/x-diff", Content: text}}
			apply(task.Done, p)
		}
		var s runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&s)
		return s.HeapAlloc
	}
	first := run(2000)
	last := run(98_000)
	expect(t, "kept", len(b.kept), 1000)
	expect(t, "counted", b.queues["r"].Tasks[done], 100_000)
	if last > first+16<<20 {
		t.Errorf("%d MiB more after 98,000 tasks", (last-first)>>20)
	}
}

// What the log contains reaches the page cut and without characters that act.
func TestHostileTextsAreNeutral(t *testing.T) {
	t.Parallel()
	m := hostileLog()
	m.add(task.Created, task.Payload{WorkRef: "", Recipient: "r"})
	m.add(task.Created, task.Payload{WorkRef: strings.Repeat("x", maxRef+1), Recipient: "r"})
	m.add(task.Created, task.Payload{WorkRef: "large", Recipient: "r", Text: strings.Repeat("\x1b", 1<<20)})
	p := m.claim("large", "w")
	p.Text, p.Body = strings.Repeat("\u202e", 1<<20), strings.Repeat("x", 1<<20)
	m.add(task.Message, p)
	b := folded(m, 0, 0)
	expect(t, "defective", b.defective, 2)
	for ref, e := range b.kept {
		text, err := json.Marshal(e)
		if err != nil || len(text) > 128<<10 { // each < takes six bytes
			t.Errorf("%q: %d bytes, %v", ref, len(text), err)
		}
		fields := []string{e.Text, e.Recipient, e.Sender, e.Worker, e.Attempt, e.Branch, e.Commit, e.Run, e.Thread, e.Reason}
		for _, l := range e.Lines {
			fields = append(fields, l.Kind, l.Who, l.Text, l.Body, l.Stale)
		}
		for _, a := range e.Approvals {
			fields = append(fields, a.Text, a.Body)
		}
		for _, field := range fields {
			if strings.ContainsFunc(field, acts) || !utf8.ValidString(field) {
				t.Errorf("%q has the field %.80q", ref, field)
			}
		}
	}
	expect(t, "plain", plain("a\x1b[31m\r\nb\u202e\x7f\u0085\xff", 100), "a␛[31m\nb⟨U+202E⟩␡⟨U+0085⟩\ufffd")
	expect(t, "cut", plain(strings.Repeat("ä", 10), 5), "ää…")
	expect(t, "line", line(" a\n\n b\tc ", 100), "a b c")

	address, _ := serve(t, Options{Log: m})
	status, _, body := send(t, "GET", address+"task?ref="+url.QueryEscape(hostileTexts[1]+"2"), "", nil)
	if status != 200 || strings.Contains(body, "<script") || strings.Contains(body, "\u202e") {
		t.Errorf("%d %.300s", status, body)
	}
}

func TestDetailIsBounded(t *testing.T) {
	t.Parallel()
	m := newMemory()
	m.create("a", "r", "work")
	p := m.claim("a", "w")
	for i := range 1500 {
		p.Text = fmt.Sprint(i)
		m.add(task.Message, p)
	}
	m.add(task.Done, task.Payload{WorkRef: "a", AttemptID: "other", Text: "not the holder"})
	p.Attachments = []task.Attachment{
		{Path: "notes", MediaType: "text/plain", Content: "secret of a file"},
		{Path: "1", MediaType: "text/x-diff; charset=utf-8", Content: base64.StdEncoding.EncodeToString([]byte("+x")), ContentEncoding: "base64"},
		{Path: "2", MediaType: "text/x-diff", Content: strings.Repeat("+line\n", 1<<18)},
		{Path: "3", MediaType: "text/x-diff", Content: "!", ContentEncoding: "base64"},
		{Path: "4", MediaType: "text/x-diff", Content: "x", ContentEncoding: "zstd"},
	}
	for range 30 {
		p.Attachments = append(p.Attachments, task.Attachment{Path: "more", MediaType: "text/x-diff", Content: strings.Repeat("x", 1<<18)})
	}
	p.Closeout = json.RawMessage(`{"a":1}`)
	m.add(task.Done, p)
	address, _ := serve(t, Options{Log: m})
	status, _, body := send(t, "GET", address+"task?ref=a", "", nil)
	var d detail
	if err := json.Unmarshal([]byte(body), &d); err != nil || status != 200 {
		t.Fatal(status, err)
	}
	if len(body) > 6<<20 || strings.Contains(body, "secret of a file") {
		t.Errorf("%d bytes", len(body))
	}
	expect(t, "lines", len(d.Lines), maxTalk)
	expect(t, "skipped", d.Skipped, 1504-maxTalk)
	expect(t, "stale", d.Lines[maxTalk-2].Stale != "", true)
	expect(t, "files", len(d.Result.Files), maxAttachments)
	expect(t, "left", d.Result.Left, 15)
	expect(t, "base64", d.Result.Files[0].Text, "+x")
	expect(t, "cut", d.Result.Files[1].Cut && len(d.Result.Files[1].Text) <= maxDiff+8, true)
	expect(t, "not base64", d.Result.Files[2].Why, "its content is not valid base64")
	expect(t, "other encoding", d.Result.Files[3].Why, "its encoding is zstd")
	expect(t, "closeout", d.Result.Closeout, "{\n  \"a\": 1\n}")
}

// The labels are those that a task requests until a worker reports what it uses.
func TestLabelsOfATask(t *testing.T) {
	t.Parallel()
	m := newMemory()
	m.add(task.Created, task.Payload{WorkRef: "a", Recipient: "r", Text: "work", Labels: task.Labels{WorkerProfile: "large", RequestedEffort: "low", AuthMode: "openai-api-key"}})
	expect(t, "requested", fmt.Sprint(folded(m, 1, 0).kept["a"].Labels), "[{worker profile large} {effort low} {auth mode openai-api-key}]")
	p := m.claim("a", "w")
	p.Labels = task.Labels{
		WorkerProfile: "small", RequestedModel: "m", ObservedModel: "m-1", RequestedEffort: "high",
		AuthMode: "chatgpt-subscription", CredentialSourceKind: "token-file",
	}
	m.add(task.Progress, p)
	expect(t, "used", fmt.Sprint(folded(m, 1, 0).kept["a"].Labels),
		"[{worker profile small} {requested model m} {observed model m-1} {effort high} {auth mode chatgpt-subscription} {credential source token-file}]")
}
