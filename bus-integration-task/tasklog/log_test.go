package tasklog_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/busdk/bus-integration-task/events"
	"github.com/busdk/bus-integration-task/eventserver"
	"github.com/busdk/bus-integration-task/internal/testwait"
	"github.com/busdk/bus-integration-task/task"
	"github.com/busdk/bus-integration-task/tasklog"
)

// A server is an events server whose connections can be cut.
type server struct {
	http *httptest.Server
	down atomic.Bool // answers no request
	log  *tasklog.Log

	mu   sync.Mutex
	lost []string // reports of Log.Disconnected
}

func newServer(t *testing.T) *server {
	t.Helper()
	secret := []byte(strings.Repeat("s", eventserver.MinSecretBytes))
	s, err := eventserver.Open(t.Context(), eventserver.Config{Secret: secret, Store: t.TempDir(), SyncEvery: time.Minute, MinFreeBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	r := &server{}
	r.http = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if r.down.Load() {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		s.ServeHTTP(w, request)
	}))
	t.Cleanup(func() { s.Close(); r.http.Close() })
	token, err := eventserver.Mint(secret, eventserver.MintOptions{
		Subject: "alice", Scopes: []string{eventserver.ScopeSend, eventserver.ScopeListen, eventserver.ScopeTaskAdmin, eventserver.ScopeContainerRun}, Lifetime: time.Hour,
	})
	if err != nil {
		t.Fatal(err)
	}
	r.log = &tasklog.Log{
		Client: &events.Client{URL: r.http.URL, Token: events.StaticToken(token), Retry: events.Retry{Min: time.Millisecond, Max: 10 * time.Millisecond}},
		Disconnected: func(err error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.lost = append(r.lost, err.Error())
		},
	}
	return r
}

func (s *server) add(t *testing.T, name, ref string, p task.Payload) string {
	t.Helper()
	p.WorkRef = ref
	id, err := s.log.Add(t.Context(), name, p)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// publish publishes what Add would refuse.
func (s *server) publish(t *testing.T, name, payload string) {
	t.Helper()
	if _, err := s.log.Client.Publish(t.Context(), events.Draft{Name: name, Payload: json.RawMessage(payload)}); err != nil {
		t.Fatal(err)
	}
}

// texts collects the texts of events, and ends after the one that is "last".
type texts struct{ all []string }

var errLast = errors.New("last")

func (x *texts) add(e task.Event) error {
	x.all = append(x.all, e.Text)
	if e.Text == "last" {
		return errLast
	}
	return nil
}

func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// The states that the log adds up to are those of its tasks; other events do not count.
func TestLogAddsUpToStates(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	var skipped []string
	s.log.Skipped = func(err error) { skipped = append(skipped, err.Error()) }
	s.add(t, task.Created, "bus#1.1", task.Payload{Recipient: "dev", Text: "one"})
	s.publish(t, "example.ping", `{"work_ref":"bus#1.1"}`)
	s.publish(t, "bus.dev.task.done", `{"work_ref":"bus#1.1","status":"done"}`)
	s.publish(t, "bus.containers.run.request", `{}`)
	s.add(t, task.Created, "bus#2.1", task.Payload{Recipient: "ops", Text: "two"})
	last := s.add(t, task.Canceled, "bus#2.1", task.Payload{Text: "not needed"})
	states := map[string]*task.State{}
	if err := s.log.All(bounded(t), func(e task.Event) error {
		if states[e.WorkRef] == nil {
			states[e.WorkRef] = &task.State{}
		}
		states[e.WorkRef].Apply(e)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if one, two := states["bus#1.1"], states["bus#2.1"]; len(states) != 2 || one.Status != task.StatusOpen || one.Title != "one" ||
		two.Status != task.StatusCanceled || two.Recipient != "ops" || two.LastID != last || len(skipped) > 0 {
		t.Errorf("%+v, %+v, skipped %q", one, two, skipped)
	}
	var all texts
	if err := s.log.Read(bounded(t), "bus#2.1", "", all.add); err != nil || !slices.Equal(all.all, []string{"two", "not needed"}) {
		t.Errorf("%q, %v", all.all, err)
	}
	all = texts{}
	if err := s.log.Read(bounded(t), "bus#2.1", states["bus#2.1"].CreatedID, all.add); err != nil || !slices.Equal(all.all, []string{"not needed"}) {
		t.Errorf("after the first: %q, %v", all.all, err)
	}
}

// An event that is not one of a task is reported and left out. One of a task that is
// defective is delivered, since conditional appends depend on its ID.
func TestDefectiveEvents(t *testing.T) {
	t.Parallel()
	line := func(n int, payload string) string {
		return fmt.Sprintf(`{"version":"v1","id":%q,"name":"bus.task.message","payload":%s}`+"\n", events.FormatID(uint64(n)), payload)
	}
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, line(1, `[]`), line(2, `{"work_ref":"../x"}`), line(3, `{"work_ref":"bus#1.1","text":7}`), line(4, `{"work_ref":"bus#1.1","text":"good"}`))
	}))
	t.Cleanup(h.Close)
	var skipped []string
	log := &tasklog.Log{
		Client:  &events.Client{URL: h.URL, Token: events.StaticToken("t")},
		Skipped: func(err error) { skipped = append(skipped, err.Error()) },
	}
	var ids []string
	if err := log.All(bounded(t), func(e task.Event) error { ids = append(ids, e.ID); return nil }); err != nil {
		t.Fatal(err)
	}
	if want := []string{events.FormatID(3), events.FormatID(4)}; !slices.Equal(ids, want) || len(skipped) != 2 || !strings.Contains(skipped[1], "../x") {
		t.Errorf("%q, skipped %q", ids, skipped)
	}
}

// Follow delivers every event once and in order, also of times when the server was away,
// and reports each loss once.
func TestFollowReconnects(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.log.Client.HTTP = s.http.Client()
	s.add(t, task.Created, "bus#1.1", task.Payload{Recipient: "dev", Text: "first"})
	caughtUp, ended := make(chan struct{}, 100), make(chan error, 1)
	var all texts
	go func() { ended <- s.log.Follow(bounded(t), all.add, func() { caughtUp <- struct{}{} }) }()
	<-caughtUp
	s.add(t, task.Message, "bus#1.1", task.Payload{Text: "second"})
	for n, text := range []string{"third", "last"} {
		s.down.Store(true)
		s.http.CloseClientConnections()
		testwait.Until(t, "losses that are reported", func() (lost int, ok bool) {
			s.mu.Lock()
			defer s.mu.Unlock()
			select {
			case err := <-ended:
				t.Fatalf("it has ended: %v", err)
			default:
			}
			return len(s.lost), len(s.lost) > n
		})
		s.http.Client().CloseIdleConnections() // those that the server has closed
		s.down.Store(false)
		s.add(t, task.Message, "bus#1.1", task.Payload{Text: text})
		if text != "last" {
			<-caughtUp
		}
	}
	if err := <-ended; !errors.Is(err, errLast) || !slices.Equal(all.all, []string{"first", "second", "third", "last"}) {
		t.Errorf("%q, %v", all.all, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.lost) != 2 {
		t.Errorf("two losses were reported as %q", s.lost)
	}
}

// Without a server, what waits for a result fails at once, and Follow waits for it.
func TestUnreachableServer(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.down.Store(true)
	nothing := func(task.Event) error { return nil }
	for name, call := range map[string]func(context.Context) error{
		"All":  func(ctx context.Context) error { return s.log.All(ctx, nothing) },
		"Read": func(ctx context.Context) error { return s.log.Read(ctx, "bus#1.1", "", nothing) },
		"Append": func(ctx context.Context) error {
			_, err := s.log.Append(ctx, task.Message, task.Payload{WorkRef: "bus#1.1"}, "")
			return err
		},
		"Add": func(ctx context.Context) error {
			_, err := s.log.Add(ctx, task.Message, task.Payload{WorkRef: "bus#1.1"})
			return err
		},
	} {
		if err := call(bounded(t)); !errors.Is(err, events.ErrUnavailable) {
			t.Errorf("%s: %v", name, err)
		}
	}
	ended := make(chan error, 1)
	var all texts
	go func() { ended <- s.log.Watch(bounded(t), "bus#1.1", "", all.add) }()
	s.down.Store(false)
	s.add(t, task.Created, "bus#2.1", task.Payload{Recipient: "dev", Text: "another task"})
	s.add(t, task.Created, "bus#1.1", task.Payload{Recipient: "dev", Text: "last"})
	if err := <-ended; !errors.Is(err, errLast) || !slices.Equal(all.all, []string{"last"}) {
		t.Errorf("%q, %v", all.all, err)
	}
}

// An event that readers would ignore is not sent.
func TestUselessEventIsNotSent(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	for want, c := range map[string]struct {
		name    string
		payload task.Payload
	}{
		"work_ref":     {task.Created, task.Payload{Recipient: "dev"}},
		"recipient":    {task.Created, task.Payload{WorkRef: "bus#1.1", Recipient: "../x"}},
		"branch":       {task.Created, task.Payload{WorkRef: "bus#1.1", Recipient: "dev", Branch: "a\nb"}},
		"status":       {task.Created, task.Payload{WorkRef: "bus#1.1", Recipient: "dev", Status: "done"}},
		"decision":     {task.ApprovalAnswered, task.Payload{WorkRef: "bus#1.1", ApprovalID: "1", Decision: "perhaps"}},
		"unknown name": {"bus.task.asleep", task.Payload{WorkRef: "bus#1.1"}},
	} {
		_, added := s.log.Add(t.Context(), c.name, c.payload)
		_, appended := s.log.Append(t.Context(), c.name, c.payload, "")
		for _, err := range []error{added, appended, tasklog.Check(c.name, c.payload)} {
			if !errors.Is(err, task.ErrInvalid) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", want, err)
			}
		}
	}
	if err := s.log.All(bounded(t), func(e task.Event) error { return fmt.Errorf("%s was sent", e.Name) }); err != nil {
		t.Error(err)
	}
}

func TestAppendIsConditional(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	created := task.Payload{WorkRef: "bus#1.1", Recipient: "dev"}
	first, err := s.log.Append(t.Context(), task.Created, created, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.log.Append(t.Context(), task.Created, created, ""); !errors.Is(err, tasklog.ErrConflict) {
		t.Errorf("created twice: %v", err)
	}
	if _, err := s.log.Append(t.Context(), task.Message, task.Payload{WorkRef: "bus#1.1"}, first); err != nil {
		t.Error(err)
	}
}

// A reader keeps nothing of the events that it has delivered.
func TestMemoryIsBounded(t *testing.T) {
	const n = 64
	payload := `{"work_ref":"bus#1.1","text":"` + strings.Repeat("x", 256<<10) + `"}`
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for i := range n {
			fmt.Fprintf(w, `{"version":"v1","id":%q,"name":"bus.task.message","payload":%s}`+"\n", events.FormatID(uint64(i+1)), payload)
		}
	}))
	t.Cleanup(h.Close)
	log := &tasklog.Log{Client: &events.Client{URL: h.URL, Token: events.StaticToken("t")}}
	var state task.State
	var most, before uint64
	inUse := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before = inUse()
	seen := 0
	if err := log.All(bounded(t), func(e task.Event) error {
		state.Apply(e)
		if seen++; seen%16 == 0 {
			most = max(most, inUse())
		}
		return nil
	}); err != nil || seen != n {
		t.Fatal(seen, err)
	}
	if most > before+8<<20 {
		t.Errorf("%d MiB are in use after %d events of 256 KiB, %d MiB before", most>>20, n, before>>20)
	}
}
