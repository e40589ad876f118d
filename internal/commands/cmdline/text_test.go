package cmdline

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/internal/testneed"
	"github.com/busdk/bus-agent/registry"
)

func TestPrintable(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"": "", "/a b/ü": "/a b/ü", "a\nb": `"a\nb"`, "a\x1b[2J": `"a\x1b[2J"`, "a\u009b": `"a\u009b"`, "a\u202eb": `"a\u202eb"`, "a\xff": `"a\xff"`,
	} {
		if got := Printable(in); got != want {
			t.Errorf("printable(%q) = %s, want %s", in, got, want)
		}
	}
}

func TestLoginHint(t *testing.T) {
	t.Parallel()
	for want, rt := range map[string]registry.Runtime{
		"log in with its own CLI":                {},
		"log in with its own CLI, or set A or B": {TokenEnv: []string{"A", "B"}},
		"set A or B to a valid token":            {TokenEnv: []string{"A", "B"}, TokenOnly: true},
		"set the variable of its token":          {TokenOnly: true},
	} {
		if got := LoginHint(rt); got != want {
			t.Errorf("LoginHint = %q, want %q", got, want)
		}
	}
}

func TestShellWord(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain-1.2_x/y:z=@%+,": "plain-1.2_x/y:z=@%+,",
		"":                     "''",
		"two words":            "'two words'",
		"it's":                 `'it'\''s'`,
		"$HOME `x` \\":         "'$HOME `x` \\'",
		"a\nb\tc":              `$'a\nb\tc'`,
		"\x1b[2J'\\":           `$'\x1b[2J\'\\'`,
		"ü*":                   "'ü*'",
		"~":                    "'~'",
		"a\x9b2\u009b":         `$'a\x9b2\xc2\x9b'`,
	} {
		if got := ShellWord(in); got != want {
			t.Errorf("shellWord(%q) = %s, want %s", in, got, want)
		}
	}
}

// FuzzShellWord lets a real shell read the words back.
func FuzzShellWord(f *testing.F) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		testneed.Lacking(f, "no bash: %v", err)
	}
	f.Add("it's a $'test'\n\x01\x7f")
	f.Add("\\x41\\'")
	f.Add("\xff2\u009b\ufffd")
	f.Fuzz(func(t *testing.T, word string) {
		if strings.ContainsRune(word, 0) {
			t.Skip("no argument holds a NUL")
		}
		out, err := exec.Command(bash, "--norc", "-c", "printf %s "+ShellWord(word)).Output()
		if err != nil {
			t.Fatalf("%q: %v", word, err)
		}
		if string(out) != word {
			t.Errorf("%q came back as %q from %s", word, out, ShellWord(word))
		}
	})
}
