package runtimes

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/busdk/bus-agent/internal/commands/cmdline"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/instructions"
)

// InstructionsCommand is "instructions".
func InstructionsCommand(prog *cmdline.Program) *urfave.Command {
	return &urfave.Command{
		Name:  "instructions",
		Usage: "show or remove the project instructions that bus-agent added",
		Description: `Agents get every AGENTS.md from the repository root down to the directory they work in,
the closest one last.`,
		Subcommands: []*urfave.Command{
			instructionsShow(prog),
			instructionsClean(prog),
		},
		UsageText: cmdline.UsageText("", "the command succeeded"),
		Action:    prog.Group,
	}
}

// instructionsReport is what show prints, in JSON.
type instructionsReport struct {
	Workdir  string        `json:"workdir"`
	Root     string        `json:"root"`
	Files    []instruction `json:"files"`
	Owned    []owned       `json:"owned"`
	Warnings []string      `json:"warnings"`
}

type instruction struct {
	Path string `json:"path"`
	Size int64  `json:"size"`
}

// owned is something that bus-agent added.
type owned struct {
	Path  string `json:"path"`
	What  string `json:"what"`
	InUse bool   `json:"in_use"`
}

func instructionsShow(prog *cmdline.Program) *urfave.Command {
	var workdir string
	return &urfave.Command{
		Name:  "show",
		Usage: "list the AGENTS.md files that apply, and what bus-agent added to the directory",
		Flags: []urfave.Flag{prog.Dir("workdir", "show `DIR` (default: the current directory)", &workdir)},
		UsageText: cmdline.UsageText(`# what would an agent get here?
bus-agent instructions show`,
			"the list was printed"),
		Action: prog.Action(cmdline.JSON, func(ctx context.Context, _ cmdline.Call) error {
			chain, err := instructions.Discover(cmp.Or(workdir, prog.Env.Dir))
			if err != nil {
				return err
			}
			found, err := instructions.Show(ctx, chain.Workdir, ownedBlocks(prog))
			if err != nil {
				return err
			}
			report := instructionsReport{Workdir: chain.Workdir, Root: chain.Root, Files: []instruction{}, Owned: ownedOf(found), Warnings: append([]string{}, chain.Warnings...)}
			var text strings.Builder
			for _, f := range chain.Files {
				report.Files = append(report.Files, instruction{f.Path, f.Size})
				fmt.Fprintf(&text, "%s (%d bytes)\n", cmdline.Printable(f.Path), f.Size)
			}
			for _, o := range report.Owned {
				text.WriteString(o.String() + "\n")
			}
			if !prog.Global.JSON() {
				for _, line := range report.Warnings {
					prog.Screen.Warn(line)
				}
				if len(report.Files) == 0 {
					prog.Screen.Info("no " + instructions.FileName + " applies to " + cmdline.Printable(chain.Workdir))
				}
			}
			return prog.Out.Report(report, text.String())
		}),
	}
}

func instructionsClean(prog *cmdline.Program) *urfave.Command {
	var workdir string
	return &urfave.Command{
		Name:  "clean",
		Usage: "remove what bus-agent added to the directory, and nothing else",
		Description: `Removes the marked blocks, list entries and private homes that runs left in the
directory. Clean keeps what a running agent uses, and never changes AGENTS.md itself.`,
		Flags: []urfave.Flag{prog.Dir("workdir", "clean `DIR` (default: the current directory)", &workdir)},
		UsageText: cmdline.UsageText(`# remove all traces
bus-agent instructions clean`,
			"everything was removed, except what is in use", "something could not be removed"),
		Action: prog.Action(cmdline.JSON|cmdline.Slow, func(ctx context.Context, _ cmdline.Call) error {
			found, err := instructions.Clean(ctx, cmp.Or(workdir, prog.Env.Dir), ownedBlocks(prog))
			if err != nil {
				return err
			}
			report := ownedOf(found)
			var text strings.Builder
			for _, o := range report {
				verb := "removed "
				if o.InUse {
					verb = "kept "
				}
				text.WriteString(verb + o.String() + "\n")
			}
			return prog.Out.Report(report, text.String())
		}),
	}
}

// ownedBlocks returns everything that runs can add to a directory.
func ownedBlocks(prog *cmdline.Program) []instructions.Owned {
	var all []instructions.Owned
	for _, rt := range prog.Stored.Registry.All() {
		if rt.Instructions != nil {
			all = append(all, rt.Instructions.Owned...)
		}
	}
	return all
}

func ownedOf(found []instructions.Found) []owned {
	out := make([]owned, len(found))
	for i, f := range found {
		out[i] = owned{f.Path, f.What, f.InUse}
	}
	return out
}

func (o owned) String() string {
	if o.InUse {
		return cmdline.Printable(o.Path) + ": " + o.What + ", in use"
	}
	return cmdline.Printable(o.Path) + ": " + o.What
}
