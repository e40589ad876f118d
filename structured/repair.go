package structured

import (
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/render"
)

// maxQuoted bounds the invalid answer in a prompt, in bytes.
const maxQuoted = 64 << 10

// again returns the prompt for the session of the first turn.
func again(invalid *InvalidError) string {
	return "Your answer does not follow the JSON Schema it has to follow:\n" + list(invalid) +
		"\nThe work itself is done: do not do it again. Give the same answer as one JSON value that follows the schema."
}

// list returns the violations, one a line.
func list(invalid *InvalidError) string {
	var b strings.Builder
	for _, line := range invalid.Violations {
		b.WriteString("\n- " + line)
	}
	return b.String() + "\n"
}

// anew returns the prompt for a new session.
func anew(first agent.Request, answer string, invalid *InvalidError) (string, error) {
	prompt := first.Prompt
	if prompt == "" {
		var err error
		if prompt, err = render.Render(first.Template, first.Vars); err != nil {
			return "", err
		}
	}
	if answer == "" {
		answer = "(nothing)"
	}
	return prompt +
		"\n\nThis was asked before, and the work was done then: do not do it again. The answer was:\n\n" +
		shorten(answer, maxQuoted) +
		"\n\nThat does not follow the JSON Schema which the answer has to follow:\n" + list(invalid) +
		"\nGive the same answer as one JSON value that follows the schema.", nil
}
