package cli

import (
	"fmt"
	"strings"

	"github.com/busdk/bus-agent/agent"
)

// line is a command line in its parts. The framework takes flags only before
// positional arguments, refuses two spellings of one flag and parses the
// standard library's way, so it is handed a line in one canonical form.
type line struct {
	path    []*command // the root first
	globals []string
	flags   []string
	args    []string
	rest    []string
	help    bool
	version bool
}

// arguments returns the canonical form for the framework.
func (l *line) arguments() []string {
	out := append([]string{program}, l.globals...)
	for _, c := range l.path[1:] {
		out = append(out, c.name)
	}
	out = append(out, l.flags...)
	if len(l.args) > 0 {
		out = append(append(out, "--"), l.args...)
	}
	return out
}

func (l *line) leaf() *command { return l.path[len(l.path)-1] }

// parse takes args apart. Global flags may stand anywhere before a lone "--",
// flags of a command anywhere after its name. The error is the first thing that
// is wrong; it does not matter when help or the version is asked for.
func parse(root *command, args []string) (line, error) {
	p := parser{line: line{path: []*command{root}}, root: root}
	for len(args) > 0 {
		word := args[0]
		args = args[1:]
		switch {
		case word == "--" && len(p.line.path) == 1:
			p.flagsEnded = true
		case word == "--":
			p.takeRest(args)
			args = nil
		case len(word) > 1 && word[0] == '-' && !p.flagsEnded:
			args = p.flag(word, args)
		default:
			p.word(word)
		}
	}
	if p.err == nil && p.line.leaf().run != nil {
		p.err = p.line.leaf().checkArguments(pathName(p.line.path), p.line.args)
	}
	return p.line, p.err
}

type parser struct {
	line       line
	root       *command
	flagsEnded bool // by a "--" before the command
	lost       bool // an unknown command was met; what follows means nothing
	err        error
}

func (p *parser) fail(err error) {
	if p.err == nil {
		p.err = err
	}
}

// takeRest takes what follows a lone "--".
func (p *parser) takeRest(args []string) {
	leaf := p.line.leaf()
	if leaf.passes {
		p.line.rest = args
		return
	}
	for _, word := range args {
		p.word(word)
	}
}

func (p *parser) word(word string) {
	leaf := p.line.leaf()
	if len(leaf.sub) == 0 {
		p.line.args = append(p.line.args, word)
		return
	}
	sub := leaf.lookup(word)
	switch {
	case p.lost:
	case sub != nil:
		p.line.path = append(p.line.path, sub)
		p.flagsEnded = false
	case leaf == p.root:
		p.lost = true
		p.fail(&misuse{agent.Usagef("unknown command %q%s", word, didYouMean(word, leaf.subnames())), leaf})
	default:
		p.lost = true
		p.fail(&misuse{agent.Usagef("unknown command %q%s", leaf.name+" "+word, didYouMean(word, leaf.subnames())), leaf})
	}
}

// flag takes the flag in word, with its value from args, and returns what is
// left of args.
func (p *parser) flag(word string, args []string) []string {
	name, text, hasText := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(word, "-"), "-"), "=")
	if !strings.HasPrefix(word, "--") && len(name) > 1 {
		return p.cluster(word, name, hasText, args)
	}
	f, global := p.find(name, strings.HasPrefix(word, "--"))
	switch {
	case f == nil:
		p.unknown(word)
	case !f.takesValue() && hasText:
		p.fail(agent.Usagef("%s takes no value", dashed(name)))
	case !f.takesValue():
		p.add(f, "", global)
	case hasText:
		p.add(f, text, global)
	case f.bare != "":
		p.add(f, f.bare, global)
	case len(args) == 0:
		p.fail(agent.Usagef("%s needs a value", dashed(name)))
	default:
		p.add(f, args[0], global)
		return args[1:]
	}
	return args
}

// cluster takes short flags without values that are written together: -vv.
func (p *parser) cluster(word, names string, hasText bool, args []string) []string {
	for _, r := range names {
		f, _ := p.find(string(r), false)
		if f == nil || f.takesValue() || hasText {
			p.unknown(word)
			return args
		}
	}
	for _, r := range names {
		f, global := p.find(string(r), false)
		p.add(f, "", global)
	}
	return args
}

// find returns the flag with the given name and whether it is a global one. A
// single dash is for names of one letter, two dashes for the others.
func (p *parser) find(name string, long bool) (f *commandFlag, global bool) {
	if long == (len(name) < 2) {
		return nil, false
	}
	if leaf := p.line.leaf(); leaf != p.root {
		if f = findFlag(leaf.flags, name); f != nil {
			return f, false
		}
	}
	return findFlag(p.root.flags, name), true
}

func (p *parser) add(f *commandFlag, text string, global bool) {
	name := f.name
	switch {
	case global && name == "help":
		p.line.help = true
		return
	case global && name == "version":
		p.line.version = true
		return
	}
	word := "--" + name
	if f.takesValue() {
		word += "=" + text
	}
	if global {
		p.line.globals = append(p.line.globals, word)
	} else {
		p.line.flags = append(p.line.flags, word)
	}
}

func (p *parser) unknown(word string) {
	if p.lost {
		return
	}
	flag, _, _ := strings.Cut(word, "=")
	leaf := p.line.leaf()
	name := strings.TrimSpace(program + " " + pathName(p.line.path))
	suggestion := didYouMean(strings.TrimLeft(flag, "-"), flagNames(append(append([]*commandFlag(nil), leaf.flags...), p.root.flags...)))
	p.fail(agent.Usagef("unknown flag %q%s; see %s --help", flag, suggestion, name))
}

func flagNames(flags []*commandFlag) []string {
	var names []string
	for _, f := range flags {
		if name := f.name; len(name) > 1 {
			names = append(names, name)
		}
	}
	return names
}

// pathName returns the words that call a command.
func pathName(path []*command) string {
	var names []string
	for _, c := range path[1:] {
		names = append(names, c.name)
	}
	return strings.Join(names, " ")
}

func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// didYouMean returns a hint at the one of names that word may be a slip of.
func didYouMean(word string, names []string) string {
	best, bestDistance := "", 3
	for _, name := range names {
		if d := distance(word, name); d < bestDistance && d < len(name) {
			best, bestDistance = name, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %q?)", best)
}

// distance is the Levenshtein distance of two words.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			next := min(row[j+1]+1, row[j]+1, diagonal+cost)
			diagonal, row[j+1] = row[j+1], next
		}
	}
	return row[len(b)]
}
