package agent_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/jsonline"
)

func ExamplePayload() {
	r := jsonline.New([]byte(`"one\ntwo"`))
	output := agent.Quoted(r.Text())
	fmt.Println(output.Size(), output)
	// Output:
	// 8 one
	// two
}

// quoted returns the payload of a line that holds text as it would be escaped,
// or escaped more than is needed.
func quoted(t *testing.T, literal string) agent.Payload {
	t.Helper()
	r := jsonline.New([]byte(literal))
	p := agent.Quoted(r.Text())
	if !r.End() {
		t.Fatalf("%q is not a string", literal)
	}
	return p
}

func TestPayloadIsItsText(t *testing.T) {
	t.Parallel()
	for literal, want := range map[string]string{
		`""`: "", `"a"`: "a", `"a\nb\u0041\ud83d\ude00"`: "a\nbA😀", "\"\xff\"": "�", `"\ud800"`: "�",
	} {
		for _, p := range []agent.Payload{quoted(t, literal), agent.Plain(want)} {
			line, err := json.Marshal(p)
			var back agent.Payload
			if err != nil || json.Unmarshal(line, &back) != nil || back.String() != want || !back.Equal(p) {
				t.Errorf("%s as JSON: %s, %v", literal, line, err)
			}
			if p.String() != want || p.IsZero() != (want == "") {
				t.Errorf("%s is %q", literal, p)
			}
		}
	}
}

func TestClonedPayloadOutlivesItsLine(t *testing.T) {
	t.Parallel()
	line := []byte(`"the\toutput"`)
	r := jsonline.New(line)
	e := agent.Event{Tool: &agent.Tool{Input: json.RawMessage(line), Output: agent.Quoted(r.Text())}}
	kept := e.Clone()
	clear(line)
	if kept.Tool.Output.String() != "the\toutput" || string(kept.Tool.Input) != `"the\toutput"` {
		t.Errorf("%q, %q", kept.Tool.Output, kept.Tool.Input)
	}
}

// Wherever a text is cut, head and tail are whole characters of it, and what is
// omitted is what lies between them.
func TestExcerptCutsNoCharacter(t *testing.T) {
	t.Parallel()
	for _, literal := range []string{
		`"` + strings.Repeat(`\\`, 20) + `"`, `"` + strings.Repeat(`\n\"`, 12) + `"`, `"` + strings.Repeat(`\\n`, 12) + `"`,
		`"` + strings.Repeat(`\u00e9`, 8) + `"`, `"` + strings.Repeat(`\ud83d\ude00x`, 5) + `"`, `"` + strings.Repeat(`é😀`, 8) + `"`,
		`"abcdefghijklmnopqrstuvwxyz0123456789"`,
	} {
		p := quoted(t, literal)
		whole, raw := p.String(), literal[1:len(literal)-1]
		for _, p := range []agent.Payload{p, agent.Plain(whole)} {
			for headSize := range p.Size() + 2 {
				for _, tailSize := range []int{0, 1, 7, p.Size() - headSize - 1} {
					first, last, omitted := p.Excerpt(headSize, max(tailSize, 0))
					head, tail := first.String(), last.String()
					if !strings.HasPrefix(whole, head) || !strings.HasSuffix(whole, tail) || !utf8.ValidString(head) || !utf8.ValidString(tail) {
						t.Fatalf("%s cut at %d and %d: %q, %q", raw, headSize, tailSize, head, tail)
					}
					if omitted == 0 && head+tail != whole || omitted < 0 || omitted > 0 && len(head)+len(tail) > len(whole) {
						t.Fatalf("%s cut at %d and %d: %d omitted between %q and %q", raw, headSize, tailSize, omitted, head, tail)
					}
				}
			}
		}
	}
}
