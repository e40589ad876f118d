package runner_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/busdk/bus-agent/runner"
)

// The time to mask a text grows in proportion to its length, for all secrets and texts.
// If it grew faster, each of these would take minutes to years.
func TestMaskIsLinear(t *testing.T) {
	t.Parallel()
	const size, limit = 16 << 10, 2 * time.Minute
	slashes := strings.Repeat(`\`, 64)
	var prefixes, escapes []string
	for i := 8; i < 200; i++ {
		prefixes = append(prefixes, fmt.Sprintf("A%d_KEY=%s", i, strings.Repeat("a", i)))
		escapes = append(escapes, fmt.Sprintf("B%d_KEY=%s%d", i, slashes, i))
	}
	inBase64 := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("abc", 100)))
	for name, c := range map[string]struct {
		environ []string
		text    string // repeated
	}{
		"backslashes":                     {[]string{"A_KEY=" + slashes}, `\`},
		"backslashes before a letter":     {[]string{"A_KEY=" + slashes + "x"}, `\`},
		"backslashes after a letter":      {[]string{"A_KEY=x" + slashes + "y"}, "x" + strings.Repeat(slashes, 8)},
		"backslashes apart":               {[]string{"A_KEY=" + strings.Repeat(`\a`, 100) + "x"}, `\\a`},
		"runs of backslashes and quotes":  {[]string{"A_KEY=" + strings.Repeat(`\\\"`, 50) + "x"}, `\\\\\\\"`},
		"backslashes and many secrets":    {escapes[:20], `\`},
		"escapes of a letter":             {[]string{"A_KEY=" + strings.Repeat("a", 500) + "x"}, `\u0061`},
		"escapes between letters":         {[]string{"A_KEY=" + strings.Repeat("a", 500) + "bx"}, `aaaaaaaaaaaaaaaaaaaaaaaaaa\u0061`},
		"escapes with many backslashes":   {[]string{"A_KEY=" + strings.Repeat("a", 500) + "x"}, `\\\\\\\u0061`},
		"percent":                         {[]string{"A_KEY=" + strings.Repeat("%25", 100) + "x"}, "%25"},
		"percent of letters":              {[]string{"A_KEY=" + strings.Repeat("aA", 200) + "x"}, "%61A"},
		"letters":                         {[]string{"A_KEY=" + strings.Repeat("a", 500) + "x"}, "a"},
		"secrets that begin others":       {prefixes, "a"},
		"secrets that begin others, JSON": {prefixes, `aaaaaaa\u0061`},
		"base64":                          {[]string{"A_KEY=" + strings.Repeat("abc", 100)}, inBase64[:len(inBase64)-4] + "/"},
		"base64 in JSON":                  {[]string{"A_KEY=" + strings.Repeat("abc", 100)}, inBase64[:len(inBase64)-4] + `\/`},
		"surrogates":                      {[]string{"A_KEY=" + strings.Repeat("😀", 50) + "x"}, `\ud83d\ude00`},
		"surrogates without others":       {[]string{"A_KEY=" + strings.Repeat("😀", 50) + "x"}, `\\\\\\\\ud83d`},
		"plain text after a secret":       {[]string{"A_KEY=abcdefgh"}, "abcdefgh" + strings.Repeat(" ", 100)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := strings.Repeat(c.text, size/len(c.text))
			masker := runner.NewMasker(c.environ)
			var pieces [2]strings.Builder
			done := make(chan string, 1)
			go func() {
				for i, size := range []int{1, 1000} {
					w := masker.Writer(&pieces[i])
					for at := 0; at < len(text); at += size {
						_, _ = w.Write([]byte(text[at:min(at+size, len(text))]))
					}
					_ = w.Flush()
				}
				done <- masker.Text(text)
			}()
			select {
			case want := <-done:
				for i := range pieces {
					if got := pieces[i].String(); got != want {
						t.Errorf("in pieces: %.200q, want %.200q", got, want)
					}
				}
			case <-time.After(limit):
				t.Fatalf("not masked within %v", limit)
			}
		})
	}
}

// A text that is an endless secret is not held back.
func TestMaskWriterHoldsLittle(t *testing.T) {
	t.Parallel()
	var got strings.Builder
	w := runner.NewMaskWriter(&got, []string{"A_KEY=" + strings.Repeat(`\\`, 4)})
	piece := []byte(strings.Repeat(`\\`, 16))
	for range 100 {
		_, _ = w.Write(piece)
	}
	if got.String() != "***" {
		t.Errorf("%.100q was passed on before the end", got.String())
	}
	if err := w.Flush(); err != nil || got.String() != "***" {
		t.Errorf("%.100q, %v", got.String(), err)
	}
}
