package more

import (
	"slices"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
)

// The files of a run are arguments before those of the caller, which can end the options.
func TestAttachedFilesAreArguments(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rt   registry.Runtime
		want []string
	}{
		"opencode": {opencode(), []string{"--file=/t/1.png", "--file=/t/2.png", "--mine"}},
		"copilot":  {copilot(), []string{"--attachment=/t/1.png", "--attachment=/t/2.png", "--mine"}},
		"pi":       {pi(), []string{"@/t/1.png", "@/t/2.png", "--mine"}},
	} {
		inv := registry.Invocation{Access: agent.AccessWrite, Args: []string{"--mine"}, Attachments: []registry.Attachment{{Path: "/t/1.png"}, {Path: "/t/2.png"}}}
		command, err := c.rt.Run.Command(inv)
		if n := len(command.Args) - len(c.want); err != nil || n < 0 || !slices.Equal(command.Args[n:], c.want) {
			t.Errorf("%s: %q, %v; want %q at the end", name, command.Args, err, c.want)
		}
		if !c.rt.Run.Options.AttachmentFiles || !slices.Equal(inv.Args, []string{"--mine"}) {
			t.Errorf("%s: no files, or the caller's arguments are changed", name)
		}
	}
}
