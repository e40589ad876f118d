package tmux

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestSanitize(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"plain text stays":            {"grüß dich 👋🏽 ; \\", "grüß dich 👋🏽 ; \\"},
		"line breaks stay":            {"a\nb\r\nc\rd", "a\nb\nc\nd"},
		"tabs become spaces":          {"\tx", "    x"},
		"keys are dropped":            {"a\x1b[201~\x03b\x7f\x00c", "a[201~bc"},
		"C1 controls are dropped":     {"a\u009b1mb", "a1mb"},
		"what is not UTF-8 is marked": {"a\xf0\x9fb", "a\uFFFDb"},
		"no-break spaces stay":        {"a\u00a0b", "a\u00a0b"},
	} {
		if got := sanitize(c.text); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestGuardKeepsMessagesFromBeingCommands(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"/quit": "Message:\n/quit", "  !ls": "Message:\n  !ls", "\n /x": "Message:\n\n /x",
		"a /b": "a /b", "": "", " ": " ", "é": "é",
	} {
		if got := guard(text, "/!"); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestChunksCutBetweenCharacters(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		want []string
	}{
		{"", nil},
		{"abcd", []string{"abcd"}},
		{"abcde", []string{"abcd", "e"}},
		{"abc👋d", []string{"abc", "👋", "d"}},
		{"a👋", []string{"a", "👋"}},
		{"\xbf\xbf\xbf\xbf\xbf", []string{"\xbf\xbf\xbf\xbf", "\xbf"}},
	} {
		want := c.want
		if c.text == "\xbf\xbf\xbf\xbf\xbf" { // no character, cut anywhere
			if got := strings.Join(slices.Collect(chunks(c.text, 4)), ""); got != c.text {
				t.Errorf("%q became %q", c.text, got)
			}
			continue
		}
		if got := slices.Collect(chunks(c.text, 4)); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", c.text, got, want)
		}
	}
}

func FuzzChunks(f *testing.F) {
	f.Add("abc👋d", uint16(4))
	f.Add(strings.Repeat("x", 511)+"é"+strings.Repeat("👋", 300), uint16(512))
	f.Add("\xf0\x9f\x91", uint16(5))
	f.Fuzz(func(t *testing.T, text string, size uint16) {
		limit := max(4, int(size))
		pieces := slices.Collect(chunks(text, limit))
		if got := strings.Join(pieces, ""); got != text {
			t.Fatalf("%q became %q", text, got)
		}
		valid := utf8.ValidString(text)
		for _, piece := range pieces {
			if piece == "" || len(piece) > limit || valid && !utf8.ValidString(piece) {
				t.Errorf("a piece of %q is %q, limit %d", text, piece, limit)
			}
		}
	})
}

func FuzzSanitize(f *testing.F) {
	f.Add("a\x1b[201~\r\n\tb\xff")
	f.Fuzz(func(t *testing.T, text string) {
		got := sanitize(text)
		bad := func(r rune) bool { return r != '\n' && unicode.IsControl(r) }
		if !utf8.ValidString(got) || strings.ContainsFunc(got, bad) {
			t.Errorf("%q became %q", text, got)
		}
		if again := sanitize(got); again != got {
			t.Errorf("%q became %q and then %q", text, got, again)
		}
	})
}

func TestCommandLineKeepsSemicolonsText(t *testing.T) {
	t.Parallel()
	got := commandLine([]string{"send-keys", "-l", "a;"}, []string{"b", `c\;`, ";", "d;e"})
	want := []string{"send-keys", "-l", `a\;`, ";", "b", `c\\;`, `\;`, "d;e"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
