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

// FuzzLines has an agent say anything during a turn: what it says becomes valid
// events, and the end of its output the end of the turn.
func FuzzLines(f *testing.F) {
	files, err := filepath.Glob(filepath.Join("testdata", "*.ndjson"))
	if err != nil || len(files) == 0 {
		f.Fatal(err)
	}
	for _, file := range files {
		var said []byte
		for _, s := range transcript(f, strings.TrimSuffix(filepath.Base(file), ".ndjson")) {
			if s.Kind == sessiontest.Say {
				said = append(append(said, s.Line...), '\n')
			}
		}
		f.Add(said)
	}
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
