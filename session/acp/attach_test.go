package acp_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/acp"
	"github.com/busdk/bus-agent/session/engine"
	"github.com/busdk/bus-agent/session/sessiontest"
)

func TestFilesPrecedeTheText(t *testing.T) {
	t.Parallel()
	files := []agent.Attachment{{Name: "a.png", Data: []byte("\x89PNG\r\n\x1a\n")}, {Name: "a b.pdf", Data: []byte("%PDF-1")}}
	for name, c := range map[string]struct{ takes, want string }{
		"both": {`{"image":true,"embeddedContext":true}`, `"prompt":[{"type":"image","mimeType":"image/png","data":"iVBORw0KGgo="},` +
			`{"type":"resource","resource":{"uri":"attachment:///a%20b.pdf","mimeType":"application/pdf","blob":"JVBERi0x"}},` +
			`{"type":"text","text":"Attached: a.png (image/png)\nAttached: a b.pdf (application/pdf)\n\nwhat?"}]`},
		"no image":    {`{"embeddedContext":true}`, ""},
		"no resource": {`{"image":true}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			peer := sessiontest.Start([]sessiontest.Step{
				line(sessiontest.Expect, `{"id":1,"method":"initialize"}`), line(sessiontest.Say, `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentCapabilities":{"promptCapabilities":`+c.takes+`}}}`),
				line(sessiontest.Expect, `{"id":2,"method":"session/new"}`), line(sessiontest.Say, `{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}`),
				line(sessiontest.Expect, `{"id":3,"method":"session/prompt"}`), line(sessiontest.Say, `{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}`),
			})
			start := engine.Start{Attachments: []string{agent.MediaPNG, agent.MediaPDF}}
			s, err := session.Open(t.Context(), "test", &acp.Engine{}, peer, peer.Transport(), start, session.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Stop(context.Background(), "")
			_, err = s.Send(session.Message{Text: "what?", Attachments: files}).Wait(t.Context())
			if c.want == "" {
				if !errors.Is(err, agent.ErrUsage) || !errors.Is(err, session.ErrNotDelivered) {
					t.Errorf("%v, want a usage error", err)
				}
				return
			}
			if sent := strings.Join(peer.Sent(), "\n"); err != nil || !strings.Contains(sent, c.want) {
				t.Errorf("%v; the agent got %s", err, sent)
			}
		})
	}
}

func line(kind sessiontest.Kind, text string) sessiontest.Step {
	return sessiontest.Step{Kind: kind, Line: text}
}
