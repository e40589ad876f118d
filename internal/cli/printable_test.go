package cli

import (
	"testing"
)

func TestPrintable(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"": "", "/a b/ü": "/a b/ü", "a\nb": `"a\nb"`, "a\x1b[2J": `"a\x1b[2J"`, "a\u009b": `"a\u009b"`, "a\u202eb": `"a\u202eb"`, "a\xff": `"a\xff"`,
	} {
		if got := printable(in); got != want {
			t.Errorf("printable(%q) = %s, want %s", in, got, want)
		}
	}
}
