package capture_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/capture"
)

// TestBufferKeepsHeadAndTail compares it with a text that is kept whole.
func TestBufferKeepsHeadAndTail(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for limit := range 9 {
		b := &capture.Buffer{Limit: limit}
		var all string
		for range 300 {
			piece := strings.Repeat(string(rune('a'+random.IntN(26))), random.IntN(2*limit+3))
			if random.IntN(2) == 0 {
				b.WriteString(piece)
			} else if n, err := b.Write([]byte(piece)); n != len(piece) || err != nil {
				t.Fatal(n, err)
			}
			all += piece
			head, tail := all, ""
			if len(all) > 2*limit {
				head, tail = all[:limit], all[len(all)-limit:]
			}
			c := b.Captured()
			if string(c.Head) != head || string(c.Tail) != tail || c.Size != int64(len(all)) || b.Size() != c.Size || c.Truncated != (len(all) > 2*limit) {
				t.Fatalf("limit %d, %q: %q %q, %d, %v", limit, all, c.Head, c.Tail, c.Size, c.Truncated)
			}
			if random.IntN(10) == 0 {
				b.Reset()
				all = ""
			}
		}
	}
}

func text(id, text string) *agent.Event {
	return &agent.Event{Kind: agent.KindText, MessageID: id, Text: text}
}

func delta(id, text string) *agent.Event {
	return &agent.Event{Kind: agent.KindText, MessageID: id, Text: text, Delta: true}
}

func TestAnswer(t *testing.T) {
	t.Parallel()
	tool, file := &agent.Event{Kind: agent.KindToolCall}, &agent.Event{Kind: agent.KindFileChange}
	for name, test := range map[string]struct {
		events []*agent.Event
		want   string
	}{
		"nothing":                  {nil, "otherwise"},
		"the last message":         {[]*agent.Event{text("", "one"), text("", "two")}, "two"},
		"pieces of one":            {[]*agent.Event{text("1", "one"), delta("2", "tw"), delta("2", "o")}, "two"},
		"pieces without an ID":     {[]*agent.Event{delta("", "tw"), delta("", "o")}, "two"},
		"two texts with one ID":    {[]*agent.Event{text("1", "tw"), text("1", "o")}, "two"},
		"after the last tool":      {[]*agent.Event{text("1", "one"), tool, text("1", "two")}, "two"},
		"nothing after a tool":     {[]*agent.Event{text("1", "one"), tool}, "otherwise"},
		"nothing after a file":     {[]*agent.Event{text("1", "one"), file}, "otherwise"},
		"what a subagent says":     {[]*agent.Event{text("1", "one"), {Kind: agent.KindText, Subagent: "s", Text: "two"}, {Kind: agent.KindToolCall, Subagent: "s"}}, "one"},
		"thoughts":                 {[]*agent.Event{text("1", "one"), {Kind: agent.KindThinking, Text: "two"}}, "one"},
		"an ID again after a tool": {[]*agent.Event{delta("1", "one"), tool, delta("1", "t"), delta("1", "wo")}, "two"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var a capture.Answer
			for _, e := range test.events {
				a.Note(e)
			}
			if a.Empty() != (test.want == "otherwise") {
				t.Error(a.Empty())
			}
			if got, truncated := a.Text(&agent.Event{Kind: agent.KindResult, Failed: true, Text: "no answer"}); truncated || got != test.want && !a.Empty() {
				t.Errorf("%q, %v", got, truncated)
			}
			if got, truncated := a.Text(&agent.Event{Kind: agent.KindResult, Text: "otherwise"}); got != test.want || truncated {
				t.Errorf("%q, %v", got, truncated)
			}
		})
	}
}

// TestLongAnswer proves that the beginning and the end of an answer are kept and
// that no character is cut.
func TestLongAnswer(t *testing.T) {
	t.Parallel()
	ways := []func(a *capture.Answer, s string) (result *agent.Event){
		func(a *capture.Answer, s string) *agent.Event { a.Note(text("1", s)); return nil },
		func(a *capture.Answer, s string) *agent.Event {
			a.Note(delta("1", s[:100]))
			a.Note(delta("1", s[100:]))
			return nil
		},
		func(_ *capture.Answer, s string) *agent.Event { return &agent.Event{Kind: agent.KindResult, Text: s} },
	}
	for _, piece := range []string{"x", "€"} {
		whole := "begin" + strings.Repeat(piece, (capture.MaxAnswer+capture.MaxAnswer/8)/len(piece)) + "end"
		for shift := range len(piece) {
			var a capture.Answer
			shifted := whole[shift:]
			got, truncated := a.Text(ways[shift](&a, shifted))
			if !truncated || !utf8.ValidString(got) || len(got) > capture.MaxAnswer || len(got) < capture.MaxAnswer-2*utf8.UTFMax ||
				!strings.HasPrefix(got, shifted[:1000]) || !strings.HasSuffix(got, whole[len(whole)-1000:]) {
				t.Errorf("%s, %d: %d bytes, %v", piece, shift, len(got), truncated)
			}
		}
	}
}

// TestCutAnswer proves that an answer whose line was too long is marked.
func TestCutAnswer(t *testing.T) {
	t.Parallel()
	cut := delta("1", "cut")
	cut.Truncated = true
	var a capture.Answer
	a.Note(cut)
	a.Note(delta("1", " off"))
	if got, truncated := a.Text(nil); got != "cut off" || !truncated {
		t.Errorf("%q, %v", got, truncated)
	}
	a.Note(text("2", "whole"))
	if got, truncated := a.Text(cut); got != "whole" || truncated {
		t.Errorf("%q, %v", got, truncated)
	}
	if got, truncated := new(capture.Answer).Text(cut); got != "cut" || !truncated {
		t.Errorf("%q, %v", got, truncated)
	}
}
