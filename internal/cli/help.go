package cli

import (
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
{{end}}{{with .VisibleFlags}}
{{if global}}Global flags{{else}}Flags{{end}}:{{range .}}
  {{.}}{{end}}
{{end}}{{with .UsageText}}
{{.}}{{end}}
{{if global}}"{{.HelpName}} help COMMAND" shows help for a command.{{else}}Global flags:{{range globals}} --{{index .Names 0}}{{end}}; see "` + program + ` --help".{{end}}
`

// help returns the help of the last command of path.
func (inv *invocation) help(path []*urfave.Command) string {
	c := *path[len(path)-1]
	c.Description = strings.ReplaceAll(c.Description, runtimesHere, strings.Join(inv.stored.registry.Tokens(), ", "))
	if len(path) == 1 {
		c.Subcommands = inv.below(&c)
		c.UsageText = inv.usageText(exitCodes("the command did what it says"),
			example{"which agents are here? the first one is used by default", "bus-agent detect"},
			example{"ask one something about the code in this directory", `bus-agent run --access read --text "What does this project do?"`},
			example{"choose the default runtime", "bus-agent set runtime " + runtimeHere},
		)
	}
	var b strings.Builder
	urfave.HelpPrinterCustom(&b, helpTemplate, &c, map[string]any{
		"global":  func() bool { return len(path) == 1 },
		"globals": func() []urfave.Flag { return inv.root.Flags },
	})
	return b.String()
}

// runtimesHere in a description stands for the names of the registered runtimes, and
// runtimeHere in examples for the first of them.
const (
	runtimesHere = "RUNTIMES"
	runtimeHere  = "RUNTIME"
)

type example struct{ purpose, line string }

type exitCode struct {
	code int
	when string
}

// exitCodes lists the exit codes every command has.
func exitCodes(success string, failures ...string) []exitCode {
	codes := []exitCode{{exitOK, success}}
	for _, f := range failures {
		codes = append(codes, exitCode{exitFailure, f})
	}
	if len(failures) == 0 {
		codes = append(codes, exitCode{exitFailure, "it failed"})
	}
	return append(codes, exitCode{exitUsage, "the call is wrong; nothing was started or written"})
}

// usageText returns the end of the help of a command.
func (inv *invocation) usageText(exits []exitCode, examples ...example) string {
	var b strings.Builder
	for i, e := range examples {
		if i == 0 {
			b.WriteString("Examples:\n")
		}
		fmt.Fprintf(&b, "  # %s\n  %s\n", e.purpose, inv.withRuntime(e.line))
	}
	if len(examples) > 0 {
		b.WriteString("\n")
	}
	b.WriteString("Exit codes:\n")
	for _, e := range exits {
		fmt.Fprintf(&b, "  %d  %s\n", e.code, e.when)
	}
	return b.String()
}

func (inv *invocation) withRuntime(text string) string {
	if !strings.Contains(text, runtimeHere) {
		return text
	}
	if tokens := inv.stored.registry.Tokens(); len(tokens) > 0 {
		return strings.ReplaceAll(text, runtimeHere, tokens[0])
	}
	return text
}
