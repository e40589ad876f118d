package cmdline

import (
	"context"
	"fmt"
	"strings"

	urfave "github.com/urfave/cli/v2"
)

// helpTemplate is for one command; urfave/cli aligns what tabs separate.
const helpTemplate = `{{.HelpName}} - {{.Usage}}

Usage:
  {{.HelpName}}{{if .VisibleFlags}} [FLAGS]{{end}}{{if .VisibleCommands}} COMMAND{{end}}{{with .ArgsUsage}} {{.}}{{end}}
{{with .Description}}
{{.}}
{{end}}{{with .VisibleCommands}}
Commands:{{range .}}
  {{.Name}}{{"\t"}}{{.Usage}}{{end}}
{{end}}{{with .VisibleFlagCategories}}{{range .}}
{{.Name}} flags:{{range .Flags}}
  {{.}}{{end}}
{{end}}{{else}}{{with .VisibleFlags}}
{{if global}}Global flags{{else}}Flags{{end}}:{{range .}}
  {{.}}{{end}}
{{end}}{{end}}{{with .UsageText}}
{{.}}{{end}}
{{if global}}"{{.HelpName}} help COMMAND" shows help for a command.{{else}}Global flags:{{range globals}} --{{index .Names 0}}{{end}}; see "` + Name + ` --help".{{end}}
`

// help returns the help of the last command of path. RUNTIMES in its description and
// RUNTIME in its examples stand for the registered runtimes and the first of them.
func (prog *Program) help(path []*urfave.Command) string {
	c := *path[len(path)-1]
	tokens := prog.Stored.Registry.Tokens()
	c.Description = strings.ReplaceAll(c.Description, "RUNTIMES", strings.Join(tokens, ", "))
	if len(tokens) > 0 {
		c.UsageText = strings.ReplaceAll(c.UsageText, "RUNTIME", tokens[0])
	}
	if len(path) == 1 {
		c.Subcommands = prog.below(&c)
	}
	var b strings.Builder
	urfave.HelpPrinterCustom(&b, helpTemplate, &c, map[string]any{
		"global":  func() bool { return len(path) == 1 },
		"globals": func() []urfave.Flag { return prog.root.Flags },
	})
	return wrap(b.String())
}

// maxColumns is how long a line of the help is, unless it is an example.
const maxColumns = 100

// wrap breaks long lines of the help below the column in which their description begins.
// The wrap function of urfave/cli's templates needs that column as an argument, but
// only the tabwriter that aligns the finished text determines it.
func wrap(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		margin := 0
		if strings.HasPrefix(line, "  ") {
			if gap := strings.Index(line[2:], "  "); gap > 0 {
				margin = 2 + gap + len(line[2+gap:]) - len(strings.TrimLeft(line[2+gap:], " "))
			}
		}
		for len(line) > maxColumns+1 && !strings.HasPrefix(line, "  "+Name+" ") {
			at := strings.LastIndexByte(line[:maxColumns+1], ' ')
			if at <= margin {
				break
			}
			b.WriteString(strings.TrimRight(line[:at], " ") + "\n")
			line = strings.Repeat(" ", margin) + line[at+1:]
		}
		b.WriteString(line)
	}
	return b.String()
}

// UsageText returns the end of the help of a command: examples, each a comment and a
// line, and the exit codes for success and for the failures named.
func UsageText(examples, success string, failures ...string) string {
	var b strings.Builder
	if examples != "" {
		b.WriteString("Examples:\n  " + strings.ReplaceAll(examples, "\n", "\n  ") + "\n\n")
	}
	if len(failures) == 0 {
		failures = []string{"the command failed"}
	}
	fmt.Fprintf(&b, "Exit codes:\n  %d  %s\n", exitOK, success)
	for _, f := range failures {
		fmt.Fprintf(&b, "  %d  %s\n", exitFailure, f)
	}
	fmt.Fprintf(&b, "  %d  usage error; nothing was started or written\n", exitUsage)
	return b.String()
}

// helpCommand replaces the help command of urfave/cli, which takes the name of one
// command, not the path to a subcommand, and exits for an unknown one.
func helpCommand(prog *Program) *urfave.Command {
	return &urfave.Command{
		Name:      "help",
		Usage:     "show help for a command",
		ArgsUsage: "[COMMAND...]",
		UsageText: UsageText(`# everything about run
bus-agent help run
# how to change one default
bus-agent help set model`,
			"the help was printed"),
		BashComplete: Completes(func(done []string) []string {
			l := prog.arrange(done)
			if l.lost {
				return nil
			}
			var names []string
			for _, c := range prog.below(l.command()) {
				names = append(names, c.Name)
			}
			return names
		}),
		Action: prog.Action(0, func(_ context.Context, call Call) error {
			l := prog.arrange(call.Args)
			if len(l.args) > 0 {
				var names []string
				for _, c := range prog.below(l.command()) {
					names = append(names, c.Name)
				}
				return misuse(prog.root, "unknown help topic %q%s", l.args[0], Hint(names, l.args[0]))
			}
			return prog.Out.Print(prog.help(l.path))
		}),
	}
}
