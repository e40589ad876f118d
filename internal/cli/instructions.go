package cli

import (
	"context"
	"fmt"
	"strings"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/instructions"
)

func (inv *invocation) instructionsCommand() *urfave.Command {
	return &urfave.Command{
		Name:  "instructions",
		Usage: "look after the project instructions agents are given",
		Description: `Agents are given every AGENTS.md from the repository root down to the directory
they work in, the closest last.`,
		Subcommands: []*urfave.Command{
			inv.instructionsShow(),
			inv.instructionsClean(),
		},
		UsageText: inv.usageText(exitCodes("the command did what it says")),
		Action:    inv.group,
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

func (inv *invocation) instructionsShow() *urfave.Command {
	var workdir string
	return &urfave.Command{
		Name:      "show",
		Usage:     "list the AGENTS.md files that apply, and what bus-agent has left in the directory",
		Flags:     []urfave.Flag{option("workdir", "look at `DIR` (default: the current directory)", &workdir).of(dirs)},
		UsageText: inv.usageText(exitCodes("the list was printed"), example{"what would an agent be told here?", "bus-agent instructions show"}),
		Action: inv.action(hasJSON, func(ctx context.Context, _ call) error {
			dir, err := inv.workdir(workdir)
			if err != nil {
				return err
			}
			return inv.showInstructions(ctx, dir)
		}),
	}
}

func (inv *invocation) instructionsClean() *urfave.Command {
	var workdir string
	return &urfave.Command{
		Name:  "clean",
		Usage: "remove what bus-agent has added to the directory, and nothing else",
		Description: `Removes the marked blocks, list entries and private homes that runs have left.
What a running agent uses is kept. AGENTS.md itself is never touched.`,
		Flags:     []urfave.Flag{option("workdir", "clean `DIR` (default: the current directory)", &workdir).of(dirs)},
		UsageText: inv.usageText(exitCodes("nothing of ours is left, but for what is in use", "something could not be removed"), example{"leave no trace", "bus-agent instructions clean"}),
		Action: inv.action(hasJSON|slow, func(ctx context.Context, _ call) error {
			dir, err := inv.workdir(workdir)
			if err != nil {
				return err
			}
			return inv.cleanInstructions(ctx, dir)
		}),
	}
}

// workdir returns the directory that --workdir names, the current one by
// default.
func (inv *invocation) workdir(v string) (string, error) {
	if v == "" {
		return inv.env.Dir, nil
	}
	if v == "" {
		return "", agent.Usagef("--workdir needs the name of a directory")
	}
	dir := inv.env.abs(v)
	if err := isDirectory(dir); err != nil {
		return "", agent.Usagef("--workdir %q: %w", v, err)
	}
	return dir, nil
}

// owned returns every place where a runtime may leave something.
func (inv *invocation) owned() []instructions.Owned {
	var all []instructions.Owned
	for _, rt := range inv.stored.registry.All() {
		if rt.Instructions != nil {
			all = append(all, rt.Instructions.Owned...)
		}
	}
	return all
}

func (inv *invocation) showInstructions(ctx context.Context, dir string) error {
	chain, err := instructions.Discover(dir)
	if err != nil {
		return err
	}
	found, err := instructions.Show(ctx, dir, inv.owned())
	if err != nil {
		return err
	}
	report := instructionsReport{Workdir: chain.Workdir, Root: chain.Root, Files: []instruction{}, Owned: ownedOf(found), Warnings: append([]string{}, chain.Warnings...)}
	for _, f := range chain.Files {
		report.Files = append(report.Files, instruction{f.Path, f.Size})
	}
	if inv.global.json() {
		return inv.out.printJSON(report)
	}
	for _, line := range report.Warnings {
		inv.screen.warn(line)
	}
	var b strings.Builder
	for _, f := range report.Files {
		fmt.Fprintf(&b, "%s (%d bytes)\n", printable(f.Path), f.Size)
	}
	for _, o := range report.Owned {
		b.WriteString(o.String() + "\n")
	}
	if len(report.Files) == 0 {
		inv.screen.info("no " + instructions.FileName + " applies to " + printable(dir))
	}
	return inv.out.print(b.String())
}

func (inv *invocation) cleanInstructions(ctx context.Context, dir string) error {
	found, err := instructions.Clean(ctx, dir, inv.owned())
	if err != nil {
		return err
	}
	report := ownedOf(found)
	if inv.global.json() {
		return inv.out.printJSON(report)
	}
	var b strings.Builder
	for _, o := range report {
		verb := "removed "
		if o.InUse {
			verb = "kept "
		}
		b.WriteString(verb + o.String() + "\n")
	}
	return inv.out.print(b.String())
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
		return printable(o.Path) + ": " + o.What + ", in use"
	}
	return printable(o.Path) + ": " + o.What
}
