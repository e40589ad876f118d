// Package testpages reads the commands that the pages of the project show, for tests that
// run them.
package testpages

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Pages returns the pages whose commands the tests run, as paths in the project. Another
// page with commands is docs/runtimes/rest.md, which needs programs that are not built
// here and a model server on a fixed port.
func Pages() []string {
	return []string{
		"README.md", "docs/cli.md", "docs/runs.md", "docs/selection.md", "docs/sessions.md",
		"docs/structured-output.md", "docs/adding-a-runtime.md", "docs/attachments.md",
		"docs/recipes.md",
	}
}

// command matches a line of a block that is a command, also after variables or a pipe.
var command = regexp.MustCompile(`^    (?:(?:[A-Z_]+=\S* )+|[^|]*\| )?bus-agent `)

// Commands returns the commands of a page: the lines of a block that call bus-agent, and
// those that follow a comment in the examples of a help.
func Commands(page string) (commands []string, err error) {
	text, err := os.ReadFile(page)
	if err != nil {
		return nil, err
	}
	comment := ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\n")
		trimmed := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "  # "):
			comment = trimmed
			continue
		case comment != "" && strings.HasPrefix(line, "  "):
			if strings.HasPrefix(comment, "# zsh:") { // bash cannot source it
				trimmed = strings.TrimSuffix(strings.TrimPrefix(trimmed, "source <("), ")")
			}
			commands = append(commands, trimmed)
		case command.MatchString(line):
			commands = append(commands, trimmed)
		}
		comment = ""
	}
	return commands, nil
}

// Files returns the contents of files that the commands of the pages name. docs is the
// folder of the pages. The names are below work, where the commands are run, and home.
func Files(docs string) (map[string]string, error) {
	var drawn bytes.Buffer
	if err := png.Encode(&drawn, image.NewGray(image.Rect(0, 0, 1, 1))); err != nil {
		return nil, err
	}
	files := map[string]string{
		"work/AGENTS.md": "Be brief.\n",
		"work/task.md":   "do it\n",
		"work/review.md": "review {{BRANCH}}\n",
		"work/notes.txt": "one\n",
		"work/chart.png": drawn.String(),
		"work/next.png":  drawn.String(),
	}
	for name, page := range map[string]string{"home/policies/build.json": "sessions.md", "work/defects.json": "recipes.md"} {
		text, err := os.ReadFile(filepath.Join(docs, page))
		if err != nil {
			return nil, err
		}
		_, object, _ := strings.Cut(string(text), "```json\n")
		object, _, ok := strings.Cut(object, "```")
		if !ok {
			return nil, fmt.Errorf("%s shows no JSON", page)
		}
		files[name] = object
	}
	return files, nil
}

// NeedsTerminal reports whether a command waits for keys in a terminal.
func NeedsTerminal(command string) bool {
	return strings.HasPrefix(command, "bus-agent chat") || strings.HasPrefix(command, "bus-agent session attach")
}

// Before returns the commands that make the agent wait for what a command of a page
// answers: agents of tests ask a question with two options if a message says so.
func Before(command string) []string {
	if !strings.HasPrefix(command, "bus-agent session answer") {
		return nil
	}
	return []string{
		"bus-agent session watch review --last 0 --until ready",
		"bus-agent session send review --no-wait '" + AskOne + "'",
		"bus-agent session watch review --last 0 --until waiting",
	}
}

// AskOne is the message of [Before].
const AskOne = "ask one question"
