package excerpt

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestBeginningAndEndAreKept(t *testing.T) {
	t.Parallel()
	const limit = 1 << 10
	whole := limit - noteSize
	for _, n := range []int{2, limit / 2, limit/2 + 1, whole, whole + 1, 100 * limit} {
		text := "<" + strings.Repeat("x", n-2) + ">"
		for _, size := range []int{1, 777, n} {
			x := Text{Limit: limit}
			for rest := text; rest != ""; rest = rest[min(size, len(rest)):] {
				_, _ = x.WriteString(rest[:min(size, len(rest))])
			}
			got := x.Take()
			if len(got) > limit || !strings.HasPrefix(got, "<") || !strings.HasSuffix(got, ">") {
				t.Errorf("%d bytes in pieces of %d became %d: %.20q", n, size, len(got), got)
			}
			if (n <= whole) != (got == text) {
				t.Errorf("%d bytes in pieces of %d: unchanged is %t", n, size, got == text)
			}
			if !x.Empty() || x.Take() != "" {
				t.Error("the text is not empty after Take")
			}
		}
	}
}

func TestResultIsValidUTF8(t *testing.T) {
	t.Parallel()
	for _, text := range []string{strings.Repeat("ä", 5000), "a" + strings.Repeat("€", 5000), "\xff", strings.Repeat("\xff", 5000)} {
		x := Text{Limit: 1 << 10}
		_, _ = x.Write([]byte(text))
		if got := x.Take(); !utf8.ValidString(got) || len(got) > x.Limit {
			t.Errorf("%d bytes: %.40q", len(got), got)
		}
	}
}
