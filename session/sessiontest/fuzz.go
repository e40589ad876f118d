package sessiontest

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/engine"
)

// maxSeed is the longest line that a fuzzer begins with; long ones slow it down.
const maxSeed = 2000

// FuzzEngine makes an agent send arbitrary output during a turn, and checks that
// it becomes valid events and that the end of the output ends the turn. The script
// before leads up to the turn; its last step expects the message. The seeds are
// lines of the transcript files that match the pattern transcripts.
func FuzzEngine(f *testing.F, newEngine func() engine.Engine, before []Step, transcripts string) {
	files, err := filepath.Glob(transcripts)
	if err != nil || len(files) == 0 {
		f.Fatalf("no transcripts %s: %v", transcripts, err)
	}
	seen := map[string]bool{}
	for _, file := range files {
		for _, s := range ReadTranscript(f, file) {
			if key := Key(s.Line); s.Kind == Say && len(s.Line) < maxSeed && !seen[key] {
				seen[key] = true
				f.Add([]byte(s.Line + "\n"))
			}
		}
	}
	f.Fuzz(func(t *testing.T, said []byte) {
		peer := Start(append(before[:len(before):len(before)], Step{Kind: Write, Line: string(said)}, Step{Kind: Die}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		s, err := session.Open(ctx, "test", newEngine(), peer, peer.Transport(), engine.Start{}, session.Options{
			Events: func(e *agent.Event) error {
				if e.Kind == "" {
					t.Errorf("%+v", e)
				}
				return nil
			},
			ApprovalTimeout: -1, // declines
		})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Stop(ctx, "")
		if _, err := s.Send(session.Message{Text: "go"}).Wait(ctx); ctx.Err() != nil {
			t.Fatal(err)
		}
	})
}
