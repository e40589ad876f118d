package streamjson_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/sessiontest"
)

// maxSeed is the longest line that the fuzzer begins with; long ones slow it down.
const maxSeed = 2000

// FuzzLines has an agent say anything during a turn: what it says becomes valid
// events, and the end of its output the end of the turn.
func FuzzLines(f *testing.F) {
	files, err := filepath.Glob(filepath.Join("testdata", "*.ndjson"))
	if err != nil || len(files) == 0 {
		f.Fatal(err)
	}
	seen := map[string]bool{}
	for _, file := range files {
		for _, s := range transcript(f, strings.TrimSuffix(filepath.Base(file), ".ndjson")) {
			if key := sessiontest.Key(s.Line); s.Kind == sessiontest.Say && len(s.Line) < maxSeed && !seen[key] {
				seen[key] = true
				f.Add([]byte(s.Line + "\n"))
			}
		}
	}
	f.Add([]byte(strings.Join([]string{one, question, result}, "\n")))
	f.Fuzz(func(t *testing.T, said []byte) {
		steps := append(greeting(), expect(userLine), sessiontest.Step{Kind: sessiontest.Write, Line: string(said)}, sessiontest.Step{Kind: sessiontest.Die})
		peer := sessiontest.Start(steps)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		s, err := session.Open(ctx, "test", engine(), peer, peer.Transport(), session.Start{}, session.Options{
			Events: func(e *agent.Event) {
				if e.Kind == "" {
					t.Errorf("%+v", e)
				}
			},
			ApprovalTimeout: -1,
		})
		if err != nil {
			t.Fatal(err)
		}
		turn := s.Send(session.Message{Text: "go"})
		if _, err := turn.Wait(ctx); ctx.Err() != nil {
			t.Fatal(err)
		}
		s.Stop(ctx, "")
	})
}
