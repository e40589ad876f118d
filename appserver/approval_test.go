package appserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/appserver"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/engine"
	"github.com/busdk/bus-agent/session/sessiontest"
)

// requests plays a request for an approval after other lines, declines it and
// returns what the user was asked.
func requests(t *testing.T, start engine.Start, lines ...string) (asked []session.Approval) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		steps := append(handshake(), expect(startTurn), say(turn1), say(begun1))
		for _, line := range lines {
			steps = append(steps, say(line))
		}
		peer := sessiontest.Start(append(steps, expect(`{"id":7,"result":{}}`), say(ended1)))
		o := session.Options{Approve: func(_ context.Context, a session.Approval) engine.Decision {
			asked = append(asked, a)
			return engine.Decline
		}}
		s, err := session.Open(t.Context(), "test", &appserver.Engine{}, peer, peer.Transport(), start, o)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Stop(context.Background(), "")
		if _, err := s.Send(session.Message{Text: "go"}).Wait(t.Context()); err != nil {
			t.Error(err)
		}
		if got := strings.Join(peer.Sent(), "\n"); !strings.Contains(got, `"decline"`) {
			t.Errorf("the server is answered %s", got)
		}
	})
	return asked
}

// What is open when the turn ends is declined: a subagent that works on would wait.
func TestRequestsThatOutliveTheirTurnAreDeclined(t *testing.T) {
	t.Parallel()
	for request, want := range map[string]string{
		`{"id":7,"method":"item/fileChange/requestApproval","params":{"threadId":"sub","turnId":"9","itemId":"f"}}`:                                                                `{"id":7,"result":{"decision":"decline"}}`,
		`{"id":7,"method":"item/tool/requestUserInput","params":{"threadId":"sub","turnId":"9","itemId":"f","questions":[{"id":"q","header":"H","question":"?","options":null}]}}`: `{"id":7,"result":{"answers":{}}}`,
	} {
		synctest.Test(t, func(t *testing.T) {
			peer := sessiontest.Start(append(handshake(), expect(startTurn), say(turn1), say(begun1), say(request), say(ended1), expect(want)))
			s, err := session.Open(t.Context(), "test", &appserver.Engine{}, peer, peer.Transport(), engine.Start{}, session.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Stop(context.Background(), "")
			if _, err := s.Send(session.Message{Text: "go"}).Wait(t.Context()); err != nil {
				t.Error(err)
			}
			synctest.Wait()
			if sent := peer.Sent(); sent[len(sent)-1] != want {
				t.Errorf("answered %s", sent[len(sent)-1])
			}
		})
	}
}

// The server requests an approval for what its sandbox does not include. None is
// given unasked, and the user sees where a file goes.
func TestHostilePaths(t *testing.T) {
	t.Parallel()
	g := sessiontest.NewGround(t)
	start := g.Start(agent.AccessWrite)
	for _, p := range g.Paths {
		name, err := json.Marshal(p.Path)
		if err != nil {
			t.Fatal(err)
		}
		asked := requests(t, start,
			fmt.Sprintf(`{"method":"item/started","params":{"threadId":"t","turnId":"1","item":{"type":"fileChange","id":"f","changes":[{"path":"/a","kind":{"type":"update","move_path":%s}}]}}}`, name),
			`{"id":7,"method":"item/fileChange/requestApproval","params":{"threadId":"t","turnId":"1","itemId":"f"}}`)
		if len(asked) != 1 || p.Path != "" && !strings.Contains(string(asked[0].Tool.Input), string(name)) {
			t.Errorf("%s: asked %+v", p.Name, asked)
		}
	}
}

// What else an accept would allow is in the request.
func TestApprovalsNameWhatTheyGrant(t *testing.T) {
	t.Parallel()
	for request, want := range map[string]string{
		`{"id":7,"method":"item/fileChange/requestApproval","params":{"threadId":"t","itemId":"f","grantRoot":"/"}}`:                                                                   `{"changes":"the agent does not name the files","grantRoot":"/"}`,
		`{"id":7,"method":"item/fileChange/requestApproval","params":{"threadId":"t","itemId":"f","grantRoot":null}}`:                                                                  `{"changes":"the agent does not name the files"}`,
		`{"id":7,"method":"item/commandExecution/requestApproval","params":{"threadId":"t","itemId":"f","command":"ls","cwd":"/w"}}`:                                                   `{"command":"ls"}`,
		`{"id":7,"method":"item/commandExecution/requestApproval","params":{"threadId":"t","itemId":"f","command":"ls","cwd":"/etc","networkApprovalContext":{"host":"example.com"}}}`: `{"command":"ls","cwd":"/etc","networkApprovalContext":{"host":"example.com"}}`,
		`{"id":7,"method":"item/commandExecution/requestApproval","params":{"threadId":"t","itemId":"f","command":"ls","additionalPermissions":{"fileSystem":{"write":["/"]}}}}`:       `{"additionalPermissions":{"fileSystem":{"write":["/"]}},"command":"ls"}`,
		`{"id":7,"method":"item/commandExecution/requestApproval","params":{"threadId":"t","itemId":"f","command":"ls","additionalPermissions":null,"networkApprovalContext":null}}`:   `{"command":"ls"}`,
	} {
		asked := requests(t, engine.Start{Workdir: "/w"}, request)
		if len(asked) != 1 || string(asked[0].Tool.Input) != want {
			t.Errorf("%s: asked %+v, want %s", request, asked, want)
		}
	}
}
