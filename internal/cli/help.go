package cli

import (
	"cmp"
	"fmt"
	"strings"
)

// help returns the help of the last command of path.
func (inv *invocation) help(path []*command) string {
	c := path[len(path)-1]
	var b strings.Builder
	if c == inv.root {
		fmt.Fprintf(&b, "%s - %s\n", program, c.purpose)
	} else {
		fmt.Fprintf(&b, "%s %s - %s\n", program, pathName(path), c.purpose)
	}
	fmt.Fprintf(&b, "\nUsage:\n  %s\n", usageLine(path))
	if c.details != "" {
		b.WriteString("\n" + strings.ReplaceAll(c.details, runtimesHere, strings.Join(inv.stored.registry.Tokens(), ", ")) + "\n")
	}
	if len(c.sub) > 0 {
		b.WriteString("\nCommands:\n")
		rows := [][2]string{}
		for _, sub := range c.sub {
			sub = sub.whole()
			rows = append(rows, [2]string{strings.TrimSpace(sub.name + " " + sub.arguments), sub.purpose})
		}
		writeRows(&b, rows)
	}
	if c != inv.root && len(c.flags) > 0 {
		b.WriteString("\nFlags:\n")
		writeRows(&b, flagRows(c.flags))
	}
	if len(c.examples) > 0 {
		b.WriteString("\nExamples:\n")
		for _, e := range c.examples {
			fmt.Fprintf(&b, "  # %s\n  %s\n", e.purpose, inv.withRuntime(e.line))
		}
	}
	if len(c.exits) > 0 {
		b.WriteString("\nExit codes:\n")
		for _, e := range c.exits {
			fmt.Fprintf(&b, "  %d  %s\n", e.code, e.when)
		}
	}
	if c == inv.root {
		b.WriteString("\nGlobal flags:\n")
		writeRows(&b, flagRows(c.flags))
		fmt.Fprintf(&b, "\n\"%s help COMMAND\" says more of a command.\n", program)
	} else {
		fmt.Fprintf(&b, "\nGlobal flags: %s; see \"%s --help\".\n", strings.Join(dashedNames(inv.root.flags), " "), program)
	}
	return b.String()
}

// runtimesHere in details stands for the names of the registered runtimes, and
// runtimeHere in examples for the first of them.
const (
	runtimesHere = "RUNTIMES"
	runtimeHere  = "RUNTIME"
)

func (inv *invocation) withRuntime(text string) string {
	if tokens := inv.stored.registry.Tokens(); len(tokens) > 0 {
		return strings.ReplaceAll(text, runtimeHere, tokens[0])
	}
	return text
}

func usageLine(path []*command) string {
	c := path[len(path)-1]
	words := []string{program}
	if len(path) > 1 {
		words = append(words, pathName(path))
	} else {
		words = append(words, "[GLOBAL FLAGS]")
	}
	if len(path) > 1 && len(c.flags) > 0 {
		words = append(words, "[FLAGS]")
	}
	if len(c.sub) > 0 {
		words = append(words, "COMMAND")
	}
	if c.arguments != "" {
		words = append(words, c.arguments)
	}
	if c.passes {
		words = append(words, "[-- ARGS]")
	}
	return strings.Join(words, " ")
}

func flagRows(flags []*commandFlag) [][2]string {
	rows := make([][2]string, 0, len(flags))
	for _, f := range flags {
		usage := f.usage
		left := "    "
		if f.short != "" {
			left = "-" + f.short + ", "
		}
		left += "--" + f.name
		switch {
		case f.bare != "":
			left += "[=" + placeholder(usage) + "]"
		case f.takesValue():
			left += " " + placeholder(usage)
		}
		rows = append(rows, [2]string{left, strings.ReplaceAll(usage, "`", "")})
	}
	return rows
}

// placeholder returns the word in back quotes.
func placeholder(usage string) string {
	_, after, _ := strings.Cut(usage, "`")
	word, _, ok := strings.Cut(after, "`")
	if !ok {
		return "VALUE"
	}
	return word
}

func dashedNames(flags []*commandFlag) []string {
	var names []string
	for _, f := range flags {
		names = append(names, dashed(cmp.Or(f.short, f.name)))
	}
	return names
}

// writeRows writes two columns. What does not fit the first stands on a line of
// its own.
func writeRows(b *strings.Builder, rows [][2]string) {
	width := 0
	for _, r := range rows {
		if len(r[0]) <= 34 {
			width = max(width, len(r[0]))
		}
	}
	for _, r := range rows {
		if len(r[0]) > width {
			fmt.Fprintf(b, "  %s\n  %*s  %s\n", r[0], width, "", r[1])
			continue
		}
		fmt.Fprintf(b, "  %-*s  %s\n", width, r[0], r[1])
	}
}

// pathTo returns the path of commands to c.
func (inv *invocation) pathTo(c *command) []*command {
	var find func(path []*command) []*command
	find = func(path []*command) []*command {
		last := path[len(path)-1]
		if last == c {
			return path
		}
		for _, sub := range last.whole().sub {
			if found := find(append(path[:len(path):len(path)], sub)); found != nil {
				return found
			}
		}
		return nil
	}
	return find([]*command{inv.root})
}
