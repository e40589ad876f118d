package tmux

import (
	"slices"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/session/engine"
)

func TestParseScreen(t *testing.T) {
	t.Parallel()
	s, err := parseScreen("12,3:4,1,,9\none  \n\n two\u00a0\n\n\n")
	if err != nil || s.history != 12 || s.cursor != "3:4" || !s.dead || s.status != -1 || s.signal != "9" || !slices.Equal(s.lines, []string{"one", "", " two"}) {
		t.Errorf("%+v, %v", s, err)
	}
	if s, err = parseScreen("0,0:0,1,3,\n"); err != nil || s.status != 3 || len(s.lines) != 0 {
		t.Errorf("%+v, %v", s, err)
	}
	for _, text := range []string{"", "x,0:0,0,,\n", "1,2\n"} {
		if s, err := parseScreen(text); err == nil {
			t.Errorf("%q: %+v", text, s)
		}
	}
}

func FuzzParseScreen(f *testing.F) {
	f.Add("12,3:4,1,0,\nline\n")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := parseScreen(text)
		if err == nil && len(s.lines) > 0 && s.lines[len(s.lines)-1] == "" {
			t.Errorf("%q: %q", text, s.lines)
		}
	})
}

func TestIdle(t *testing.T) {
	t.Parallel()
	busy := []string{"esc to interrupt"}
	for name, c := range map[string]struct {
		prompt string
		shown  string
		want   bool
	}{
		"a spinner":                         {"❯ ", "✽ Levitating…\n\n❯", false},
		"what a spinner leaves":             {"❯ ", "✻ Worked for 3s\n\n❯", true},
		"an item of a list":                 {"❯ ", "- and so on…\n\n❯", true},
		"the prompt, exactly":               {"❯ ", "hello\n❯", true},
		"the prompt with text":              {"❯ ", "❯ say something", true},
		"the prompt with a no-break space":  {"❯ ", "❯\u00a0Try this", true},
		"the prompt, indented":              {"> ", "   > ", true},
		"the prompt in a frame":             {"│ >", "╭───╮\n│ >   │\n╰───╯", true},
		"the prompt within a line":          {"❯ ", "type at ❯ to continue", false},
		"another line that begins like it":  {"> ", ">>> ", false},
		"the prompt above a status":         {"❯ ", "❯ \n\n  model x\n", true},
		"the prompt too far up":             {"❯ ", "❯ \n" + strings.Repeat("line\n", nearEnd), false},
		"a mark of work":                    {"❯ ", "* thinking (esc to interrupt)\n\n❯ ", false},
		"the same with a no-break space":    {"❯ ", "* esc to\u00a0interrupt\n❯ ", false},
		"a mark of work that is long past":  {"❯ ", "esc to interrupt\n" + strings.Repeat("line\n", nearEnd) + "❯ ", true},
		"nothing":                           {"❯ ", "", false},
		"nothing, and no prompt to look at": {"", "", true},
		"no prompt, but a mark of work":     {"", "esc to interrupt", false},
	} {
		terminal := withDefaults(engine.Terminal{Prompt: c.prompt, Busy: busy, Spinner: "✻✽"})
		if got := terminal.idle(screen{lines: splitLines(c.shown)}); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestGained(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ before, typed, after, want string }{
		"a plain conversation": {"old\n❯", "old\n❯ hi", "old\n❯ hi\nanswer\n\nmore\n❯", "answer\n\nmore"},
		"a message that moves": {"top\n---\n❯\n---", "top\n---\n❯ hi\n---", "top\n> hi\n* answer\n---\n❯\n---", "> hi\n* answer"},
		"nothing":              {"❯", "❯ hi", "❯ hi\n❯", ""},
		"the same text again":  {"a\n❯", "a\n❯ hi", "a\n❯ hi\na\n❯", "a"},
		"a cleared screen":     {"old\n❯", "old\n❯ hi", "new\n❯", "new"},
		"an empty terminal":    {"", "hi", "hi\nanswer", "answer"},
	} {
		lines := func(s string) []string { return splitLines(s) }
		if got := gained(lines(c.before), lines(c.typed), lines(c.after)); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
