package streamjson_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/engine"
	"github.com/busdk/bus-agent/session/sessiontest"
)

// answers returns what the agent is answered when it requests to write a file,
// while the user declines everything.
func answers(t *testing.T, start engine.Start, tool, path string) (answer string) {
	t.Helper()
	input, err := json.Marshal(map[string]string{"file_path": path})
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		e := newEngine()
		e.Edits = func(tool string, input json.RawMessage) []string {
			var in struct {
				File string `json:"file_path"`
			}
			if err := json.Unmarshal(input, &in); err != nil || tool != "Write" {
				return nil
			}
			return []string{in.File}
		}
		peer := sessiontest.Start(append(greeting(), expect(userLine),
			say(fmt.Sprintf(`{"type":"control_request","request_id":"q1","request":{"subtype":"can_use_tool","tool_name":%q,"input":%s,"tool_use_id":"u1"}}`, tool, input)),
			expect(`{"type":"control_response","response":{"subtype":"success","request_id":"q1"}}`), say(result)))
		o := session.Options{Approve: func(context.Context, session.Approval) engine.Decision { return engine.Decline }}
		s, err := session.Open(t.Context(), "test", e, peer, peer.Transport(), start, o)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Stop(context.Background(), "")
		if _, err := s.Send(session.Message{Text: "go"}).Wait(t.Context()); err != nil {
			t.Error(err)
		}
		answer = last(peer.Sent())
	})
	return answer
}

func TestHostilePaths(t *testing.T) {
	t.Parallel()
	g := sessiontest.NewGround(t)
	start := g.Start(agent.AccessWrite)
	g.Check(t, func(path string) bool {
		return strings.Contains(answers(t, start, "Write", path), `"behavior":"allow"`)
	})
	file := g.Workdir + "/file"
	for _, access := range []agent.Access{agent.AccessRead, agent.AccessFull} { // their modes ask nothing that they include
		if got := answers(t, g.Start(access), "Write", file); strings.Contains(got, "allow") {
			t.Errorf("%s: %s", access, got)
		}
	}
	if got := answers(t, start, "Bash", file); strings.Contains(got, "allow") {
		t.Errorf("a tool that does not only edit: %s", got)
	}
}
