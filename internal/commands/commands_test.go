package commands

import (
	"testing"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/internal/commands/cmdline"
	"github.com/busdk/bus-agent/registry"
)

func TestCommandsHaveTheNameTheyAreFoundBy(t *testing.T) {
	t.Parallel()
	prog := cmdline.New(&Env{Registry: new(registry.Registry)}, new(urfave.Command), nil)
	for _, b := range subjects {
		if c := b.Make(prog); c.Name != b.Name || c.Usage == "" && !c.Hidden {
			t.Errorf("%q is found as %+v", b.Name, c)
		}
	}
}
