package appserver_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/appserver"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/engine"
	"github.com/busdk/bus-agent/session/sessiontest"
)

var update = flag.Bool("update", false, "write the golden files")

// transcript reads a recorded conversation, without the requests that hold one
// of the texts and their answers.
func transcript(t testing.TB, name string, without ...string) []sessiontest.Step {
	t.Helper()
	type identity struct {
		ID     int    `json:"id"`
		Method string `json:"method"`
	}
	left := map[int]bool{}
	var steps []sessiontest.Step
	for _, s := range sessiontest.ReadTranscript(t, filepath.Join("testdata", name+".ndjson")) {
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
		Answers  map[string]struct {
			Answers []string `json:"answers"`
		} `json:"answers"`
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
		if asked := s.Questions(); len(asked) > 0 {
			var err error
			if way := u.Result.Answers["way"].Answers; way != nil {
				err = s.AnswerQuestions(t.Context(), asked[0].ID, [][]string{way})
			} else {
				err = s.Answer(t.Context(), asked[0].ID, session.Decline)
			}
			if err != nil {
				t.Error(err)
			}
			return nil
		}
		d, err := session.ParseDecision(u.Result.Decision)
		if err == nil {
			err = s.Answer(t.Context(), s.Approvals()[0].ID, d)
		}
		if err != nil {
			t.Error(err)
		}
	default:
		t.Errorf("the client does not send %s", line)
	}
	return nil
}

// replay plays a transcript in a bubble and returns the result.
func replay(t *testing.T, steps []sessiontest.Step, start engine.Start) string {
	t.Helper()
	peer := sessiontest.Start(steps)
	l := &sessiontest.Log{}
	s, err := session.Open(t.Context(), "test", &appserver.Engine{Info: appserver.ClientInfo{Name: "n", Version: "1"}}, peer, peer.Transport(), start, session.Options{Events: l.Event})
	var opened string // apart, since the first events can come before Open returns
	if err != nil {
		opened = fmt.Sprintf("open: %v\n", err)
	} else {
		opened = fmt.Sprintf("open: %+v\n", s.Info())
		turns := sessiontest.Replay(t, peer, func(line string) *session.Turn { return want(t, s, line) })
		s.Stop(t.Context(), "")
		for _, turn := range turns {
			l.Turn(turn)
		}
	}
	for _, line := range peer.Sent() {
		l.Addf("> %s", line)
	}
	if n := peer.EndedTools(); n > 0 {
		l.Addf("tools ended: %d", n)
	}
	return opened + l.String()
}

func TestTranscripts(t *testing.T) {
	t.Parallel()
	const resumed = "01a1fb80-0ca2-7ee2-95ae-90e935eeb27d"
	for name, test := range map[string]struct {
		start   engine.Start
		without []string
	}{
		"approval-cmd-accept":                    {start: engine.Start{Workdir: "/w"}},
		"approval-cmd-acceptForSession":          {start: engine.Start{Workdir: "/w", Model: "m-1"}},
		"approval-cmd-decline":                   {start: engine.Start{Workdir: "/w", Access: agent.AccessWrite}},
		"approval-patch2-workspace-write-accept": {},
		"error-401":                              {},
		"question":                               {},
		"interrupt":                              {start: engine.Start{Access: agent.AccessRead}},
		"resume":                                 {start: engine.Start{Resume: resumed}},
		"resume-unknown":                         {start: engine.Start{Resume: "01a1fb7c-0000-7393-b797-572b628a16aa"}},
		// A session never names a turn that does not run.
		"steer": {without: []string{`"nope"`, `"late"`}},
		"text":  {start: engine.Start{Access: agent.AccessFull}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				got := replay(t, transcript(t, name, test.without...), test.start)
				sessiontest.Golden(t, filepath.Join("testdata", name+".golden"), got, *update)
			})
		})
	}
}

// plays opens a session on a peer with steps for tests that continue from there.
func plays(t *testing.T, o session.Options, steps ...sessiontest.Step) (*session.Session, *sessiontest.Peer) {
	t.Helper()
	peer := sessiontest.Start(append(handshake(), steps...))
	s, err := session.Open(t.Context(), "test", &appserver.Engine{}, peer, peer.Transport(), engine.Start{}, o)
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
