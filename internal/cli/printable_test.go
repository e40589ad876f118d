package cli

import (
	"encoding/json"
	"testing"
)

func TestPrintable(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"": "", "/a b/ü": "/a b/ü", "a\nb": `"a\nb"`, "a\x1b[2J": `"a\x1b[2J"`, "a\u009b": `"a\u009b"`, "a\xff": `"a\xff"`,
	} {
		if got := printable(in); got != want {
			t.Errorf("printable(%q) = %s, want %s", in, got, want)
		}
	}
}

func TestEscapeControls(t *testing.T) {
	t.Parallel()
	in := "ü\u007f\u0080\u009b\u009f\u00a0\x1b\n\ufffd"
	text, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	safe := escapeControls(text)
	var out string
	if err := json.Unmarshal(safe, &out); err != nil || out != in {
		t.Errorf("%s is %q, %v", safe, out, err)
	}
	for _, r := range string(safe) {
		if r < ' ' || isLateControl(r) {
			t.Errorf("%s holds %U", safe, r)
		}
	}
}
