package streamjson_test

import (
	"encoding/json"
	"flag"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/backends/claude"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/engine"
	"github.com/busdk/bus-agent/session/sessiontest"
	"github.com/busdk/bus-agent/session/streamjson"
)

var update = flag.Bool("update", false, "write the golden files")

// newEngine returns an engine with the decoder of the agent that was recorded.
func newEngine() *streamjson.Engine {
	return &streamjson.Engine{Decoder: claude.Runtime().Decoder, Modes: map[agent.Access]string{agent.AccessWrite: "acceptEdits"}}
}

// transcript reads a recorded conversation. It begins with the greeting of the
// engine; the agent answered it in one of the records.
func transcript(t testing.TB, name string) []sessiontest.Step {
	t.Helper()
	steps := sessiontest.ReadTranscript(t, filepath.Join("testdata", name+".ndjson"))
	if sessiontest.Key(steps[0].Line) == "control_request initialize" {
		return steps
	}
	return append(greeting(), steps...)
}

func greeting() []sessiontest.Step {
	return []sessiontest.Step{
		expect(`{"type":"control_request","request_id":"r1","request":{"subtype":"initialize"}}`),
		say(`{"type":"control_response","response":{"subtype":"success","request_id":"r1","response":{}}}`),
	}
}

func expect(line string) sessiontest.Step {
	return sessiontest.Step{Kind: sessiontest.Expect, Line: line}
}
func say(line string) sessiontest.Step { return sessiontest.Step{Kind: sessiontest.Say, Line: line} }

// user is what the client of a transcript wants.
type user struct {
	Type    string `json:"type"`
	Message struct {
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
	} `json:"message"`
	Request struct {
		Subtype string `json:"subtype"`
		Model   string `json:"model"`
	} `json:"request"`
	Response struct {
		RequestID string `json:"request_id"`
		Response  struct {
			Behavior string `json:"behavior"`
			Input    struct {
				Answers map[string]string `json:"answers"`
			} `json:"updatedInput"`
		} `json:"response"`
	} `json:"response"`
}

// want does with s what the client did that sent line.
func want(t *testing.T, s *session.Session, line string) *session.Turn {
	var u user
	if err := json.Unmarshal([]byte(line), &u); err != nil {
		t.Fatal(err)
	}
	var err error
	switch u.Type + " " + u.Request.Subtype {
	case "user ":
		return s.Send(session.Message{Text: u.Message.Content[0].Text})
	case "control_request interrupt":
		err = s.Interrupt(t.Context())
	case "control_request set_model":
		err = s.SetModel(t.Context(), u.Request.Model)
	case "control_request set_permission_mode":
		err = s.SetAccess(t.Context(), agent.AccessWrite)
	case "control_response ":
		d := engine.Decline
		if u.Response.Response.Behavior == "allow" {
			d = engine.Accept
		}
		if asked := s.Questions(); len(asked) == 0 {
			err = s.Answer(t.Context(), s.Approvals()[0].ID, d)
		} else if d == engine.Decline {
			err = s.Answer(t.Context(), asked[0].ID, d)
		} else {
			err = s.AnswerQuestions(t.Context(), asked[0].ID, [][]string{{u.Response.Response.Input.Answers[asked[0].Questions[0].Text]}})
		}
	default:
		t.Errorf("the client does not send %s", line)
	}
	if err != nil {
		t.Error(err)
	}
	return nil
}

// replay plays a transcript in a bubble and returns the result.
func replay(t *testing.T, steps []sessiontest.Step) string {
	t.Helper()
	peer := sessiontest.Start(steps)
	l := &sessiontest.Log{}
	e := newEngine()
	e.Questions, e.Answered = asking(t).Questions, asking(t).Answered
	s, err := session.Open(t.Context(), "test", e, peer, peer.Transport(), engine.Start{}, session.Options{Events: l.Event})
	if err != nil {
		t.Fatal(err)
	}
	turns := sessiontest.Replay(t, peer, func(line string) *session.Turn { return want(t, s, line) })
	info := s.Info()
	s.Stop(t.Context(), "")
	for _, turn := range turns {
		l.Turn(turn)
	}
	l.Addf("%+v", info)
	for _, line := range plain(peer.Sent()) {
		l.Addf("> %s", line)
	}
	return l.String()
}

// apart moves the second message behind the result of the first: a session keeps
// it until then.
func apart(steps []sessiontest.Step) []sessiontest.Step {
	user := func(s sessiontest.Step) bool { return sessiontest.Key(s.Line) == "user" }
	first := slices.IndexFunc(steps, user)
	second := first + 1 + slices.IndexFunc(steps[first+1:], user)
	result := slices.IndexFunc(steps, func(s sessiontest.Step) bool { return sessiontest.Key(s.Line) == "result" })
	moved := steps[second]
	steps = slices.Insert(slices.Clone(steps), result+1, moved)
	return slices.Delete(steps, second, second+1)
}

// messageID is the ID of a message, which is another one each time.
var messageID = regexp.MustCompile(`,"uuid":"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"}$`)

// plain returns lines without the IDs of messages.
func plain(lines []string) []string {
	for i := range lines {
		lines[i] = messageID.ReplaceAllString(lines[i], "}")
	}
	return lines
}

// without leaves out what a session never asks.
func without(steps []sessiontest.Step) []sessiontest.Step {
	return slices.DeleteFunc(steps, func(s sessiontest.Step) bool {
		return strings.Contains(s.Line, "no_such") || strings.Contains(s.Line, "m3")
	})
}

func TestTranscripts(t *testing.T) {
	t.Parallel()
	same := func(steps []sessiontest.Step) []sessiontest.Step { return steps }
	for name, adapt := range map[string]func([]sessiontest.Step) []sessiontest.Step{
		"close-midturn": same, "initialize": same, "interrupt": same, "multi": same, "perm-allow": same, "perm-deny": same, "question": same,
		"queued": apart, "set-model-mode": without,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				sessiontest.Golden(t, filepath.Join("testdata", name+".golden"), replay(t, adapt(transcript(t, name))), *update)
			})
		})
	}
}
