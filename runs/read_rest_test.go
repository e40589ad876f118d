package runs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/busdk/bus-agent/agent"
)

// wordDecoder reads lines of a kind and a text; a line that begins with + is a piece of
// a text.
type wordDecoder struct{}

func (wordDecoder) Decode(line []byte, events []agent.Event) []agent.Event {
	text := strings.Clone(string(line))
	if piece, ok := strings.CutPrefix(text, "+"); ok {
		return append(events, agent.Event{Kind: agent.KindText, Delta: true, MessageID: "m", Text: piece})
	}
	return append(events, agent.Event{Kind: agent.KindToolCall, Tool: &agent.Tool{ID: text, Name: text}})
}

// Wherever a killed program has stopped writing events, a reader gets each event of the
// output once.
func TestEventsOfACrashedRunAreCaughtUpWith(t *testing.T) {
	t.Parallel()
	run, kill := liveRun(t, t.TempDir())
	const output = "look\n+one \n+two\nread\nwrite\n+thr\xc3\xa9e \n+four\n+ five\nend\n"
	write(t, filepath.Join(run.Dir, stdoutName), output+"+cut")
	// The pieces of a text are written otherwise where they are masked.
	var lines []string
	add := func(e agent.Event) {
		lines = append(lines, string((&Event{Time: start, Event: e}).AppendJSON(nil))+"\n")
	}
	add(agent.Event{Kind: KindMessage, Text: "do it"})
	for line := range strings.Lines(output) {
		for _, e := range (wordDecoder{}).Decode([]byte(strings.TrimSuffix(line, "\n")), nil) {
			if half := len(e.Text) / 2; e.Delta && half > 2 {
				rest := e
				rest.Text, e.Text = e.Text[half-1:], e.Text[:half-1]
				add(e)
				e = rest
			}
			add(e)
		}
	}
	file := filepath.Join(run.Dir, eventsName)
	all := func() (said string) {
		t.Helper()
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		err = run.ReadEvents(f, wordDecoder{}, func(e *Event) error {
			if e.Time.IsZero() || e.Time.After(time.Now()) {
				t.Errorf("an event is of %v", e.Time)
			}
			switch {
			case e.Kind == KindMessage:
				said += "[" + e.Text + "]"
			case e.Tool != nil:
				said += "<" + e.Tool.Name + ">"
			}
			if e.Kind == agent.KindText {
				said += e.Text
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return said
	}
	write(t, file, lines[0])
	if got := all(); got != "[do it]" {
		t.Errorf("of a run that is running: %s", got)
	}
	kill()
	for n := range len(lines) + 1 {
		want := "[do it]<look>one two<read><write>thrée four five<end>"
		write(t, file, strings.Join(lines[:n], ""))
		if n == 0 {
			want = strings.TrimPrefix(want, "[do it]")
		}
		if got := all(); got != want {
			t.Errorf("with %d events: %s", n, got)
		}
	}
}
