// Package testpages reads the commands that the pages of the project show, for tests that
// run them.
package testpages

import (
	"os"
	"strings"
)

// Commands returns the commands of a page: the lines of a block that begin with bus-agent,
// and those that follow a comment in the examples of a help.
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
		case strings.HasPrefix(line, "    bus-agent "):
			commands = append(commands, trimmed)
		}
		comment = ""
	}
	return commands, nil
}

// NeedsTerminal reports whether a command waits for keys in a terminal.
func NeedsTerminal(command string) bool {
	return strings.HasPrefix(command, "bus-agent chat") || strings.HasPrefix(command, "bus-agent session attach")
}
