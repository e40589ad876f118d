package cmdline

import (
	"strings"
	"testing"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/registry"
)

func TestVerbosityAccumulates(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"help": 0, "-v help": 1, "--verbose help": 1, "-vv help": 2, "-v --verbose -vv help -v": 5,
	} {
		var out, errs strings.Builder
		prog := New(&Env{Args: strings.Fields(text), Stdout: &out, Stderr: &errs, Registry: new(registry.Registry)}, new(urfave.Command), nil)
		if err := prog.main(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := prog.Global.Verbose; got != want {
			t.Errorf("%q: verbosity %d, want %d", text, got, want)
		}
	}
}
