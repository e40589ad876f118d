package formatters

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/jsonline"
)

// FuzzStream checks that the events of an output are those of its lines, wherever
// it is cut.
func FuzzStream(f *testing.F) {
	f.Add([]byte("a\r\nb\n\n\xff\x00c"), uint8(2), uint8(5))
	f.Add([]byte("\n\n"), uint8(0), uint8(1))
	f.Add([]byte("ä\nö"), uint8(1), uint8(3))
	f.Fuzz(func(t *testing.T, output []byte, first, second uint8) {
		events := func(pieces ...[]byte) (all []string) {
			s := NewStream(Generic(), func(e *agent.Event) error {
				text, err := json.Marshal(e)
				all = append(all, string(text))
				return err
			})
			for _, p := range pieces {
				p = append([]byte{}, p...)
				if n, err := s.Write(p); n != len(p) || err != nil {
					t.Fatalf("Write = %d, %v", n, err)
				}
				clear(p) // what was written belongs to the writer again
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			return all
		}
		a := min(int(first), len(output))
		b := a + min(int(second), len(output)-a)
		whole := events(output)
		if diff := cmp.Diff(whole, events(output[:a], output[a:b], nil, output[b:])); diff != "" {
			t.Fatalf("the cuts at %d and %d decide (-whole +cut):\n%s", a, b, diff)
		}
	})
}

// FuzzTextDeltas checks that a message reads the same however it is cut into
// deltas, and whatever came before.
func FuzzTextDeltas(f *testing.F) {
	f.Add("before", "one\ntwo", uint8(2), uint8(3), false)
	f.Add("", "a\x1b[31mb", uint8(2), uint8(1), false)
	f.Add("x\n", "ä\xe2\x82\xac\xff", uint8(1), uint8(2), true)
	f.Add("", "\r\n\x1b]0;title\x07end", uint8(5), uint8(4), true)
	f.Fuzz(func(t *testing.T, before, message string, first, second uint8, thinking bool) {
		piece := func(text string) agent.Event {
			e := delta("m", text)
			if thinking {
				e.Kind = agent.KindThinking
			}
			return e
		}
		a := min(int(first), len(message))
		b := a + min(int(second), len(message)-a)
		end := agent.Event{Kind: agent.KindResult}
		whole := render(say(before), piece(message), end)
		cut := render(say(before), piece(message[:a]), piece(message[a:b]), piece(message[b:]), end)
		if whole != cut {
			t.Fatalf("%q cut at %d and %d reads %q, whole %q", message, a, b, cut, whole)
		}
		if r, ok := forbidden(whole); ok {
			t.Fatalf("%q holds %U", whole, r)
		}
	})
}

// FuzzQuotedOutput checks that a tool's output reads the same as a string of a line
// and as a text.
func FuzzQuotedOutput(f *testing.F) {
	f.Add([]byte(`plain\n\ttext, longer than a word`))
	f.Add([]byte(`\r\n\u001b[31mred\u001b[0m \ud83d\ude00 \u202e\u009b31m \ud83d`))
	f.Add([]byte("\xff é 😀 \x7f \u0085"))
	f.Fuzz(func(t *testing.T, body []byte) {
		r := jsonline.New([]byte(`"` + string(body) + `"`))
		quoted := agent.Quoted(r.Text())
		if !r.End() || quoted.Size() > maxOutHead || len(quoted.String()) > maxOutHead {
			return // one of the two is cut; a broken byte is three in the text
		}
		result := func(output agent.Payload) agent.Event {
			return agent.Event{Kind: agent.KindToolResult, Tool: &agent.Tool{Output: output}}
		}
		got, want := render(result(quoted)), render(result(agent.Plain(quoted.String())))
		if got != want {
			t.Fatalf("%q reads %q, as a text %q", body, got, want)
		}
		if r, ok := forbidden(got); ok {
			t.Fatalf("%q holds %U", got, r)
		}
	})
}
