package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"
)

// escapes returns text as JSON escapes of its UTF-16 units, six bytes each.
func escapes(text string) string {
	var b strings.Builder
	for _, unit := range utf16.Encode([]rune(text)) {
		fmt.Fprintf(&b, `\u%04x`, unit)
	}
	return b.String()
}

// Text that is split between any two UTF-16 units is joined again.
func TestSplitText(t *testing.T) {
	t.Parallel()
	const text, unit = `a😀😁\ud83d\ude00"é`, 6
	all := escapes(text)
	for size := unit; size <= len(all); size += unit {
		var h halves
		var got strings.Builder
		for rest := all; rest != ""; {
			n := min(size, len(rest))
			var part content
			if err := json.Unmarshal([]byte(`"`+rest[:n]+`"`), &part); err != nil {
				t.Fatal(err)
			}
			got.WriteString(h.join(string(part)))
			rest = rest[n:]
		}
		if got.String()+h.flush() != text {
			t.Errorf("in parts of %d units: %q", size/unit, got.String())
		}
	}
}

func TestUnquote(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		`""`: "", `"a"`: "a", `"\\ud83d"`: `\ud83d`, `"\\\\ud83d"`: `\\ud83d`, `"\ud83d\ude00"`: "😀", `"\uD83D\uDE00"`: "😀",
		`"\\\ud83d"`: `\` + replacement, `"\ud83d"`: replacement, `"\ude00"`: replacement, `"\ude00\ud83d"`: replacement + replacement,
		`"a\ud83dz"`: "a" + replacement + "z", `"\ud7ff\ue000"`: "\ud7ff\ue000", `"\u0000"`: "\x00", `null`: "",
	} {
		var c content
		if err := json.Unmarshal([]byte(raw), &c); err != nil {
			t.Errorf("%s: %v", raw, err)
		}
		var h halves
		if got := h.join(string(c)) + h.flush(); got != want {
			t.Errorf("%s is %q, want %q", raw, got, want)
		}
	}
}

// The halves of a surrogate pair arrive in two events.
func TestSplitSurrogatePairs(t *testing.T) {
	t.Parallel()
	event := func(member, text string) string { return `{"choices":[{"index":0,` + fmt.Sprintf(member, text) + `}]}` }
	const content, message = `"delta":{"content":"%s"}`, `"delta":{},"message":{"content":"%s"}`
	const both = `"delta":{"content":"%[1]s"},"message":{"content":"h\ud83d"}`
	for name, c := range map[string]struct {
		provider string
		events   []string
		want     string
	}{
		"text":                {"openai", []string{event(content, `h\ud83d`), event(content, `\ude00i`), stop}, "h😀i"},
		"with events between": {"openai", []string{event(content, `h\ud83d`), event(content, ``), `{"choices":[]}`, event(content, `\ude00i`), stop}, "h😀i"},
		"parts":               {"openai", []string{`{"choices":[{"delta":{"content":[{"text":"h\ud83d"},{"text":"\ude00"}]}}]}`, event(content, "i"), stop}, "h😀i"},
		"text completions":    {"openai", []string{event(`"text":"%s"`, `h\ud83d`), event(`"text":"%s"`, `\ude00i`), stop}, "h😀i"},
		"two in a row":        {"openai", []string{event(content, `\ud83d`), event(content, `\ude00\ud83d`), event(content, `\ude00`), stop}, "😀😀"},
		"the first alone":     {"openai", []string{event(content, `h\ud83d`), event(content, `i`), stop}, "h" + replacement + "i"},
		"the second alone":    {"openai", []string{event(content, `h`), event(content, `\ude00i`), stop}, "h" + replacement + "i"},
		"the last":            {"openai", []string{event(content, `h\ud83d`), stop}, "h" + replacement},
		"wholes":              {"perplexity", []string{event(content, `h\ud83d`), event(content, `h\ud83d\ude00`), event(content, `h\ud83d\ude00i`), stop}, "h😀i"},
		"increments":          {"perplexity", []string{event(content, `h`), event(content, `\ud83d`), event(content, `\ude00`), event(content, `i`), stop}, "h😀i"},
		"messages":            {"perplexity", []string{event(message, `h\ud83d`), event(message, `h\ud83d\ude00i`), stop}, "h😀i"},
		"the last message":    {"perplexity", []string{event(message, `h\ud83d`), stop}, "h" + replacement},
		"both":                {"perplexity", []string{event(both, `h\ud83d`), `{"choices":[{"delta":{"content":"\ude00i"},"message":{"content":"h😀i"}}]}`, stop}, "h😀i"},
		"both, one late":      {"perplexity", []string{event(content, `h`), event(both, `\ud83d`), event(content, `\ude00`), event(content, `i`), stop}, "h😀i"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ask(t, serve(t, stream(c.events...)), "--provider", c.provider).wantAnswer(t, c.want)
		})
	}
	thinking := []string{event(`"delta":{"reasoning":"%s"}`, `h\ud83d`), event(`"delta":{"reasoning":"%s"}`, `\ude00`), delta("hi"), stop}
	p := ask(t, serve(t, stream(thinking...)))
	p.wantAnswer(t, "hi")
	if got := p.text("thinking"); got != "h😀" {
		t.Errorf("the thinking is %q", got)
	}
}
