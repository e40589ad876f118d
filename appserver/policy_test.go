package appserver_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/appserver"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/engine"
	"github.com/busdk/bus-agent/session/policy"
	"github.com/busdk/bus-agent/session/sessiontest"
)

// What a policy decides reaches the server as an answer of the user does, and what it
// leaves reaches the user: all that allows more than a command or a change of files.
func TestPolicy(t *testing.T) {
	t.Parallel()
	workdir := t.TempDir()
	command := func(line, more string) string {
		return fmt.Sprintf(`{"id":7,"method":"item/commandExecution/requestApproval","params":{"itemId":"c","command":%q%s}}`, line, more)
	}
	change := func(kind, path, more string) []string {
		return []string{
			fmt.Sprintf(`{"method":"item/started","params":{"threadId":"t","turnId":"1","item":{"type":"fileChange","id":"f","changes":[{"path":%q,"kind":{"type":%q}}]}}}`, path, kind),
			`{"id":7,"method":"item/fileChange/requestApproval","params":{"threadId":"t","turnId":"1","itemId":"f"` + more + `}}`,
		}
	}
	p := &policy.Policy{Rules: []policy.Rule{
		{Command: []string{"ls"}, Decision: policy.Accept}, {Command: []string{"cat"}, Decision: policy.Decline},
		{Kind: agent.ToolEdit, Path: "src/", Decision: policy.Accept}, {Kind: agent.ToolDelete, Decision: policy.Decline},
	}}
	for name, test := range map[string]struct {
		lines []string
		want  string // the decision and whether the user is asked
	}{
		"a command":               {[]string{command("/bin/bash -lc 'ls -l'", `,"cwd":"`+workdir+`"`)}, "accept false"},
		"a declined command":      {[]string{command("/bin/bash -lc 'cat x'", "")}, "decline false"},
		"another command":         {[]string{command("/bin/bash -lc 'ls > x'", "")}, "decline true"},
		"elsewhere":               {[]string{command("/bin/bash -lc ls", `,"cwd":"/"`)}, "decline true"},
		"a command with a host":   {[]string{command("/bin/bash -lc ls", `,"networkApprovalContext":{"host":"x"}`)}, "decline true"},
		"a command with rights":   {[]string{command("/bin/bash -lc ls", `,"additionalPermissions":{}`)}, "decline true"},
		"a command with a folder": {[]string{command("/bin/bash -lc ls", `,"grantRoot":"/"`)}, "decline true"},
		"an edit":                 {change("update", workdir+"/src/a", ""), "accept false"},
		"an edit with a folder":   {change("update", workdir+"/src/a", `,"grantRoot":"/"`), "decline true"},
		"an edit elsewhere":       {change("update", "/nowhere/a", ""), "decline true"},
		"a deletion":              {change("delete", workdir+"/src/a", ""), "decline false"},
		"an unknown edit":         {change("update", workdir+"/src/a", "")[1:], "decline true"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				steps := append(handshake(), expect(startTurn), say(turn1), say(begun1))
				for _, line := range test.lines {
					steps = append(steps, say(line))
				}
				peer := sessiontest.Start(append(steps, expect(`{"id":7,"result":{}}`), say(ended1)))
				asked := false
				o := session.Options{Policy: p, Approve: func(context.Context, session.Approval) engine.Decision {
					asked = true
					return engine.Decline
				}}
				s, err := session.Open(t.Context(), "test", &appserver.Engine{}, peer, peer.Transport(), engine.Start{Workdir: workdir, Access: agent.AccessWrite}, o)
				if err != nil {
					t.Fatal(err)
				}
				defer s.Stop(context.Background(), "")
				if _, err := s.Send(session.Message{Text: "go"}).Wait(t.Context()); err != nil {
					t.Error(err)
				}
				sent := peer.Sent()
				got := strings.TrimSuffix(strings.TrimPrefix(sent[len(sent)-1], `{"id":7,"result":{"decision":"`), `"}}`)
				if got = fmt.Sprint(got, " ", asked); got != test.want {
					t.Errorf("%s, want %s", got, test.want)
				}
			})
		})
	}
}
