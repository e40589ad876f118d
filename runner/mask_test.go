package runner_test

import (
	"strings"
	"testing"
	"unsafe"

	"github.com/busdk/bus-agent/runner"
)

func TestMaskWriterMasksWhatComesInPieces(t *testing.T) {
	t.Parallel()
	environ := []string{"A_KEY=abcdefgh", "B_TOKEN=abcdefghijkl", "C_SECRET=line one\nline two", "D_KEY=twoxyzabc", "E_TOKEN=ghijklmnop", "F_KEY=z!z!z!z!", "PLAIN=nosecrethere"}
	for _, text := range []string{
		"", "plain text nosecrethere\n", "say abcdefgh and abcdefghijkl\n", "abcdefghi", "begin abcdef", "line one\nline two\n",
		"line one\nline", "twoxyzabcdefgh", "twoxyzabcdefghijkl", "abcdefghabcdefghijk", "line one\nline twoxyzabc",
		"abcdefghijklmnop.", "twoxyzabcdefghijklmnopq\n", "z!z!z!z!z!z\n", "z!z!z!z!z!z!z!z!",
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

// Overlapping secrets are masked completely.
func TestMaskSecretsThatOverlap(t *testing.T) {
	t.Parallel()
	environ := []string{"A_TOKEN=abcdefgh1234", "B_TOKEN=gh1234xyzw99", "C_KEY=1234xyzw", "D_KEY=z!z!z!z!"}
	for text, want := range map[string]string{
		"say abcdefgh1234xyzw99.":             "say ***.",
		"abcdefgh1234":                        "***",
		"abcdefgh1234gh1234xyzw99":            "******",
		"gh1234xyzw99 and abcdefgh1234xyzw":   "*** and ***",
		"a z!z!z!z!z! b":                      "a *** b",
		"abcdefgh123 4xyzw99 is not a secret": "abcdefgh123 4xyzw99 is not a secret",
	} {
		if got := runner.Mask(environ, text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

// A text without secrets is not copied.
func TestMaskCopiesNothingWithoutSecrets(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("abcdefgh123 ", 1000)
	got := runner.Mask([]string{"A_KEY=abcdefgh1234", "B_KEY=other-secret"}, text)
	if unsafe.StringData(got) != unsafe.StringData(text) {
		t.Error("the text was copied")
	}
}

// FuzzMaskWriter compares a MaskWriter that gets pieces with [runner.Mask] of the whole.
func FuzzMaskWriter(f *testing.F) {
	f.Add("say abcdefgh1234xyzw99 ", "abcdefgh1234", "gh1234xyzw99", uint64(1))
	f.Add("abababababababab ababababa", "abababab", "babababa ", uint64(2))
	f.Add("aabaabaabaab", "aabaabaa", "abaabaab", uint64(3))
	f.Add("ü\x00\xff12345678\xff12345", "\xff12345678", "5678\xff123", uint64(4))
	f.Fuzz(func(t *testing.T, text, one, other string, seed uint64) {
		if len(text)+len(one)+len(other) > 1<<10 {
			t.Skip("what is long takes long and shows no more")
		}
		environ := []string{"A_KEY=" + one, "B_TOKEN=" + other}
		want := runner.Mask(environ, text)
		for _, secret := range []string{one, other} {
			if len(secret) >= 8 && !strings.Contains(secret, "*") && strings.Contains(want, secret) {
				t.Errorf("%q is left in %q", secret, want)
			}
		}
		inPieces(t, runner.NewMasker(environ), text, want, seed)
	})
}
