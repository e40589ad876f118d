package worker_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/busdk/bus-integration-task/events"
	"github.com/busdk/bus-integration-task/eventserver"
	"github.com/busdk/bus-integration-task/task"
	"github.com/busdk/bus-integration-task/tasklog"
	"github.com/busdk/bus-integration-task/worker"
	"github.com/busdk/bus-integration-task/worker/backend"
)

// A network is the way to a server, which tests can break.
type network struct {
	t      *testing.T
	secret []byte
	token  string // file
	url    string

	mu      sync.Mutex
	down    bool
	refused string                   // token
	lose    func(*http.Request) bool // whether the answer is lost
	open    map[io.Closer]bool
}

func newNetwork(t *testing.T) *network {
	t.Helper()
	n := &network{t: t, secret: []byte(strings.Repeat("s", eventserver.MinSecretBytes)), token: filepath.Join(t.TempDir(), "token"), open: map[io.Closer]bool{}}
	s, err := eventserver.Open(t.Context(), eventserver.Config{Secret: n.secret, Store: t.TempDir(), SyncEvery: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(s)
	t.Cleanup(func() { n.set(true); s.Close(); h.Close() })
	n.url = h.URL
	n.newToken("first")
	return n
}

// newToken replaces the token in the file, and returns it.
func (n *network) newToken(id string) string {
	n.t.Helper()
	token, err := eventserver.Mint(n.secret, eventserver.MintOptions{Subject: "local", Lifetime: time.Hour + time.Duration(len(id))*time.Second, Scopes: []string{
		eventserver.ScopeSend, eventserver.ScopeListen, eventserver.ScopeTaskRead, eventserver.ScopeTaskSend, eventserver.ScopeTaskReply, eventserver.ScopeTaskClaim,
	}})
	if err == nil {
		err = os.WriteFile(n.token+".new", []byte(token), 0o600)
	}
	if err == nil {
		err = os.Rename(n.token+".new", n.token)
	}
	if err != nil {
		n.t.Fatal(err)
	}
	return token
}

// log returns a log that uses the network.
func (n *network) log() *tasklog.Log {
	return &tasklog.Log{Client: &events.Client{
		URL: n.url, Token: events.TokenFile(n.token), HTTP: &http.Client{Transport: n}, Source: "test",
		Retry: events.Retry{Min: time.Millisecond, Max: 10 * time.Millisecond},
	}}
}

// set breaks all connections, and those to come if down is set.
func (n *network) set(down bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.down = down
	for c := range n.open {
		c.Close()
		delete(n.open, c)
	}
}

// expire makes the server refuse a token.
func (n *network) expire(token string) {
	n.mu.Lock()
	n.refused = token
	n.mu.Unlock()
	n.set(false)
}

func (n *network) RoundTrip(r *http.Request) (*http.Response, error) {
	n.mu.Lock()
	down, refused, lost := n.down, n.refused != "" && r.Header.Get("Authorization") == "Bearer "+n.refused, n.lose != nil && n.lose(r)
	n.mu.Unlock()
	if down {
		return nil, errors.New("connection refused")
	}
	if refused {
		return &http.Response{StatusCode: http.StatusUnauthorized, Body: http.NoBody, Header: http.Header{}, Request: r}, nil
	}
	response, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if lost {
		response.Body.Close()
		return nil, errors.New("connection reset")
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.open[response.Body] = true
	return response, nil
}

// post adds an event of a user.
func (n *network) post(name string, p task.Payload) {
	n.t.Helper()
	direct := n.log()
	direct.Client.HTTP, direct.Client.Token = nil, events.StaticToken(n.newToken("user"))
	if _, err := direct.Add(n.t.Context(), name, p); err != nil {
		n.t.Fatal(err)
	}
}

// await waits until a task is in a state that wanted accepts, and returns its events.
func (n *network) await(ref string, wanted func(task.State) bool) (task.State, []string) {
	n.t.Helper()
	direct := n.log()
	direct.Client.HTTP = nil
	ctx, cancel := context.WithTimeout(n.t.Context(), time.Minute)
	defer cancel()
	var state task.State
	var names []string
	enough := errors.New("enough")
	err := direct.Watch(ctx, ref, "", func(e task.Event) error {
		state.Apply(e)
		names = append(names, e.Name)
		if wanted(state) {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) {
		n.t.Fatalf("%v: task %+v, events %q", err, state, names)
	}
	return state, names
}

// A server that is away at the start, in a turn, or when a task ends, delays the task.
func TestServerIsDown(t *testing.T) {
	t.Parallel()
	n := newNetwork(t)
	n.set(true)
	lost := 0
	n.lose = func(r *http.Request) bool { // the answer to the end
		if !strings.HasSuffix(r.URL.Path, "/append") {
			return false
		}
		body, err := r.GetBody()
		if err != nil {
			t.Error(err)
			return false
		}
		text, _ := io.ReadAll(body)
		is := strings.Contains(string(text), task.Done) && lost == 0
		if is {
			lost++
		}
		return is
	}
	working := make(chan struct{})
	w := newWorker(nil, "w", handler(func(ctx context.Context, c *worker.Claim) worker.End {
		close(working)
		if err := c.Progress(ctx, "while it is down"); err != nil {
			t.Error(err)
		}
		return worker.End{Name: task.Done, Payload: task.Payload{Text: "did it"}}
	}))
	w.Log = n.log()
	stop := start(t, w)
	n.post(task.Created, task.Payload{WorkRef: "bus#1.1", Recipient: "dev", Text: "fix"})
	n.set(false)
	<-working
	n.set(true)
	time.AfterFunc(20*time.Millisecond, func() { n.set(false) })
	state, names := n.await("bus#1.1", ended)
	if err := stop(); err != nil {
		t.Error(err)
	}
	if state.Status != task.StatusDone || strings.Count(strings.Join(names, " "), task.Claimed) != 1 || names[len(names)-1] != task.Done || lost != 1 {
		t.Errorf("%+v, events %q, %d lost", state, names, lost)
	}
	if state, names := n.await("bus#1.1", ended); state.Round != 1 || strings.Count(strings.Join(names, " "), task.Done) != 1 {
		t.Errorf("%q", names)
	}
}

// A token that expires in a turn ends the turn before Git is touched or an end is
// published. Once its file is replaced, the same worker works again; a file that was
// replaced before is read without an interruption.
func TestTokenExpiresInATurn(t *testing.T) {
	t.Parallel()
	for name, early := range map[string]bool{"file replaced in time": true, "file replaced later": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n, s := newNetwork(t), newSite(t)
			old := n.newToken("old token")
			n.post(task.Created, task.Payload{WorkRef: "bus#1.1", Recipient: "dev", Text: "fix"})
			old = n.newToken("old token")
			before := s.git("rev-parse", "HEAD")
			turns := 0
			w := newWorker(nil, "w", s.bridge(func(ctx context.Context, a backend.Attempt, l backend.Listener) string {
				if turns++; turns == 1 {
					if early {
						n.newToken("new")
					}
					n.expire(old)
				}
				return add(t, "two\n")(ctx, a, l)
			}))
			w.Log, w.Lease, w.NewID, w.Once = n.log(), 6*time.Second, nil, true
			err := w.Run(t.Context())
			if early {
				if state, _ := n.await("bus#1.1", ended); err != nil || state.Status != task.StatusDone || turns != 1 {
					t.Errorf("%v: %+v, %d turns; log %q", err, state, turns, s.warnings)
				}
				return
			}
			if !errors.Is(err, events.ErrUnauthorized) || s.git("rev-parse", "HEAD") != before || len(s.leftTrees()) != 1 { // with the work
				t.Errorf("Run = %v; worktrees %q", err, s.leftTrees())
			}
			n.newToken("new")
			if state, names := n.await("bus#1.1", func(state task.State) bool { return state.Status.Held() }); state.Status.Ended() {
				t.Errorf("%q", names)
			}
			if err := w.Run(t.Context()); err != nil {
				t.Error(err)
			}
			if state, _ := n.await("bus#1.1", ended); state.Status != task.StatusDone || turns != 2 {
				t.Errorf("%+v, %d turns; log %q", state, turns, s.warnings)
			}
		})
	}
}

// A request as large as an event can be ends its task, and nothing else.
func TestEventOfFourMebibytes(t *testing.T) {
	t.Parallel()
	n, s := newNetwork(t), newSite(t)
	n.post(task.Created, task.Payload{WorkRef: "bus#1.1", Recipient: "dev", Text: "fix", Body: strings.Repeat("x", events.MaxPayloadBytes-1000)})
	n.post(task.Created, task.Payload{WorkRef: "bus#2.1", Recipient: "dev", Text: "fix"})
	w := newWorker(nil, "w", s.bridge(add(t, "two\n")))
	w.Log = n.log()
	stop := start(t, w)
	large, _ := n.await("bus#1.1", ended)
	small, _ := n.await("bus#2.1", ended)
	if err := stop(); err != nil {
		t.Error(err)
	}
	if large.Status != task.StatusFailed || !strings.Contains(large.End.Text, "more than 1048576 bytes") || small.Status != task.StatusDone {
		t.Errorf("%+v, %+v", large.End, small.End)
	}
}

// A noisyLog delivers events more than once, and those of several tasks out of order.
type noisyLog struct{ *memoryLog }

func (l noisyLog) Follow(ctx context.Context, each func(task.Event) error, caughtUp func()) error {
	var held, last *task.Event
	deliver := func(e *task.Event) error {
		if last != nil { // once more
			if err := each(*last); err != nil {
				return err
			}
		}
		last = e
		return errors.Join(each(*e), each(*e))
	}
	return l.memoryLog.Follow(ctx, func(e task.Event) error {
		if held == nil && strings.HasSuffix(e.WorkRef, ".1") {
			held = &e
			return nil
		}
		if held != nil && e.WorkRef != held.WorkRef {
			late := held
			held = nil
			return errors.Join(deliver(&e), deliver(late))
		}
		if held != nil {
			first := held
			held = nil
			return errors.Join(deliver(first), deliver(&e))
		}
		return deliver(&e)
	}, caughtUp)
}

// Neither the times of events nor how often they are delivered decides anything.
func TestDuplicatesReorderingAndClockSkew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := newLog()
		skew := rand.New(rand.NewPCG(1, 2))
		log.stamp = func() time.Time {
			return time.Now().Add(time.Duration(skew.Int64N(int64(20*365*24*time.Hour))) - 10*365*24*time.Hour)
		}
		log.post(task.Created, task.Payload{WorkRef: "bus#9.2", Recipient: "dev", Text: "lost"})
		log.post(task.Claimed, task.Payload{WorkRef: "bus#9.2", WorkerID: "x", AttemptID: "x-1", LeaseSeconds: 600})
		for n := range 6 {
			create(log, fmt.Sprintf("bus#%d.1", n))
			create(log, fmt.Sprintf("bus#%d.2", n))
		}
		w := newWorker(nil, "w", handler(func(context.Context, *worker.Claim) worker.End {
			time.Sleep(time.Second)
			return worker.End{Name: task.Done}
		}))
		w.Log = noisyLog{log}
		stop := start(t, w)
		time.Sleep(9 * time.Minute)
		if s := log.state("bus#9.2"); s.Attempt.ID != "x-1" {
			t.Errorf("the claim of another worker was superseded too early: %+v", s)
		}
		time.Sleep(2 * time.Minute)
		if err := stop(); err != nil {
			t.Error(err)
		}
		for n := range 6 {
			for part := 1; part <= 2; part++ {
				ref := fmt.Sprintf("bus#%d.%d", n, part)
				if log.state(ref).Status != task.StatusDone || log.count(ref, task.Claimed) != 1 || log.count(ref, task.Done) != 1 {
					t.Errorf("%+v", log.state(ref))
				}
			}
		}
		if s := log.state("bus#9.2"); s.Status != task.StatusDone || s.Lapsed != 1 {
			t.Errorf("%+v", s)
		}
	})
}

// Two workers that were given the same ID share the tasks as two others do.
func TestWorkersWithOneID(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := newLog()
		for n := range 10 {
			create(log, fmt.Sprintf("bus#%d.1", n))
		}
		var stops []func() error
		for range 2 {
			w := newWorker(log, "same", handler(func(context.Context, *worker.Claim) worker.End {
				time.Sleep(time.Second)
				return worker.End{Name: task.Done}
			}))
			w.NewID = nil
			stops = append(stops, start(t, w))
		}
		time.Sleep(time.Minute)
		if err := errors.Join(stops[0](), stops[1]()); err != nil {
			t.Error(err)
		}
		for n := range 10 {
			ref := fmt.Sprintf("bus#%d.1", n)
			if log.state(ref).Status != task.StatusDone || log.count(ref, task.Claimed) != 1 || log.count(ref, task.Done) != 1 {
				t.Errorf("%+v", log.state(ref))
			}
		}
	})
}

// What a task's fields say for a shell, git, a path or a terminal has no effect.
func TestHostilePayloads(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]task.Payload{
		"option as branch":         {Branch: "--upload-pack=touch /tmp/owned", CreateBranch: true},
		"path as branch":           {Branch: "../../../owned", CreateBranch: true},
		"reserved branch":          {Branch: "refs/heads/main", CreateBranch: true},
		"option as base":           {BaseBranch: "-c core.pager=touch"},
		"revision as base":         {BaseBranch: "main@{upstream}"},
		"path as worktree":         {WorktreeID: "../../..", ReuseWorktree: true},
		"option as worktree":       {WorktreeID: "--force", ReuseWorktree: true},
		"title for a terminal":     {Text: "\x1b]0;owned\x07\x1b[2J\u202egpj.exe"},
		"title for a shell":        {Text: "$(touch owned); `touch owned` && touch owned\n--amend"},
		"body for a prompt parser": {Text: "x", Body: "--dangerously-bypass-approvals-and-sandbox"},
		"thread as option":         {Text: "x", ThreadID: "--last"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			before := s.git("for-each-ref", "--format=%(refname)")
			p.WorkRef, p.Recipient = "bus#1.1", "dev"
			s.log.post(task.Created, p)
			state := s.run(func(ctx context.Context, a backend.Attempt, l backend.Listener) string {
				add(t, "two\n")(ctx, a, l)
				return strings.Replace(report(true, "new.txt"), "add a file", `add \u001b]0;owned\u0007 a file`, 1)
			}, ended)
			if refused := p.Text == ""; refused != (state.Status == task.StatusFailed) || !refused && state.Status != task.StatusDone {
				t.Errorf("%+v; log %q", state.End, s.warnings)
			}
			if refs := s.git("for-each-ref", "--format=%(refname)"); refs != before {
				t.Errorf("references %q", refs)
			}
			message := s.git("log", "-1", "--format=%B")
			if strings.ContainsAny(message+state.End.Text+strings.Join(s.warnings, ""), "\x1b\x07") {
				t.Errorf("escapes in %q, %q or %q", message, state.End.Text, s.warnings)
			}
			err := filepath.WalkDir(filepath.Dir(s.workspace), func(path string, _ os.DirEntry, err error) error {
				if err == nil && strings.Contains(filepath.Base(path), "owned") {
					t.Errorf("%s exists", path)
				}
				return err
			})
			if err != nil || len(s.leftTrees()) > 0 {
				t.Errorf("%v, worktrees %q", err, s.leftTrees())
			}
		})
	}
}

// A recipient that is a path is for no worker, and has no repository.
func TestHostileRecipient(t *testing.T) {
	t.Parallel()
	for _, recipient := range []string{"../dev", "dev/../..", "/etc", ".git", "-x", "dev\x00"} {
		s := newSite(t)
		if folder, err := s.settings.Repository(recipient); err == nil {
			t.Errorf("%q: %s", recipient, folder)
		}
		if _, err := task.Decode("evt_0000000000000000001", task.Created, "", time.Time{}, fmt.Appendf(nil, `{"work_ref":%q,"recipient":"dev"}`, "a/"+recipient+"/..")); err == nil {
			t.Errorf("%q is part of a reference", recipient)
		}
	}
}
