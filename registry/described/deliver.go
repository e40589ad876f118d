package described

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/instructions"
	"github.com/busdk/bus-agent/registry"
)

// reads returns what the CLI reads by itself.
func (d *Definition) reads(registry.Invocation) []instructions.Read {
	reads := instructions.Reads(instructions.Everywhere, d.Reads...)
	if d.Instructions == instructionsNative {
		reads = append(reads, instructions.Reads(instructions.Everywhere, instructions.FileName)...)
	}
	for i := range reads {
		reads[i].Imports = true
	}
	return reads
}

// instructions returns how AGENTS.md is delivered; nil where it is not.
func (d *Definition) instructions(id string) *registry.Instructions {
	if d.Instructions == instructionsNone {
		return nil
	}
	how := &registry.Instructions{MaxBytes: instructions.MaxBytes}
	if d.Home != nil {
		how.Owned = []instructions.Owned{{Home: homeParent(id)}}
	}
	return how
}

// homeParent returns the folder of private homes of the runtime with this ID.
func homeParent(id string) string { return "." + id + "/bus" }

// prepare makes the private home, and puts AGENTS.md before the prompt or leaves it to
// the CLI.
func (d *Definition) prepare(id string, inv registry.Invocation, w *instructions.Workspace) (setup registry.Setup, err error) {
	chain := w.Chain()
	if !inv.TrustWorkspace {
		if file := d.executed(inv, chain); file != "" {
			return setup, agent.Usagef("%s would run what %s names, and has no option against it; "+
				"nothing was started; use --trust-workspace to let it, or remove the file", d.Name, file)
		}
	}
	switch {
	case d.Home == nil:
	case d.Home.ofCaller(inv):
		if setup, err = d.useCallerHome(inv); err != nil {
			return setup, err
		}
	default:
		of := inv
		if len(d.Home.Sessions) == 0 { // the CLI keeps them elsewhere
			of.Resume, of.Continue = "", false
		}
		return d.Home.private(homeParent(id)).Prepare(of, w, func(home *instructions.Home, setup *registry.Setup) error {
			return errors.Join(d.writeFiles(inv, home), d.deliver(setup, inv, chain))
		})
	}
	return setup, d.deliver(&setup, inv, chain)
}

// deliver puts AGENTS.md before the prompt, or leaves it to the CLI.
func (d *Definition) deliver(setup *registry.Setup, inv registry.Invocation, chain instructions.Chain) error {
	switch {
	case d.Instructions == instructionsInPrompt:
		return d.prefix(setup, inv, chain)
	case d.Instructions == instructionsNative && !chain.WithinLimit(instructions.MaxBytes):
		setup.Warnings = append(setup.Warnings, fmt.Sprintf("the %s files have %d bytes; %s reads them itself and may leave out a part", instructions.FileName, chain.Size(), d.Name))
	}
	return nil
}

// prefix sets the text that goes before the prompt.
func (d *Definition) prefix(setup *registry.Setup, inv registry.Invocation, chain instructions.Chain) error {
	if len(chain.Files) == 0 || inv.HasInstructions() {
		return nil
	}
	room := instructions.MaxBytes
	if d.Prompt == promptByArgument {
		room = min(room, maxArgument-len(instructions.EndOfText)-len(inv.Prompt))
	}
	fits := room > 0 && chain.WithinLimit(room)
	switch {
	case !fits && inv.RequireInstructions:
		return agent.Usagef("%s is %d bytes and does not fit before the prompt, but it is required whole; nothing was started", instructions.FileName, chain.Size())
	case room <= 0:
		setup.Warnings = append(setup.Warnings, fmt.Sprintf("the prompt leaves no room for %s; it is left out", instructions.FileName))
		return nil
	}
	return setup.PrependInstructions(chain, room)
}

// executed returns the path of a file that the CLI runs, in the workdir or above it,
// relative to the root where it is below; "" where there is none. The home of the user
// holds what is the user's.
func (d *Definition) executed(inv registry.Invocation, chain instructions.Chain) string {
	var user registry.Home
	if d.Home != nil {
		user = d.Home.user()
	}
	for dir := chain.Workdir; ; dir = filepath.Dir(dir) {
		if name := d.executedIn(dir); name != "" && !inv.IsHome(user, dir) {
			file := filepath.Join(dir, name)
			if rel, err := filepath.Rel(chain.Root, file); err == nil && filepath.IsLocal(rel) {
				return rel
			}
			return file
		}
		if dir == filepath.Dir(dir) {
			return ""
		}
	}
}

// executedIn returns the name of a file in dir that the CLI runs.
func (d *Definition) executedIn(dir string) string {
	for _, name := range d.Executed {
		name = filepath.FromSlash(name)
		if _, err := os.Lstat(filepath.Join(dir, name)); !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
			return name
		}
	}
	return ""
}
