package cli

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/busdk/bus-agent/registry"
)

// parsed runs parse and returns the line in the form the framework gets.
func parsed(t *testing.T, args ...string) (line, []string, error) {
	t.Helper()
	inv := newInvocation(&Env{Registry: new(registry.Registry)})
	l, err := parse(inv.root, args)
	return l, l.arguments()[1:], err
}

func TestParseCanonicalForm(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ in, want string }{
		"nothing":                          {"", ""},
		"global flags go first":            {"detect -q --format json", "--quiet --format=json detect"},
		"flags of a command may come last": {"set model m -q", "--quiet set model -- m"},
		"short flags stand alone":          {"-vv detect -1v", "--verbose --verbose --verbose detect --first"},
		"two spellings are one flag":       {"-v --verbose -C a --chdir b detect", "--verbose --verbose --chdir=a --chdir=b detect"},
		"a value may look like a flag":     {"run --text --agent --agent -x", "run --text=--agent --agent=-x"},
		"a value may be empty":             {"run --text= --agent", ""},
		"an equals sign in a value":        {"run --var A=b=c", "run --var=A=b=c"},
		"a comma in a value":               {"run --var A=b,c --add-dir x,y", "run --var=A=b,c --add-dir=x,y"},
		"a dash is an argument":            {"set model -", "set model -- -"},
		"after -- all are arguments":       {"set model -- -q", "set model -- -q"},
		"-- before the command":            {"-q -- detect --first", "--quiet detect --first"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, got, err := parsed(t, strings.Fields(test.in)...)
			if test.want == "" && test.in != "" {
				if err == nil {
					t.Errorf("no error, line %q", got)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.Fields(test.want), got, cmp.Transformer("empty", func(s []string) []string { return append([]string{}, s...) })); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestParsePassesArgumentsOn(t *testing.T) {
	t.Parallel()
	l, got, err := parsed(t, "run", "--text", "x", "--", "--help", "-V", "--", "")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"--help", "-V", "--", ""}, l.rest); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"run", "--text=x"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if l.help || l.version {
		t.Error("flags after -- were taken for our own")
	}
}

func TestParseHelpAndVersionWinOverMistakes(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"run", "--bogus", "-h"}, {"-h", "bogus"}, {"run", "stray", "-h"}, {"-V", "--bogus"}} {
		if l, _, _ := parsed(t, args...); !l.help && !l.version {
			t.Errorf("%q: neither help nor version was seen", args)
		}
	}
	if l, _, _ := parsed(t, "run", "--text", "-h"); l.help {
		t.Error("the value -h was taken for a flag")
	}
}

func TestDidYouMean(t *testing.T) {
	t.Parallel()
	names := []string{"detect", "run", "render", "set"}
	for word, want := range map[string]string{
		"detcet": "detect", "rnder": "render", "rum": "run", "completely-else": "", "": "", "x": "",
	} {
		got := didYouMean(word, names)
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("didYouMean(%q) = %q, want %q", word, got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("run\x00--text\x00x\x00--\x00y")
	f.Add("-vq\x00set\x00model\x00--\x00-")
	f.Add("--=\x00-\x00--\x00---")
	f.Fuzz(func(t *testing.T, text string) {
		args := strings.Split(text, "\x00")
		inv := newInvocation(&Env{Registry: new(registry.Registry)})
		l, err := parse(inv.root, args)
		if err != nil {
			return
		}
		// The canonical form of a canonical form is itself.
		again, err := parse(newInvocation(&Env{Registry: new(registry.Registry)}).root, l.arguments()[1:])
		if err != nil {
			t.Fatalf("%q became %q, which is refused: %v", args, l.arguments(), err)
		}
		if diff := cmp.Diff(l.arguments(), again.arguments()); diff != "" && len(l.rest) == 0 {
			t.Errorf("%q: -first +second:\n%s", args, diff)
		}
	})
}

// A command is looked up by the name that stands in the tree and asked for the
// rest when it is needed.
func TestCommandsHaveTheNameTheyAreFoundBy(t *testing.T) {
	t.Parallel()
	root := newInvocation(&Env{Registry: new(registry.Registry)}).root
	for _, name := range root.subnames() {
		if c := root.lookup(name); c == nil || c.name != name || c.purpose == "" {
			t.Errorf("%q is found as %+v", name, c)
		}
	}
}
