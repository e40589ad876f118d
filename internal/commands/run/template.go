package run

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/internal/commands/cmdline"
	"github.com/busdk/bus-agent/render"
)

// RenderCommand is "render".
func RenderCommand(prog *cmdline.Program) *urfave.Command {
	var file, text string
	vars := map[string]string{}
	return &urfave.Command{
		Name:  "render",
		Usage: "fill in a prompt template and print it",
		Description: `Replaces every {{NAME}} in the template with its value. A {{NAME}} inside a value is not
replaced. Any other {{...}}, and a NAME without a value, is an error. Render adds no line
break to the result.`,
		Flags: []urfave.Flag{
			cmdline.File("template", "read the template from `FILE`, - for standard input", &file),
			cmdline.Text("text", "use `TEXT` as the template", &text).Opaque(),
			varFlag(vars),
		},
		UsageText: cmdline.UsageText(`# a template on the command line
bus-agent render --text 'Explain {{WHAT}}.' --var WHAT=main.go
# a template in a file, run at once
bus-agent render --template review.md --var BRANCH=main | bus-agent run --prompt -`,
			"the prompt was printed"),
		Action: prog.Action(cmdline.Slow, func(ctx context.Context, call cmdline.Call) (err error) {
			if call.IsSet("template") == call.IsSet("text") {
				return cmdline.Misusef("render needs exactly one of --template and --text")
			}
			if file != "" {
				if text, err = prog.ReadInput(ctx, "--template", file); err != nil {
					return err
				}
			}
			if text, err = render.Render(text, vars); err != nil {
				return err
			}
			return prog.Out.Print(text)
		}),
	}
}

// varFlag declares --var. A name given twice is an error, because a value would be lost.
func varFlag(vars map[string]string) urfave.Flag {
	return cmdline.Func("var", "set a variable of the template as `NAME=VALUE`", func(v string) error {
		name, value, ok := strings.Cut(v, "=")
		_, twice := vars[name]
		switch {
		case !ok:
			return fmt.Errorf("%q is not NAME=VALUE", v)
		case !regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`).MatchString(name):
			return fmt.Errorf("name %q is not a letter or _ followed by letters, digits and _", name)
		case twice:
			return fmt.Errorf("%s is given twice", name)
		}
		vars[name] = value
		return nil
	}).Repeatable()
}
