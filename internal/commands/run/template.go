package run

import (
	"context"
	"strings"

	"github.com/busdk/bus-agent/internal/commands/cmdline"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/render"
)

func RenderCommand(prog *cmdline.Program) *urfave.Command {
	var template, inline string
	var vars urfave.StringSlice
	text := cmdline.Option("text", "take `TEXT` as the template", &inline)
	text.Action = nil // a template can be empty
	return &urfave.Command{
		Name:  "render",
		Usage: "fill in a prompt template and print it",
		Description: `Every {{NAME}} in the template is replaced by its value; a value is never
expanded itself. Any other {{...}}, and a NAME without a value, is an error. The
result is printed byte for byte, without a line break added.`,
		Flags: []urfave.Flag{
			cmdline.Option("template", "read the template from `FILE`, - for standard input", &template).Of(cmdline.Files),
			text,
			cmdline.List("var", "give a value as `NAME=VALUE`; can be repeated", &vars),
		},
		UsageText: cmdline.UsageText(`# a template on the command line
bus-agent render --text 'Explain {{WHAT}}.' --var WHAT=main.go
# one in a file, run at once
bus-agent render --template review.md --var BRANCH=main | bus-agent run --prompt -`,
			"the prompt was printed"),
		Action: prog.Action(cmdline.Slow, func(ctx context.Context, call cmdline.Call) error {
			if call.IsSet("template") == call.IsSet("text") {
				return agent.Usagef("render needs exactly one of --template and --text")
			}
			source := inline
			if template != "" {
				var err error
				if source, err = prog.ReadInput(ctx, "--template", template); err != nil {
					return err
				}
			}
			text, err := renderTemplate(source, vars.Value())
			if err != nil {
				return err
			}
			return prog.Out.Print(text)
		}),
	}
}

func renderTemplate(template string, assignments []string) (string, error) {
	vars, err := parseVars(assignments)
	if err != nil {
		return "", err
	}
	return render.Render(template, vars)
}

// parseVars takes NAME=VALUE apart. A name given twice would silently lose a
// value, so it is an error.
func parseVars(assignments []string) (map[string]string, error) {
	vars := make(map[string]string, len(assignments))
	for _, a := range assignments {
		name, text, ok := strings.Cut(a, "=")
		switch {
		case !ok:
			return nil, agent.Usagef("--var %q is not NAME=VALUE", a)
		case !isVarName(name):
			return nil, agent.Usagef("--var name %q is not a letter or _ followed by letters, digits and _", name)
		}
		if _, twice := vars[name]; twice {
			return nil, agent.Usagef("--var %s is given twice", name)
		}
		vars[name] = text
	}
	return vars, nil
}

func isVarName(s string) bool {
	for i, r := range s {
		letter := r == '_' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return s != ""
}
