package control_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/control"
)

var (
	picture = agent.Attachment{Name: "chart.png", Data: []byte("\x89PNG\r\n\x1a\npixels")}
	paper   = agent.Attachment{Name: "paper.pdf", Data: []byte("%PDF-1.7")}
)

// Files reach the agent through the socket, and the log has no content of them.
func TestAttachmentsReachTheAgent(t *testing.T) {
	t.Parallel()
	_, _, c, e := serve(t)
	m := control.Message{Text: "what?", Attachments: []agent.Attachment{picture}}
	result, err := c.Ask(t.Context(), e, m, control.Watcher{})
	if want := "Attached: chart.png (image/png)||what? +chart.png:14"; err != nil || result.Text != want {
		t.Errorf("the agent got %q, %v; want %q", result.Text, err, want)
	}
	var logged []agent.AttachmentInfo
	err = c.Watch(t.Context(), e, control.WatchOptions{Last: -1}, control.Watcher{Record: func(r *control.LogRecord) error {
		if r.Message == "what?" {
			logged = r.Attachments
		}
		return nil
	}})
	if want := agent.AttachmentInfos(m.Attachments); err != nil || !slices.Equal(logged, want) {
		t.Errorf("logged %v, %v", logged, err)
	}
	if turn, _, err := c.Steer(t.Context(), e, m); turn != 2 || err != nil {
		t.Errorf("steered as turn %d, %v", turn, err)
	}
}

func TestMessageWithAFileThatTheSessionCannotPassIsRefused(t *testing.T) {
	t.Parallel()
	_, _, c, e := serve(t)
	large := agent.Attachment{Name: "a.txt", Data: []byte(strings.Repeat("x", 1000))}
	for _, file := range []agent.Attachment{paper, large, {Name: "a/b", Data: []byte("x")}} {
		m := control.Message{Text: "what?", Attachments: []agent.Attachment{file}}
		if _, err := c.Send(t.Context(), e, m); !errors.Is(err, agent.ErrUsage) {
			t.Errorf("%s: %v, want a usage error", file.Name, err)
		}
	}
	if st, err := c.Show(t.Context(), e); err != nil || st.Turns != 0 {
		t.Errorf("%d turns, %v", st.Turns, err)
	}
}

func TestFirstMessageHasAttachments(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	h := b.start(control.StartOptions{InitialPrompt: "what?", InitialAttachments: []agent.Attachment{picture}})
	defer b.Close(t.Context(), "the test is over")
	s, err := b.Session(h)
	if err != nil {
		t.Fatal(err)
	}
	// The first message is before this one.
	if turn := s.Send(session.Message{Text: "and?"}); turn.Number() != 2 {
		t.Errorf("turn %d", turn.Number())
	}
	for name, opts := range map[string]control.StartOptions{
		"no message":   {InitialAttachments: []agent.Attachment{picture}},
		"another type": {InitialPrompt: "what?", InitialAttachments: []agent.Attachment{paper}},
	} {
		opts.Runtime, opts.Workdir = "talker", b.workdir
		if _, err := b.Start(t.Context(), opts); !errors.Is(err, agent.ErrUsage) {
			t.Errorf("%s: %v, want a usage error", name, err)
		}
	}
}
