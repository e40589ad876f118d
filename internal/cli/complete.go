package cli

import (
	"context"
	"strings"
)

// completeCommand is what the completion scripts call with the words of the
// line after the name of the program, the last of which is being typed. It
// prints one candidate a line, with a tab and a description where there is one,
// or ":file" or ":dir" when a path is wanted.
const completeCommand = "__complete"

// Lines that ask the shell to complete a path.
const (
	completeFile = ":file"
	completeDir  = ":dir"
)

func (inv *invocation) complete(_ context.Context, typed []string) error {
	current := ""
	if n := len(typed); n > 0 {
		typed, current = typed[:n-1], typed[n-1]
	}
	var b strings.Builder
	for _, c := range inv.candidates(typed, current) {
		if strings.HasPrefix(c, current) || c == completeFile || c == completeDir {
			b.WriteString(c + "\n")
		}
	}
	return inv.out.print(b.String())
}

// candidates returns what may stand where current is typed.
func (inv *invocation) candidates(typed []string, current string) []string {
	p := parser{line: line{path: []*command{inv.root}}, root: inv.root}
	for len(typed) > 0 {
		word := typed[0]
		typed = typed[1:]
		switch {
		case word == "--" && len(p.line.path) > 1:
			return nil
		case word == "--":
		case len(word) > 1 && word[0] == '-':
			if f, _ := p.find(strings.TrimLeft(word, "-"), strings.HasPrefix(word, "--")); f != nil && f.takesValue() && f.bare == "" {
				if len(typed) == 0 {
					return flagValues(f, "")
				}
				typed = typed[1:]
			}
		default:
			p.word(word)
		}
	}
	leaf := p.line.leaf()
	switch {
	case p.lost:
		return nil
	case strings.HasPrefix(current, "--") && strings.Contains(current, "="):
		name, _, _ := strings.Cut(current, "=")
		if f, _ := p.find(name[2:], true); f != nil && f.takesValue() {
			return flagValues(f, name+"=")
		}
		return nil
	case strings.HasPrefix(current, "-"):
		return append(ownFlags(leaf, inv.root), flagsOf(inv.root.flags)...)
	case len(leaf.sub) > 0:
		var out []string
		for _, sub := range leaf.sub {
			out = append(out, sub.name+"\t"+sub.whole().purpose)
		}
		return out
	case leaf.words != nil:
		return leaf.words(p.line.args)
	}
	return nil
}

func ownFlags(leaf, root *command) []string {
	if leaf == root {
		return nil
	}
	return flagsOf(leaf.flags)
}

func flagsOf(flags []*commandFlag) []string {
	var out []string
	for _, f := range flags {
		out = append(out, "--"+f.name+"\t"+strings.ReplaceAll(f.usage, "`", ""))
	}
	return out
}

// flagValues returns the values f can have, each after prefix.
func flagValues(f *commandFlag, prefix string) []string {
	var list func() []string
	switch v := f.value.(type) {
	case *value:
		switch {
		case v.files:
			return []string{completeFile}
		case v.dirs:
			return []string{completeDir}
		}
		list = v.words
	case *values:
		if v.dirs {
			return []string{completeDir}
		}
		list = v.words
	}
	if list == nil {
		return nil
	}
	out := list()
	for i := range out {
		out[i] = prefix + out[i]
	}
	return out
}
