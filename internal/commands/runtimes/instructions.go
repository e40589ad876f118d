package runtimes

import (
	"context"
	"fmt"
	"strings"

	"github.com/busdk/bus-agent/internal/commands/cmdline"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/instructions"
)

func InstructionsCommand(prog *cmdline.Program) *urfave.Command {
	return &urfave.Command{
		Name:  "instructions",
		Usage: "look after the project instructions agents are given",
		Description: `Agents are given every AGENTS.md from the repository root down to the directory
they work in, the closest last.`,
		Subcommands: []*urfave.Command{
			instructionsShow(prog),
			instructionsClean(prog),
		},
		UsageText: cmdline.UsageText("",
			"the command succeeded"),
		Action: prog.Group,
	}
}

// instructionsReport is what show and clean print, in JSON.
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

type owned struct {
	Path  string `json:"path"`
	What  string `json:"what"`
	InUse bool   `json:"in_use"`
}

func instructionsShow(prog *cmdline.Program) *urfave.Command {
	var workdir string
	return &urfave.Command{
		Name:  "show",
		Usage: "list the AGENTS.md files that apply, and what bus-agent has left in the directory",
		Flags: []urfave.Flag{cmdline.Option("workdir", "look at `DIR` (default: the current directory)", &workdir).Of(cmdline.Dirs)},
		UsageText: cmdline.UsageText(`# what would an agent be told here?
bus-agent instructions show`,
			"the list was printed"),
		Action: prog.Action(cmdline.JSON, func(ctx context.Context, _ cmdline.Call) error {
			dir, err := prog.Workdir(workdir)
			if err != nil {
				return err
			}
			return showInstructions(prog, ctx, dir)
		}),
	}
}

func instructionsClean(prog *cmdline.Program) *urfave.Command {
	var workdir string
	return &urfave.Command{
		Name:  "clean",
		Usage: "remove what bus-agent has added to the directory, and nothing else",
		Description: `Removes the marked blocks, list entries and private homes that runs have left.
What a running agent uses is kept. AGENTS.md itself is never touched.`,
		Flags: []urfave.Flag{cmdline.Option("workdir", "clean `DIR` (default: the current directory)", &workdir).Of(cmdline.Dirs)},
		UsageText: cmdline.UsageText(`# leave no trace
bus-agent instructions clean`,
			"nothing of ours is left, but for what is in use", "something could not be removed"),
		Action: prog.Action(cmdline.JSON|cmdline.Slow, func(ctx context.Context, _ cmdline.Call) error {
			dir, err := prog.Workdir(workdir)
			if err != nil {
				return err
			}
			return cleanInstructions(prog, ctx, dir)
		}),
	}
}

// owned returns every place where a runtime may leave something.
func ownedPlaces(prog *cmdline.Program) []instructions.Owned {
	var all []instructions.Owned
	for _, rt := range prog.Stored.Registry.All() {
		if rt.Instructions != nil {
			all = append(all, rt.Instructions.Owned...)
		}
	}
	return all
}

func showInstructions(prog *cmdline.Program, ctx context.Context, dir string) error {
	chain, err := instructions.Discover(dir)
	if err != nil {
		return err
	}
	found, err := instructions.Show(ctx, dir, ownedPlaces(prog))
	if err != nil {
		return err
	}
	report := instructionsReport{Workdir: chain.Workdir, Root: chain.Root, Files: []instruction{}, Owned: ownedOf(found), Warnings: append([]string{}, chain.Warnings...)}
	for _, f := range chain.Files {
		report.Files = append(report.Files, instruction{f.Path, f.Size})
	}
	if prog.Global.JSON() {
		return prog.Out.PrintJSON(report)
	}
	for _, line := range report.Warnings {
		prog.Screen.Warn(line)
	}
	var b strings.Builder
	for _, f := range report.Files {
		fmt.Fprintf(&b, "%s (%d bytes)\n", cmdline.Printable(f.Path), f.Size)
	}
	for _, o := range report.Owned {
		b.WriteString(o.String() + "\n")
	}
	if len(report.Files) == 0 {
		prog.Screen.Info("no " + instructions.FileName + " applies to " + cmdline.Printable(dir))
	}
	return prog.Out.Print(b.String())
}

func cleanInstructions(prog *cmdline.Program, ctx context.Context, dir string) error {
	found, err := instructions.Clean(ctx, dir, ownedPlaces(prog))
	if err != nil {
		return err
	}
	report := ownedOf(found)
	if prog.Global.JSON() {
		return prog.Out.PrintJSON(report)
	}
	var b strings.Builder
	for _, o := range report {
		verb := "removed "
		if o.InUse {
			verb = "kept "
		}
		b.WriteString(verb + o.String() + "\n")
	}
	return prog.Out.Print(b.String())
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
