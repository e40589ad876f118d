package session_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/engine"
)

// attacher is a peer that takes files.
type attacher struct {
	*peer
	refuse error
}

func (a *attacher) SendAttached(ctx context.Context, text string, files []agent.Attachment) error {
	if a.refuse != nil {
		return a.refuse
	}
	for _, f := range files {
		text += " + " + f.Name
	}
	return a.Send(ctx, text)
}

var (
	picture = agent.Attachment{Name: "chart.png", Data: []byte("\x89PNG\r\n\x1a\n")}
	paper   = agent.Attachment{Name: "paper.pdf", Data: []byte("%PDF-1.7")}
	notes   = agent.Attachment{Name: "a", Data: []byte("one")}
)

const (
	notesText   = "Attached: a, which ends before the line \"----- end of a -----\"\none\n----- end of a -----\n"
	pictureText = "Attached: chart.png (image/png)\n"
)

func openAttacher(t *testing.T, e engine.Engine, p *peer) *session.Session {
	t.Helper()
	p.sent, p.done = make(chan string, 10), make(chan struct{})
	start := engine.Start{Prefix: "rules\n", Attachments: []string{agent.MediaPNG}}
	s, err := session.Open(t.Context(), "test", e, p, engine.Transport{}, start, session.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Stop(context.Background(), "") })
	return s
}

func TestAttachmentsPrecedeTheMessage(t *testing.T) {
	t.Parallel()
	p := &peer{}
	s := openAttacher(t, &attacher{peer: p}, p)
	s.Send(session.Message{Text: "what?", Attachments: []agent.Attachment{notes, picture}})
	if got, want := <-p.sent, "rules\n"+notesText+pictureText+"\nwhat? + chart.png"; got != want {
		t.Errorf("the agent got %q, want %q", got, want)
	}
	p.finish()
	s.Send(session.Message{Text: "and?", Attachments: []agent.Attachment{notes}})
	if got, want := <-p.sent, notesText+"\nand?"; got != want {
		t.Errorf("the agent got %q, want %q", got, want)
	}
}

func TestAttachmentThatTheAgentCannotTakeIsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		make func(*peer) engine.Engine
		file agent.Attachment
		want string
	}{
		"another type":              {func(p *peer) engine.Engine { return &attacher{peer: p} }, paper, `the session cannot take the file "paper.pdf" (application/pdf)`},
		"an engine that takes none": {func(p *peer) engine.Engine { return p }, picture, "the session cannot take the file"},
		"an agent that takes none":  {func(p *peer) engine.Engine { return &attacher{p, engine.ErrUnsupported} }, picture, "no way to do it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &peer{}
			s := openAttacher(t, c.make(p), p)
			_, err := s.Send(session.Message{Text: "what?", Attachments: []agent.Attachment{c.file}}).Wait(t.Context())
			if !errors.Is(err, agent.ErrUsage) || !errors.Is(err, session.ErrNotDelivered) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			s.Send(session.Message{Text: "again"})
			if got := <-p.sent; got != "rules\nagain" {
				t.Errorf("the agent got %q", got)
			}
		})
	}
}

func TestOnlyTextIsAddedToARunningTurn(t *testing.T) {
	t.Parallel()
	steered := make(chan string, 2)
	p := &peer{steer: func(text string) error { steered <- text; return nil }}
	s := openAttacher(t, &attacher{peer: p}, p)
	first := s.Send(session.Message{Text: "one"})
	<-p.sent
	if turn := s.Steer(t.Context(), session.Message{Text: "two", Attachments: []agent.Attachment{notes}}); turn != first || <-steered != notesText+"\ntwo" {
		t.Error("the text was not added to the turn")
	}
	second := s.Steer(t.Context(), session.Message{Text: "three", Attachments: []agent.Attachment{picture}})
	if second == first || len(steered) > 0 {
		t.Error("the image was added to the turn")
	}
	p.finish()
	if got, want := <-p.sent, pictureText+"\nthree + chart.png"; got != want {
		t.Errorf("the agent got %q, want %q", got, want)
	}
}
