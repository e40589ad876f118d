package main

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/busdk/bus-agent/agent"
	"github.com/urfave/cli/v2"

	"github.com/busdk/bus-integration-task/task"
)

// maxText is the size of the largest text of a task, in bytes. Workers refuse larger ones.
const maxText = 1 << 20

// arguments returns the arguments of a command, of which there are least to most. After
// an argument "--", which is left out, they may look like options.
func arguments(c *cli.Context, least, most int) ([]string, error) {
	args := c.Args().Slice()
	for i, arg := range args {
		if arg == "--" {
			args = slices.Delete(args, i, i+1)
			break
		}
		if optionForm.MatchString(arg) {
			return nil, agent.Usagef("%.80s comes after %.80q; write options before it, and -- before a text that begins with a dash", arg, args[0])
		}
	}
	if len(args) < least || len(args) > most {
		return nil, agent.Usagef("usage: %s [options] %s", strings.TrimPrefix(c.Command.HelpName, c.App.Name+" "), c.Command.ArgsUsage)
	}
	return args, nil
}

// optionForm matches what looks like an option, not like a text or a number.
var optionForm = regexp.MustCompile(`^--?[A-Za-z][^\s]*$`)

func hasFlag(flags []cli.Flag, name string) bool {
	for _, f := range flags {
		for _, known := range f.Names() {
			if known == name {
				return true
			}
		}
	}
	return false
}

// manyWords is for a text whose words are arguments.
const manyWords = 1 << 20

// reference returns the only argument, a reference.
func reference(c *cli.Context) (string, error) {
	args, err := arguments(c, 1, 1)
	if err != nil {
		return "", err
	}
	return args[0], checkRef(args[0])
}

// referenceAndText returns the first argument, and the others as one text, which may be
// missing if it is optional.
func referenceAndText(c *cli.Context, optional bool) (ref, text string, err error) {
	least := 2
	if optional {
		least = 1
	}
	args, err := arguments(c, least, manyWords)
	if err == nil {
		err = checkRef(args[0])
	}
	if err == nil && len(args) > 1 {
		text, err = textOf(c, args[1:])
	}
	if err != nil {
		return "", "", err
	}
	return args[0], text, nil
}

// recipientAndText returns the arguments of a new task.
func recipientAndText(c *cli.Context) (recipient, text string, err error) {
	args, err := arguments(c, 2, manyWords)
	if err != nil {
		return "", "", err
	}
	if !strings.HasPrefix(args[0], "@") {
		return "", "", agent.Usagef("%q is not a recipient; write it as @RECIPIENT", args[0])
	}
	if recipient, err = task.ParseRecipient(args[0]); err != nil {
		return "", "", agent.Usagef("%v", err)
	}
	text, err = textOf(c, args[1:])
	return recipient, text, err
}

// textOf returns the text of arguments, or standard input for "-".
func textOf(c *cli.Context, words []string) (string, error) {
	text := strings.Join(words, " ")
	if text == "-" {
		var err error
		if text, err = readAll(c.Context, c.App.Reader); err != nil {
			return "", fmt.Errorf("standard input: %w", err)
		}
	}
	switch {
	case len(text) > maxText:
		return "", agent.Usagef("the text has more than %d bytes; put the rest into a file of the repository", maxText)
	case !utf8.ValidString(text):
		return "", agent.Usagef("the text is not UTF-8")
	case !strings.ContainsFunc(text, func(r rune) bool { return unicode.IsPrint(r) && !unicode.IsSpace(r) }):
		return "", agent.Usagef("the text is empty")
	}
	return strings.TrimSpace(text), nil
}

// readAll reads a text until its end, a little more than maxText, or the end of ctx, which
// a terminal does not notice.
func readAll(ctx context.Context, from io.Reader) (string, error) {
	type result struct {
		text []byte
		err  error
	}
	read := make(chan result, 1)
	go func() {
		text, err := io.ReadAll(io.LimitReader(from, maxText+1))
		read <- result{text, err}
	}()
	select {
	case r := <-read:
		return string(r.text), r.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

func checkRef(ref string) error {
	if _, err := task.ParseRef(ref); err != nil {
		return agent.Usagef("%v", err)
	}
	return nil
}
