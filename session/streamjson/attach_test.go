package streamjson_test

import (
	"context"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/engine"
	"github.com/busdk/bus-agent/session/sessiontest"
)

func TestFilesPrecedeTheText(t *testing.T) {
	t.Parallel()
	peer := sessiontest.Start(append(greeting(), expect(userLine), say(one), say(result)))
	start := engine.Start{Attachments: []string{agent.MediaPNG, agent.MediaPDF}}
	s, err := session.Open(t.Context(), "test", newEngine(), peer, peer.Transport(), start, session.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop(context.Background(), "")
	files := []agent.Attachment{{Name: "a.png", Data: []byte("\x89PNG\r\n\x1a\n")}, {Name: "a.pdf", Data: []byte("%PDF-1")}}
	if _, err := s.Send(session.Message{Text: "what?", Attachments: files}).Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	const want = `"content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}},` +
		`{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"JVBERi0x"}},` +
		`{"type":"text","text":"Attached: a.png (image/png)\nAttached: a.pdf (application/pdf)\n\nwhat?"}]`
	if sent := last(peer.Sent()); !strings.Contains(sent, want) {
		t.Errorf("the agent got %s", sent)
	}
}
