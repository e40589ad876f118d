package acp_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session/acp"
	"github.com/busdk/bus-agent/session/engine"
	"github.com/busdk/bus-agent/session/sessiontest"
)

// editor is an engine that accepts edits, with its agent.
type editor struct {
	t      *testing.T
	engine *acp.Engine
	peer   *peer
	record *record
	asked  int
	// decision is what the user answers.
	decision engine.Decision
}

func newEditor(t *testing.T, g *sessiontest.Ground) *editor {
	e := &acp.Engine{Permits: func(access agent.Access, kind string) bool {
		return access == agent.AccessFull || access == agent.AccessWrite && kind == "edit"
	}}
	p, r := open(t, e, g.Start(agent.AccessWrite))
	send(t, e, p, "go")
	t.Cleanup(func() { p.end(); <-r.closed })
	return &editor{t, e, p, r, 0, engine.Decline}
}

// accepts reports whether the engine accepts a call unasked. members are those of
// the call besides its ID.
func (e *editor) accepts(members string) bool {
	e.t.Helper()
	e.asked++
	e.peer.say(`{"jsonrpc":"2.0","id":%d,"method":"session/request_permission","params":{"sessionId":"s","options":[`+
		`{"optionId":"a","name":"A","kind":"allow_always"},{"optionId":"o","name":"O","kind":"allow_once"},{"optionId":"r","name":"R","kind":"reject_once"}],"toolCall":{"toolCallId":"t%d",%s}}}`,
		e.asked, e.asked, members)
	done, stop := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		select {
		case id := <-e.record.requests:
			_ = e.engine.Answer(e.t.Context(), id, e.decision)
		case <-stop:
		}
	}()
	m := e.peer.expect("")
	close(stop)
	<-done
	return string(m.Result) == selected("o")
}

func quote(text string) string {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(quoted)
}

func TestHostilePaths(t *testing.T) {
	t.Parallel()
	for name, format := range map[string]string{
		"location":        `"kind":"edit","locations":[{"path":%s}]`,
		"second location": `"kind":"edit","locations":[{"path":"file"},{"path":%s}]`,
		"diff":            `"kind":"edit","content":[{"type":"diff","path":%s,"oldText":"a","newText":"b"}]`,
		"input":           `"kind":"edit","rawInput":{"file_path":%s,"content":"/etc/passwd"}`,
		"nested input":    `"kind":"edit","locations":[{"path":"file"}],"rawInput":{"edits":[{"targetFile":%s}]}`,
		"list of inputs":  `"kind":"edit","rawInput":{"paths":["file",%s]}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := sessiontest.NewGround(t)
			e := newEditor(t, g)
			g.Check(t, func(path string) bool { return e.accepts(fmt.Sprintf(format, quote(path))) })
		})
	}
}

func TestCallsThatAreNotAccepted(t *testing.T) {
	t.Parallel()
	g := sessiontest.NewGround(t)
	e := newEditor(t, g)
	outside := quote(g.Outside + "/file")
	for members, want := range map[string]bool{
		`"kind":"edit"`:                false,
		`"kind":"edit","locations":[]`: false,
		`"kind":"edit","locations":[{"path":"file"}],"content":{"type":"diff"}`:                                             false,
		`"kind":"edit","locations":[{"path":"file"}],"content":[{"type":"diff"}]`:                                           false,
		`"kind":"edit","locations":[{"line":3}]`:                                                                            false,
		`"kind":"edit","locations":[{"path":"file"}],"rawInput":{"changes":{` + outside + `:{"type":"add"}}}`:               false,
		`"kind":"edit","locations":[{"path":"file"}],"rawInput":{"path":"file","to":` + outside + `}`:                       false,
		`"kind":"edit","locations":[{"path":"file"}],"rawInput":{"path":"file","new_string":` + outside + `}`:               true,
		`"kind":"delete","locations":[{"path":"file"}]`:                                                                     false,
		`"kind":"execute","locations":[{"path":"file"}]`:                                                                    false,
		`"locations":[{"path":"file"}]`:                                                                                     false,
		`"kind":"edit","locations":[{"path":"file"}],"content":[{"type":"content","content":{"type":"text","text":"why"}}]`: true,
	} {
		if got := e.accepts(members); got != want {
			t.Errorf("%s is accepted unasked: %v", members, got)
		}
	}
}

// What the agent has reported about a call before its request counts as well.
func TestFilesOfACallThatWasReported(t *testing.T) {
	t.Parallel()
	g := sessiontest.NewGround(t)
	e := newEditor(t, g)
	for i, test := range []struct {
		path string
		want bool
	}{{"file", true}, {g.Outside + "/file", false}} {
		e.peer.update(fmt.Sprintf(`{"sessionUpdate":"tool_call","toolCallId":"t%d","kind":"edit","locations":[{"path":%s}]}`, i+1, quote(test.path)))
		if got := e.accepts(`"kind":"edit"`); got != test.want {
			t.Errorf("%s is accepted unasked: %v", test.path, got)
		}
	}
}

// An edit that is accepted for the session is that of the same files. The agent's
// own option for the session can be for every edit.
func TestEditsAcceptedForTheSession(t *testing.T) {
	t.Parallel()
	g := sessiontest.NewGround(t)
	e := newEditor(t, g)
	call := func(paths string) string { return `"kind":"edit","locations":[` + paths + `]` }
	out := func(name string) string { return `{"path":` + quote(g.Outside+name) + `}` }
	link := func(to string) func() {
		return func() {
			_ = os.Remove(g.Outside + "/link")
			if err := os.Symlink(g.Outside+to, g.Outside+"/link"); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, test := range []struct {
		decision engine.Decision
		members  string
		want     bool
		before   func()
	}{
		{engine.Decline, call(out("/file")), false, nil},
		{engine.Accept, call(out("/file")), true, nil},
		{engine.Decline, call(out("/file")), false, nil},
		{engine.AcceptForSession, call(out("/file")), true, nil},
		{engine.Decline, call(out("/file")), true, nil},
		{engine.Decline, call(out("/other")), false, nil},
		{engine.Decline, call(out("/file") + "," + out("/other")), false, nil},
		{engine.Decline, `"kind":"delete","locations":[` + out("/file") + `]`, false, nil},
		{engine.AcceptForSession, call(out("/link")), true, link("/a")},
		{engine.Decline, call(out("/link")), true, nil},
		{engine.Decline, call(out("/link")), false, link("/b")},
		{engine.AcceptForSession, `"kind":"edit"`, true, nil},
		{engine.Decline, `"kind":"edit"`, false, nil},
	} {
		if test.before != nil {
			test.before()
		}
		e.decision = test.decision
		if got := e.accepts(test.members); got != test.want {
			t.Errorf("%s: %s: accepted once %v", test.decision, test.members, got)
		}
	}
	e.engine.Modes = map[agent.Access]string{agent.AccessRead: "plan"}
	set := make(chan error)
	go func() { set <- e.engine.SetAccess(t.Context(), agent.AccessRead) }()
	e.peer.answer(e.peer.expect("session/set_mode"), `{}`)
	if err := <-set; err != nil {
		t.Fatal(err)
	}
	if e.accepts(call(out("/file"))) {
		t.Error("an edit that was accepted with access write is accepted with read")
	}
}

// The user is asked about every file that a call names.
func TestApprovalRequestsNameEveryFile(t *testing.T) {
	t.Parallel()
	g := sessiontest.NewGround(t)
	e := newEditor(t, g)
	e.accepts(`"kind":"edit","locations":[{"path":"file"}],"content":[{"type":"diff","path":"/etc/passwd","newText":"x"}]`)
	if got := e.record.String(); !strings.Contains(got, `"paths":["/etc/passwd","file"]`) {
		t.Error(got)
	}
}
