package cli

import (
	"context"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/render"
)

func (inv *invocation) renderCommand() *command {
	var template, inline value
	var vars values
	template.files = true
	return &command{
		name:    "render",
		purpose: "fill in a prompt template and print it",
		details: `Every {{NAME}} in the template is replaced by its value; a value is never
expanded itself. Any other {{...}}, and a NAME without a value, is an error. The
result is printed byte for byte, without a line break added.`,
		flags: []*commandFlag{
			option("template", "read the template from `FILE`, - for standard input", &template),
			option("text", "take `TEXT` as the template", &inline),
			option("var", "give a value as `NAME=VALUE`; can be repeated", &vars),
		},
		examples: []example{
			{"a template on the command line", `bus-agent render --text 'Explain {{WHAT}}.' --var WHAT=main.go`},
			{"one in a file, run at once", "bus-agent render --template review.md --var BRANCH=main | bus-agent run --prompt -"},
		},
		exits: exitCodes("the prompt was printed"),
		slow:  true,
		run: func(ctx context.Context, _ call) error {
			if template.set == inline.set {
				return agent.Usagef("render needs exactly one of --template and --text")
			}
			source := inline.text
			if template.set {
				var err error
				if source, err = inv.readInput(ctx, "--template", template.text); err != nil {
					return err
				}
			}
			text, err := renderTemplate(source, vars.list)
			if err != nil {
				return err
			}
			return inv.out.print(text)
		},
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
