package cmdline

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/registry"
)

// someCommands have each kind of flag and argument.
func someCommands() []Command {
	return []Command{
		{"detect", func(*Program) *urfave.Command {
			return &urfave.Command{Name: "detect", Flags: []urfave.Flag{Switch("first,1", "", new(bool))}}
		}},
		{"run", func(*Program) *urfave.Command {
			return &urfave.Command{Name: "run", ArgsUsage: "[-- ARGS]", Flags: []urfave.Flag{
				String("record", "", new(string)).Optional("on"), String("text", "", new(string)).Opaque(), String("agent", "", new(string)),
				Strings("var", "", new([]string)), Strings("add-dir", "", new([]string)),
			}}
		}},
		{"list", func(*Program) *urfave.Command {
			return &urfave.Command{Name: "list", Flags: []urfave.Flag{Number("limit,n", "", 0, new(int))}}
		}},
		{"set", func(*Program) *urfave.Command {
			return &urfave.Command{Name: "set", Subcommands: []*urfave.Command{{Name: "model", ArgsUsage: "MODEL"}}}
		}},
	}
}

// arranged returns a line and the words that urfave/cli gets.
func arranged(args ...string) (*line, []string) {
	prog := New(&Env{Registry: new(registry.Registry)}, new(urfave.Command), someCommands())
	l := prog.arrange(args)
	return l, l.words()[1:]
}

func TestArrange(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ in, want string }{
		"nothing":                          {"", ""},
		"global flags go first":            {"detect -q --format json", "--quiet --format=json detect"},
		"flags of a command may come last": {"set model m -q", "--quiet set model -- m"},
		"short flags stand alone":          {"-vv detect -1v", "--verbose --verbose --verbose detect --first"},
		"two spellings are one flag":       {"-v --verbose -C a --chdir b detect", "--verbose --verbose --chdir=a --chdir=b detect"},
		"a value may look like a flag":     {"run --text --agent --agent -x", "run --text=--agent --agent=-x"},
		"a value may look like a number":   {"list -n -5", "list --limit=-5"},
		"a value after short flags":        {"list -vn 5", "--verbose list --limit=5"},
		"a value in the word":              {"list -vn5", "--verbose list --limit=5"},
		"an equals sign after short flags": {"-vC=a list -n=5", "--verbose --chdir=a list --limit=5"},
		"a value may be empty":             {"run --text= --agent", "run --text= --agent"},
		"a value may be left out":          {"run --record --text x", "run --record=on --text=x"},
		"unknown flags stay":               {"-x run --bogus=1 -vx", "-x run --bogus=1 -vx"},
		"an equals sign in a value":        {"run --var A=b=c", "run --var=A=b=c"},
		"a comma in a value":               {"run --var A=b,c --add-dir x,y", "run --var=A=b,c --add-dir=x,y"},
		"a dash is an argument":            {"set model -", "set model -- -"},
		"after -- all are arguments":       {"set model -- -q", "set model -- -q"},
		"-- before the command":            {"-q -- detect --first", "--quiet detect --first"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, got := arranged(strings.Fields(test.in)...)
			if diff := cmp.Diff(strings.Fields(test.want), got, cmp.Transformer("empty", func(s []string) []string { return append([]string{}, s...) })); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestArrangeHandsArgumentsOn(t *testing.T) {
	t.Parallel()
	l, got := arranged("run", "--text", "x", "--", "--help", "-V", "--", "")
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

func TestHelpAndVersionWinOverMistakes(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"run", "--bogus", "-h"}, {"-h", "bogus"}, {"run", "stray", "-h"}, {"-V", "--bogus"}} {
		if l, _ := arranged(args...); !l.help && !l.version {
			t.Errorf("%q: neither help nor version was seen", args)
		}
	}
	if l, _ := arranged("run", "--text", "-h"); l.help {
		t.Error("the value -h was taken for a flag")
	}
}

func TestArrangeFindsMistakes(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"run --agent --text x":              "--agent needs a value; write one that is a flag as --agent=VALUE",
		"run --agent --quiet":               "--agent needs a value; write one that is a flag as --agent=VALUE",
		"run --agent -- x":                  "--agent needs a value; write one that is a flag as --agent=VALUE",
		"run --text x --text x":             "--text is given twice",
		"run --record --record=off":         "--record is given twice",
		"-C a detect --chdir=b":             "--chdir is given twice",
		"run --text --bogus":                "",
		"run --var A=1 --var B=2 --text -v": "",
		"-vv detect -v":                     "",
	} {
		if l, _ := arranged(strings.Fields(line)...); l.wrong != want {
			t.Errorf("%s: %q, want %q", line, l.wrong, want)
		}
	}
}

func TestClosest(t *testing.T) {
	t.Parallel()
	names := []string{"agent", "access", "output", "claude", "codex:local", "model-verbosity"}
	for word, want := range map[string]string{
		"agnet": "agent", "acces": "access", "claud": "claude", "codex:locl": "codex:local", "model-verbsity": "model-verbosity",
		"bogus": "", "": "", "x": "", strings.Repeat("x", 1<<20): "",
	} {
		if got := closest(word, names); got != want {
			t.Errorf("%.20q: %q, want %q", word, got, want)
		}
	}
}

func FuzzArrange(f *testing.F) {
	f.Add("run\x00--text\x00x\x00--\x00y")
	f.Add("-vq\x00set\x00model\x00--\x00-")
	f.Add("--=\x00-\x00--\x00---")
	f.Fuzz(func(t *testing.T, text string) {
		l, got := arranged(strings.Split(text, "\x00")...)
		if l.help || l.version || l.rest != nil || l.pending != nil || l.lost || handsOn(l.command()) {
			return
		}
		// What is in order stays as it is.
		if _, again := arranged(got...); !slices.Equal(got, again) {
			t.Errorf("%q became %q, which became %q", text, got, again)
		}
	})
}
