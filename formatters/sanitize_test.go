package formatters

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

var sanitized = []struct{ name, input, want string }{
	{"plain text", "a\tb\nc ä € 😀", "a\tb\nc ä € 😀"},
	{"C0 controls", "a\x00b\x01c\x07d\x08e\x0bf\rg\x1fh", "abcdefgh"},
	{"DEL", "a\x7fb", "ab"},
	{"C1 controls", "a\u0080b\u0085c\u0094d", "abcd"},
	{"CSI", "a\x1b[31;1mb\x1b[0mc\x1b[2 qd\x1b[?25le", "abcde"},
	{"CSI as C1", "a\u009b31mb", "ab"},
	{"CSI with a control inside", "a\x1b[3\x081mb", "ab"},
	{"CSI that never ends", "a\x1b[31\nb", "a\nb"},
	{"CSI cut by text", "a\x1b[31äb", "aäb"},
	{"OSC ended by BEL", "a\x1b]0;title\x07b", "ab"},
	{"OSC ended by ST", "a\x1b]8;;http://x\x1b\\b\x1b]8;;\x1b\\c", "abc"},
	{"OSC as C1", "a\u009d0;title\u009cb", "ab"},
	{"OSC that never ends", "a\x1b]0;title\nb", "a\nb"},
	{"OSC cut by an escape sequence", "a\x1b]0;title\x1b[31mb", "ab"},
	{"OSC cut by CAN", "a\x1b]0;title\x18b", "ab"},
	{"DCS, SOS, PM, APC", "a\x1bPx\x1b\\b\x1bXx\x1b\\c\x1b^x\x1b\\d\x1b_x\x1b\\e", "abcde"},
	{"two-byte escapes", "a\x1b7b\x1bcd\x1bMe", "abde"},
	{"escape with intermediates", "a\x1b(Bb\x1b#8c", "abc"},
	{"escape, escape", "a\x1b\x1b[31mb", "ab"},
	{"escape at the end", "a\x1b", "a"},
	{"escape before a line feed", "a\x1b\nb", "a\nb"},
	{"bidi overrides", "a\u202ab\u202ec\u2066d\u2069e", "abcde"},
	{"other format characters stay", "a\u200db\u2060c", "a\u200db\u2060c"},
	{"marks of direction stay", "a\u061cb\u200ec\u200fdضe", "a\u061cb\u200ec\u200fdضe"},
	{"invalid UTF-8", "a\xffb\xc3", "a\ufffdb\ufffd"},
	{"cut characters", "a\xe2\x82b\xf0\x9f\x98", "a\ufffd\ufffdb\ufffd\ufffd\ufffd"},
	{"surrogates and overlong forms", "\xed\xa0\x80\xc0\x80", "\ufffd\ufffd\ufffd\ufffd\ufffd"},
	{"C1 as a bare byte", "a\x9b31mb", "a\ufffd31mb"},
}

func TestSanitize(t *testing.T) {
	t.Parallel()
	for _, test := range sanitized {
		if got := string(Sanitize([]byte("x"), []byte(test.input))); got != "x"+test.want {
			t.Errorf("%s: Sanitize(%q) = %q, want %q", test.name, test.input, got, "x"+test.want)
		}
		if got := SanitizeString(test.input); got != test.want {
			t.Errorf("%s: SanitizeString(%q) = %q, want %q", test.name, test.input, got, test.want)
		}
	}
}

func TestSanitizeInPieces(t *testing.T) {
	t.Parallel()
	for _, test := range sanitized {
		for size := 1; size <= len(test.input); size++ {
			var s sanitizer
			var got []byte
			for part := range slices.Chunk([]byte(test.input), size) {
				got = appendSafe(&s, got, part)
			}
			if got = s.end(got); string(got) != test.want {
				t.Errorf("%s in pieces of %d: %q, want %q", test.name, size, got, test.want)
			}
		}
	}
}

// forbidden returns the first character of text that must not be printed.
func forbidden(text string) (rune, bool) {
	for _, r := range text {
		switch {
		case r == '\n', r == '\t':
		case r < ' ', r >= 0x7f && r < 0xa0, r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
			return r, true
		}
	}
	return 0, false
}

func FuzzSanitize(f *testing.F) {
	for _, test := range sanitized {
		f.Add(test.input, uint16(1))
	}
	f.Fuzz(func(t *testing.T, input string, cut uint16) {
		whole := SanitizeString(input)
		if r, ok := forbidden(whole); ok || !utf8.ValidString(whole) {
			t.Fatalf("%q has %U or is not valid", whole, r)
		}
		at := min(int(cut), len(input))
		var s sanitizer
		pieces := appendSafe(&s, nil, input[:at])
		pieces = s.end(appendSafe(&s, pieces, input[at:]))
		if string(pieces) != whole {
			t.Fatalf("in pieces %q, whole %q", pieces, whole)
		}
		if again := SanitizeString(whole); again != whole {
			t.Fatalf("sanitized twice %q, once %q", again, whole)
		}
		if strings.Count(whole, "\n") != strings.Count(input, "\n") {
			t.Fatalf("line breaks were lost")
		}
	})
}

func BenchmarkSanitize(b *testing.B) {
	for _, test := range []struct{ name, text string }{
		{"ASCII", strings.Repeat("some plain text ", 1000)},
		{"Greek", strings.Repeat("κάποιο κείμενο ", 1000)},
	} {
		b.Run(test.name, func(b *testing.B) {
			b.SetBytes(int64(len(test.text)))
			var dst []byte
			for b.Loop() {
				dst = Sanitize(dst[:0], []byte(test.text))
			}
		})
	}
}

func TestSanitizeJudgesEveryCharacterAlike(t *testing.T) {
	t.Parallel()
	check := func(text string) {
		whole := SanitizeString("0123456" + text + "789abcdef")
		var s sanitizer
		var pieces []byte
		for _, b := range []byte("0123456" + text + "789abcdef") {
			pieces = appendSafe(&s, pieces, []byte{b})
		}
		if pieces = s.end(pieces); string(pieces) != whole {
			t.Errorf("%q: whole %q, byte by byte %q", text, whole, pieces)
		}
	}
	for r := rune(0); r <= utf8.MaxRune; r++ {
		if r > 0x3000 {
			r += 96
		}
		check(string(r))
	}
	for a := 0x80; a <= 0xff; a++ {
		for _, b := range []byte{0x00, 0x7f, 0x80, 0x81, 0x82, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xff} {
			check(string([]byte{byte(a), b}))
			check(string([]byte{byte(a), b, 0x80}))
			check(string([]byte{byte(a), b, 0x80, 0xbf}))
			check(string([]byte{byte(a), b, 0x80, 'x'}))
		}
	}
}
