package settings

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/busdk/bus-agent/agent"

	"github.com/busdk/bus-integration-task/worker/backend"
)

// Placeholders of commands; commit messages have {summary} too.
var (
	commandPlaceholders = strings.Fields(`prompt text body work_ref recipient module main_repo_path repo_path
		worktree_path branch worktree_branch base_branch create_branch`)
	messagePlaceholders = append([]string{"summary"}, commandPlaceholders...)
)

var placeholder = regexp.MustCompile(`\{[a-z_]+\}`)

// checkPlaceholders returns an error that names the first unknown placeholder of text.
func checkPlaceholders(text string, known []string) error {
	for _, found := range placeholder.FindAllString(text, -1) {
		if !slices.Contains(known, strings.Trim(found, "{}")) {
			return fmt.Errorf("the placeholder %s is unknown; use {%s}", found, strings.Join(known, "}, {"))
		}
	}
	return nil
}

// Values are the values of placeholders by name, without braces. A missing one is empty.
type Values map[string]string

// ExpandCommand replaces the placeholders in each element of a command. Values are opaque:
// they are not expanded again, and an element stays one argument. An unknown placeholder
// and a value with a NUL are agent.ErrUsage errors.
func ExpandCommand(command []string, values Values) ([]string, error) {
	var expanded []string
	for _, word := range command {
		text, err := expand(word, values, commandPlaceholders)
		if err != nil {
			return nil, err
		}
		if strings.Contains(text, "\x00") {
			return nil, agent.Usagef("the command argument %s has a NUL after expansion; remove it from the task", quote(word))
		}
		expanded = append(expanded, text)
	}
	return expanded, nil
}

// Commands returns the commands of the container backend with the values of a task. Errors
// are those of [ExpandCommand].
func (s *Settings) Commands(values Values) (c backend.Commands, err error) {
	for _, command := range []struct {
		from []string
		to   *[]string
	}{{s.PreCommand, &c.Before}, {s.Command, &c.Main}, {s.PostCommand, &c.After}} {
		if *command.to, err = ExpandCommand(command.from, values); err != nil {
			return backend.Commands{}, err
		}
	}
	return c, nil
}

// MaxMessage is the size of the longest commit message, in bytes.
const MaxMessage = 64 << 10

// ExpandMessage replaces the placeholders in a commit message, including {summary}, as
// ExpandCommand does. NULs are left out, and the message ends after MaxMessage bytes.
func ExpandMessage(message string, values Values) (string, error) {
	text, err := expand(message, values, messagePlaceholders)
	text = strings.ReplaceAll(text, "\x00", "")
	return strings.ToValidUTF8(text[:min(len(text), MaxMessage)], ""), err
}

func expand(text string, values Values, known []string) (string, error) {
	if err := checkPlaceholders(text, known); err != nil {
		return "", agent.Usagef("%v", err)
	}
	return placeholder.ReplaceAllStringFunc(text, func(found string) string { return values[strings.Trim(found, "{}")] }), nil
}
