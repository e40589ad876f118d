package appserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/appserver"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/sessiontest"
)

var update = flag.Bool("update", false, "write the golden files")

// transcript reads a recorded conversation, without the requests that hold one
// of the texts and their answers.
func transcript(t testing.TB, name string, without ...string) []sessiontest.Step {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".ndjson"))
	if err != nil {
		t.Fatal(err)
	}
	all, err := sessiontest.Transcript(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	type identity struct {
		ID     int    `json:"id"`
		Method string `json:"method"`
	}
	left := map[int]bool{}
	var steps []sessiontest.Step
	for _, s := range all {
		var line identity
		if err := json.Unmarshal([]byte(s.Line), &line); err != nil {
			t.Fatal(err)
		}
		for _, w := range without {
			if s.Kind == sessiontest.Expect && strings.Contains(s.Line, w) {
				left[line.ID] = true
			}
		}
		if line.ID != 0 && left[line.ID] && (s.Kind == sessiontest.Expect || line.Method == "") {
			continue
		}
		steps = append(steps, s)
	}
	return steps
}

// log collects what a session says.
type log struct {
	mu    sync.Mutex
	lines []string
}

func (l *log) add(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, fmt.Sprintf(format, args...))
}

// event notes an event; heartbeats are left out.
func (l *log) event(e *agent.Event) {
	if e.Kind != agent.KindHeartbeat {
		text, err := json.Marshal(e)
		l.add("%s%v", text, orNothing(err))
	}
}

func orNothing(err error) string {
	if err == nil {
		return ""
	}
	return " " + err.Error()
}

// turn notes how a turn ended.
func (l *log) turn(t *session.Turn) {
	<-t.Done()
	result, err := t.Wait(context.Background())
	result.Duration = 0
	text, _ := json.Marshal(result)
	l.add("turn: %s%s", text, orNothing(err))
}

// user is what the client of a transcript wants.
type user struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		ThreadID string `json:"threadId"`
		Input    []struct {
			Text string `json:"text"`
		} `json:"input"`
	} `json:"params"`
	Result struct {
		Decision string `json:"decision"`
	} `json:"result"`
}

// want does with s what the client did that sent line.
func want(t *testing.T, s *session.Session, line string) (turn *session.Turn) {
	var u user
	if err := json.Unmarshal([]byte(line), &u); err != nil {
		t.Fatal(err)
	}
	switch u.Method {
	case "turn/start":
		return s.Send(session.Message{Text: u.Params.Input[0].Text})
	case "turn/steer":
		s.Steer(t.Context(), session.Message{Text: u.Params.Input[0].Text})
	case "turn/interrupt":
		if err := s.Interrupt(t.Context()); err != nil {
			t.Error(err)
		}
	case "":
		d, err := session.ParseDecision(u.Result.Decision)
		if err == nil {
			err = s.Answer(t.Context(), string(u.ID), d)
		}
		if err != nil {
			t.Error(err)
		}
	default:
		t.Errorf("the client does not send %s", line)
	}
	return nil
}

// replay plays a transcript in a bubble and returns what came of it.
func replay(t *testing.T, steps []sessiontest.Step, start session.Start) string {
	t.Helper()
	peer := sessiontest.Start(steps)
	l := &log{}
	s, err := session.Open(t.Context(), "test", &appserver.Engine{Info: appserver.ClientInfo{Name: "n", Version: "1"}}, peer, peer.Transport(), start, session.Options{Events: l.event})
	if err != nil {
		l.add("open: %v", err)
	} else {
		l.add("open: %+v", s.Info())
		var turns []*session.Turn
		for {
			synctest.Wait()
			step, ok := peer.Waiting()
			if !ok {
				break
			}
			if turn := want(t, s, step.Line); turn != nil {
				turns = append(turns, turn)
			}
			synctest.Wait()
			if again, ok := peer.Waiting(); ok && again == step {
				t.Fatalf("the client does not send %s", step.Line)
			}
		}
		s.Stop(t.Context(), "")
		for _, turn := range turns {
			l.turn(turn)
		}
	}
	for _, line := range peer.Sent() {
		l.add("> %s", line)
	}
	if n := peer.EndedTools(); n > 0 {
		l.add("tools ended: %d", n)
	}
	return strings.Join(l.lines, "\n") + "\n"
}

func TestTranscripts(t *testing.T) {
	t.Parallel()
	const resumed = "01a1fb80-0ca2-7ee2-95ae-90e935eeb27d"
	for name, test := range map[string]struct {
		start   session.Start
		without []string
	}{
		"approval-cmd-accept":                    {start: session.Start{Workdir: "/w"}},
		"approval-cmd-acceptForSession":          {start: session.Start{Workdir: "/w", Request: agent.Request{Model: "m-1"}}},
		"approval-cmd-decline":                   {start: session.Start{Workdir: "/w", Request: agent.Request{Access: agent.AccessWrite}}},
		"approval-patch2-workspace-write-accept": {},
		"error-401":                              {},
		"interrupt":                              {start: session.Start{Request: agent.Request{Access: agent.AccessRead}}},
		"resume":                                 {start: session.Start{Resume: resumed}},
		"resume-unknown":                         {start: session.Start{Resume: "01a1fb7c-0000-7393-b797-572b628a16aa"}},
		// A session never names a turn that does not run.
		"steer": {without: []string{`"nope"`, `"late"`}},
		"text":  {start: session.Start{Request: agent.Request{Access: agent.AccessFull}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				got := replay(t, transcript(t, name, test.without...), test.start)
				golden := filepath.Join("testdata", name+".golden")
				if *update {
					if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				want, err := os.ReadFile(golden)
				if err != nil {
					t.Fatal(err)
				}
				if got != string(want) {
					t.Errorf("got\n%s\nwant\n%s", got, want)
				}
			})
		})
	}
}

// plays opens a session on a peer with steps for tests that go on from there.
func plays(t *testing.T, o session.Options, steps ...sessiontest.Step) (*session.Session, *sessiontest.Peer) {
	t.Helper()
	peer := sessiontest.Start(append(handshake(), steps...))
	s, err := session.Open(t.Context(), "test", &appserver.Engine{}, peer, peer.Transport(), session.Start{}, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Stop(context.Background(), "") })
	return s, peer
}

func expect(line string) sessiontest.Step {
	return sessiontest.Step{Kind: sessiontest.Expect, Line: line}
}
func say(line string) sessiontest.Step { return sessiontest.Step{Kind: sessiontest.Say, Line: line} }
func pause(d time.Duration) sessiontest.Step {
	return sessiontest.Step{Kind: sessiontest.Pause, For: d}
}

// handshake opens thread t.
func handshake() []sessiontest.Step {
	return []sessiontest.Step{
		expect(`{"id":1,"method":"initialize"}`), say(`{"id":1,"result":{}}`), expect(`{"method":"initialized"}`),
		expect(`{"id":2,"method":"thread/start"}`), say(`{"id":2,"result":{"thread":{"id":"t"},"model":"m"}}`),
	}
}
