package runner_test

import (
	"strings"
	"testing"

	"github.com/busdk/bus-agent/runner"
)

func TestMaskWriterMasksWhatComesInPieces(t *testing.T) {
	t.Parallel()
	environ := []string{"A_KEY=abcdefgh", "B_TOKEN=abcdefghijkl", "C_SECRET=line one\nline two", "D_KEY=twoxyzabc", "PLAIN=nosecrethere"}
	for _, text := range []string{
		"", "plain text nosecrethere\n", "say abcdefgh and abcdefghijkl\n", "abcdefghi", "begin abcdef", "line one\nline two\n",
		"line one\nline", "twoxyzabcdefgh", "twoxyzabcdefghijkl", "abcdefghabcdefghijk", "line one\nline twoxyzabc",
	} {
		want := runner.Mask(environ, text)
		for size := 1; size <= len(text)+1; size++ {
			var got strings.Builder
			w := runner.NewMaskWriter(&got, environ)
			for rest := text; rest != ""; {
				n := min(size, len(rest))
				if _, err := w.Write([]byte(rest[:n])); err != nil {
					t.Fatal(err)
				}
				rest = rest[n:]
			}
			if strings.HasSuffix(text, "\n") && got.String() != want {
				t.Errorf("%q in pieces of %d: %q before the end, want %q", text, size, got.String(), want)
			}
			if err := w.Flush(); err != nil || got.String() != want {
				t.Errorf("%q in pieces of %d: %q, %v, want %q", text, size, got.String(), err, want)
			}
		}
	}
}
