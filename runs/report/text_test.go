package report

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestPlainMakesVisibleWhatActs(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"one\ttwo\nthree":             "one\ttwo\nthree",
		"line\r\nline":                "line\nline",
		"alone\r":                     "alone␍",
		"\x1b[31mred\x1b[0m":          "red",
		"\x1b[38;5;9mred\x1b[m":       "red",
		"\x1b[2J\x1b]0;title\x07":     "␛[2J␛]0;title␇",
		"\x1b[31":                     "␛[31",
		"nul\x00 del\x7f c1\u009b":    "nul␀ del␡ c1⟨U+009B⟩",
		"exe\u202etxt.cod":            "exe⟨U+202E⟩txt.cod",
		"a\u2066b\u2069c\u200ed":      "a⟨U+2066⟩b⟨U+2069⟩c⟨U+200E⟩d",
		"no\u200bthing\ufeff\u00ad":   "no⟨U+200B⟩thing⟨U+FEFF⟩⟨U+00AD⟩",
		"tag\U000e0041":               "tag⟨U+E0041⟩",
		"sep\u2028arator":             "sep⟨U+2028⟩arator",
		"bad\xff\xfebytes":            "bad\ufffd\ufffdbytes",
		"👩\u200d💻 \u0645\u06cc\u200c": "👩\u200d💻 \u0645\u06cc\u200c",
	} {
		if got := plain(given); got != want {
			t.Errorf("plain(%q) = %q, want %q", given, got, want)
		}
	}
}

func TestLongMetadataIsCutWithAMark(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ given, want string }{
		{"short", "short"},
		{"exactly 10", "exactly 10"},
		{"one more 11", "one more 1…"},
		{"123456789ü", "123456789…"},
		{"\x1b[31mred and more", "red a…"},
		{"\u202e\u202e", "⟨U+202E…"}, // longer when it is visible
		{"one\r\ntwo", "one\ntwo"},
		{"\xff\xff", "\ufffd\ufffd"},
		{strings.Repeat("\x80", 20), "\ufffd\ufffd\ufffd…"},
	} {
		if got := bounded(test.given, 10); got != test.want {
			t.Errorf("bounded(%q) = %q, want %q", test.given, got, test.want)
		}
	}
}

func FuzzPlain(f *testing.F) {
	f.Add("a\x1b[1mb\r\n\u202e<>&\"\\ \xff")
	f.Fuzz(func(t *testing.T, s string) {
		got := plain(s)
		if strings.ContainsFunc(got, acts) || !utf8.ValidString(got) {
			t.Errorf("plain(%q) = %q", s, got)
		}
		if text, err := json.Marshal(got); err != nil || len(text) != quotedSize(got) {
			t.Errorf("quotedSize(%q) = %d, want %d (%v)", got, quotedSize(got), len(text), err)
		}
		if kept := bounded(s, 16); len(kept) > 16+len("…") || !utf8.ValidString(kept) || strings.ContainsFunc(kept, acts) {
			t.Errorf("bounded(%q) = %q", s, kept)
		}
		if kept, left := cut(got, 16); left > 0 && !utf8.ValidString(kept) {
			t.Errorf("cut(%q) = %q", got, kept)
		}
	})
}

func TestNumbersAreReadable(t *testing.T) {
	t.Parallel()
	for got, want := range map[string]string{
		count(0): "0", count(999): "999", count(1000): "1,000", count(-1234567): "-1,234,567",
		brief(999): "999", brief(1000): "1.00k", brief(9996): "10.0k", brief(123456): "123k", brief(999500): "1.00M", brief(2_240_000_000): "2.24G",
		span(-time.Second): "0 ms", span(0): "0 ms", span(840 * time.Millisecond): "840 ms", span(4200 * time.Millisecond): "4.2 s",
		span(59960 * time.Millisecond): "1 m 00 s", span(754 * time.Second): "12 m 34 s", span(3*time.Hour + 5*time.Minute): "3 h 05 m",
		span(50 * time.Hour): "2 d 02 h",
		dollars(0.0123, 4):   "$0.0123", dollars(1763.605, 2): "$1,763.61", dollars(-2, 2): "$-2.00",
		size(12): "12 bytes", size(1500): "1.5 kB", size(21_000_000): "21.0 MB",
		plural(1, "run", "runs"): "1 run", plural(1200, "run", "runs"): "1,200 runs",
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestLongTextKeepsBothEnds(t *testing.T) {
	t.Parallel()
	kept, left := cut("begin"+strings.Repeat("ü", 1000)+"end", 100)
	if !strings.HasPrefix(kept, "begin") || !strings.HasSuffix(kept, "end") || !strings.Contains(kept, "left out") || !utf8.ValidString(kept) {
		t.Errorf("%q", kept)
	}
	if left < 1900 || left > 1920 {
		t.Errorf("%d bytes are shown as left out", left)
	}
}
