package session_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/capture"
	"github.com/busdk/bus-agent/session"
)

// TestLongAnswers are cut in the middle, where the agent says them and where it
// repeats them in its result alone.
func TestLongAnswers(t *testing.T) {
	t.Parallel()
	long := "begin" + strings.Repeat("x", capture.MaxAnswer) + "end"
	for name, say := range map[string]func(p *peer){
		"said": func(p *peer) {
			p.say(long)
			p.finish()
		},
		"in the result": func(p *peer) { p.sink.Event(&agent.Event{Kind: agent.KindResult, Text: long}) },
	} {
		synctest.Test(t, func(t *testing.T) {
			p := &peer{}
			s := open(t, p, session.Options{})
			defer s.Stop(t.Context(), "")
			turn := s.Send(session.Message{Text: "go"})
			<-p.sent
			say(p)
			result, err := turn.Wait(t.Context())
			if err != nil || !result.TextTruncated || len(result.Text) != capture.MaxAnswer ||
				!strings.HasPrefix(result.Text, "begin") || !strings.HasSuffix(result.Text, "end") {
				t.Errorf("%s: %d bytes, %v, %v", name, len(result.Text), result.TextTruncated, err)
			}
		})
	}
}
