package formatters_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/formatters"
)

// skimming skims lines that begin with "skip" and reports the length of the others.
type skimming struct{ t *testing.T }

func (s skimming) Decode(line []byte, events []agent.Event) []agent.Event {
	if strings.HasPrefix(string(line), "skip") && strings.HasSuffix(string(line), "}") {
		s.t.Errorf("a line of %d bytes was decoded", len(line))
	}
	if string(line) == "result" {
		return append(events, agent.Event{Kind: agent.KindResult})
	}
	return append(events, agent.Event{Kind: agent.KindText, Text: fmt.Sprint(len(line))})
}

func (skimming) Skim(head []byte) (agent.Kind, bool) {
	return agent.KindToolResult, strings.HasPrefix(string(head), "skip")
}

func kinds(t *testing.T, d formatters.Decoder, pieces ...string) string {
	t.Helper()
	var all []string
	s := formatters.NewStream(d, func(e *agent.Event) error {
		all = append(all, string(e.Kind)+e.Text)
		return nil
	})
	s.Skim()
	for _, p := range pieces {
		if _, err := s.Write([]byte(p)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return strings.Join(all, " ")
}

// Wherever the output is cut, what is skimmed and what is decoded is the same, and
// what is kept of a skimmed line is not taken for another's.
func TestSkimmingDoesNotDependOnCuts(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 2*formatters.SkimSize)
	output := "skip" + long + "}\nother" + long + "\nskip}\n\nskip" + long + "}\r\nother\n"
	const want = "tool_result text517 tool_result text0 tool_result text5"
	for a := range len(output) {
		for _, b := range []int{a, a + 1, a + formatters.SkimSize, a + formatters.SkimSize + 1} {
			b = min(b, len(output))
			if got := kinds(t, skimming{t}, output[:a], output[a:b], output[b:]); got != want {
				t.Fatalf("cut at %d and %d: %s, want %s", a, b, got, want)
			}
		}
	}
}

func TestSkimmingEndsWithTheResult(t *testing.T) {
	t.Parallel()
	if got := kinds(t, skimming{t}, "skip}\nresult\nskip\n"); got != "tool_result result text4" {
		t.Error(got)
	}
}

func TestSkimmedLineOverTheMaximumIsReported(t *testing.T) {
	t.Parallel()
	piece := "skip" + strings.Repeat("x", 1<<20)
	pieces := strings.Split(strings.Repeat(piece+",", 17)+"}\nother\n", ",")
	if got := kinds(t, skimming{t}, pieces...); got != string(agent.KindRaw)+piece[:formatters.SkimSize]+" text5" {
		t.Errorf("%.300q", got)
	}
}
