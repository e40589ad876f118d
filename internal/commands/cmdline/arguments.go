package cmdline

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/agent"
)

// A line is a command line in the order that urfave/cli v2 can read. It cannot do this by
// itself, because it parses with the standard library's package flag:
//
//   - flags after arguments, and global flags after the command: parsing ends at the first
//     word that is not a flag, and a command knows nothing of the flags above it;
//   - short flags in one word, of which the last may have a value: "detect -1v", "-vf json"
//     and "runs list -n1";
//   - a flag whose value was forgotten, or that was given twice, where only one counts;
//   - two spellings of one flag in one line, such as "-v --verbose", which it refuses;
//   - arguments that are handed on to a runtime: "--" is dropped, and what follows it is
//     mixed with the arguments before it;
//   - a flag whose value can be left out, such as --record[=WORD];
//   - --help and --version on a line that is wrong otherwise;
//   - the number of arguments of a command.
//
// What is wrong with a line is for urfave/cli to find.
type line struct {
	path    []*urfave.Command // the root first
	globals []string
	flags   []string
	args    []string
	rest    []string // after "--", where the command hands it on
	help    bool
	version bool

	lost    bool        // an unknown command was met: what follows means nothing
	pending urfave.Flag // the last word is a flag that needs a value
	wrong   string      // the first mistake that urfave/cli does not find
}

func (l *line) command() *urfave.Command { return l.path[len(l.path)-1] }

// words returns the line for urfave/cli.
func (l *line) words() []string {
	out := append([]string{Name}, l.globals...)
	for _, c := range l.path[1:] {
		out = append(out, c.Name)
	}
	out = append(out, l.flags...)
	if len(l.args) > 0 {
		out = append(append(out, "--"), l.args...)
	}
	return out
}

// arrange puts args in order.
func (prog *Program) arrange(args []string) *line {
	l := &line{path: []*urfave.Command{prog.root}}
	for len(args) > 0 {
		word := args[0]
		args = args[1:]
		switch {
		case word == "--" && handsOn(l.command()):
			l.rest = args
			return l
		case word == "--" && l.command() != prog.root:
			for _, word := range args {
				prog.word(l, word)
			}
			return l
		case word == "--":
		case len(word) > 1 && word[0] == '-':
			args = l.flag(word, args)
		default:
			prog.word(l, word)
		}
	}
	return l
}

// word takes a word that is not a flag.
func (prog *Program) word(l *line, word string) {
	c := l.command()
	if l.lost || c != prog.root && len(c.Subcommands) == 0 {
		l.args = append(l.args, word)
		return
	}
	sub := prog.lookup(c, word)
	if sub == nil {
		l.lost = true
		l.args = append(l.args, word)
		return
	}
	sub.HelpName = c.HelpName + " " + sub.Name
	sub.HideHelp = true
	sub.OnUsageError = prog.usageError
	l.path = append(l.path, sub)
}

// flag takes the flag in word, with its value from args, and returns what is left of args.
func (l *line) flag(word string, args []string) []string {
	name, value, hasValue := strings.Cut(strings.TrimPrefix(word[1:], "-"), "=")
	f, to := l.find(name)
	switch {
	case f == nil && word[1] != '-' && l.isCluster(word[1:]):
		return l.cluster(word[1:], args)
	case f == nil && l.lost:
	case f == nil:
		*to = append(*to, word)
	case hasValue:
		l.set(f, to, value)
	case !needsValue(f):
		l.add(f, to)
	case len(args) == 0:
		*to = append(*to, "--"+f.Names()[0])
		l.pending = f
	case !f.(*Flag).opaque && (args[0] == "--" || l.isFlag(args[0])):
		l.mistake(dashed(f.Names()[0]) + " needs a value; write one that is a flag as " + dashed(f.Names()[0]) + "=VALUE")
	default:
		l.set(f, to, args[0])
		return args[1:]
	}
	return args
}

// isFlag reports whether word is a long flag. A value may look like a short one: "-5".
func (l *line) isFlag(word string) bool {
	name, _, _ := strings.Cut(word, "=")
	if !strings.HasPrefix(name, "--") {
		return false
	}
	f, _ := l.find(name[2:])
	return f != nil
}

// isCluster reports whether word is short flags that are written together: -vv, -vf json
// or -n1.
func (l *line) isCluster(word string) bool {
	for _, r := range word {
		f, _ := l.find(string(r))
		if f == nil || needsValue(f) {
			return f != nil
		}
	}
	return true
}

// cluster takes short flags that are written together. The first that needs a value gets
// the rest of the word, or else the next one. It returns what is left of args.
func (l *line) cluster(word string, args []string) []string {
	for i, r := range word {
		f, to := l.find(string(r))
		rest := word[i+len(string(r)):]
		switch {
		case !needsValue(f):
			l.add(f, to)
		case rest == "":
			return l.flag("-"+string(r), args)
		default:
			l.set(f, to, strings.TrimPrefix(rest, "="))
			return args
		}
	}
	return args
}

// set adds a flag with its value. All but one value of a flag that cannot be repeated
// would be lost.
func (l *line) set(f urfave.Flag, to *[]string, value string) {
	word := "--" + f.Names()[0] + "="
	given := func(other string) bool { return strings.HasPrefix(other, word) }
	if v, ok := f.(*Flag); ok && !v.repeatable && slices.ContainsFunc(*to, given) {
		l.mistake(dashed(f.Names()[0]) + " is given twice")
	}
	*to = append(*to, word+value)
}

func (l *line) mistake(text string) {
	if l.wrong == "" {
		l.wrong = text
	}
}

// add adds a flag without a value to those of the command or the global ones.
func (l *line) add(f urfave.Flag, to *[]string) {
	word := "--" + f.Names()[0]
	if v, ok := f.(*Flag); ok {
		l.set(f, to, v.unadorned)
		return
	}
	switch {
	case to == &l.globals && word == "--help":
		l.help = true
	case to == &l.globals && word == "--version":
		l.version = true
	default:
		*to = append(*to, word)
	}
}

// find returns the flag of the command, or else the global one, that has the given name,
// and where it goes. An unknown flag goes to the command.
func (l *line) find(name string) (urfave.Flag, *[]string) {
	c, root := l.command(), l.path[0]
	if f := findFlag(c.Flags, name); f != nil && c != root {
		return f, &l.flags
	}
	if f := findFlag(root.Flags, name); f != nil || c == root {
		return f, &l.globals
	}
	return nil, &l.flags
}

func findFlag(flags []urfave.Flag, name string) urfave.Flag {
	for _, f := range flags {
		if slices.Contains(f.Names(), name) {
			return f
		}
	}
	return nil
}

func needsValue(f urfave.Flag) bool {
	v, ok := f.(*Flag)
	return ok && v.unadorned == ""
}

// handsOn reports whether c hands on what follows "--".
func handsOn(c *urfave.Command) bool { return strings.HasSuffix(c.ArgsUsage, "[-- ARGS]") }

// checkArguments compares the number of arguments with the usage of the command, in which
// brackets stand for what can be left out and "..." for any number.
func (prog *Program) checkArguments(c *urfave.Context) error {
	usage, handsOn := strings.CutSuffix(c.Command.ArgsUsage, "[-- ARGS]")
	least, most := 0, 0
	for _, word := range strings.Fields(usage) {
		if most++; word[0] != '[' {
			least++
		}
		if strings.Contains(word, "...") {
			most = math.MaxInt
		}
	}
	switch {
	case c.NArg() < least:
		return misuse(c.Command, "%s needs %s", called(c.Command), c.Command.ArgsUsage)
	case c.NArg() > most && handsOn:
		return misuse(c.Command, "unexpected argument %q; arguments for the runtime go after --", c.Args().Get(most))
	case c.NArg() > most && most == 0 && len(prog.below(c.Command)) > 0:
		return prog.Group(c)
	case c.NArg() > most:
		return misuse(c.Command, "unexpected argument %q", c.Args().Get(most))
	}
	return nil
}

// usageError makes the error of a flag one line. urfave/cli would also print the help, to
// standard output.
func (prog *Program) usageError(c *urfave.Context, err error, _ bool) error {
	text := err.Error()
	if name, ok := strings.CutPrefix(text, "flag provided but not defined: -"); ok {
		text = fmt.Sprintf("unknown flag %q", dashed(name))
		var names []string
		for _, f := range slices.Concat(c.Command.Flags, prog.root.Flags) {
			names = append(names, f.Names()[0])
		}
		if similar := closest(name, names); similar != "" {
			text += "; did you mean " + dashed(similar) + "?"
		}
	} else if name, ok := strings.CutPrefix(text, "flag needs an argument: -"); ok {
		text = dashed(name) + " needs a value"
	} else if invalid, ok := strings.CutPrefix(text, "invalid boolean value "); ok {
		value, _ := strconv.QuotedPrefix(invalid)
		name, _, _ := strings.Cut(strings.TrimPrefix(invalid[len(value):], " for -"), ": ")
		text = dashed(name) + " takes no value"
	} else if invalid, ok := strings.CutPrefix(text, "invalid value "); ok {
		// The value is quoted by the flag, unless it may be a secret.
		value, _ := strconv.QuotedPrefix(invalid)
		name, reason, _ := strings.Cut(strings.TrimPrefix(invalid[len(value):], " for flag -"), ": ")
		text = dashed(name) + ": " + reason
		if strings.HasPrefix(reason, `"`) {
			text = dashed(name) + " " + reason
		}
	}
	return misuse(c.Command, "%s", text)
}

func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// Group is the action of a command that has others below it: none of them was named.
func (prog *Program) Group(c *urfave.Context) error {
	var names []string
	for _, sub := range prog.below(c.Command) {
		names = append(names, sub.Name)
	}
	word := c.Args().First()
	switch {
	case word != "":
		name := strings.TrimSpace(called(c.Command) + " " + word)
		return misuse(c.Command, "unknown command %q%s", name, Hint(names, word))
	case c.Command.HelpName == Name:
		return misuse(c.Command, "no command given")
	}
	return misuse(c.Command, "%s needs one of: %s", called(c.Command), strings.Join(names, ", "))
}

// misuse returns a usage error that refers to the help of c.
func misuse(c *urfave.Command, format string, args ...any) error {
	return agent.Usagef("%s; see '%s --help'", fmt.Sprintf(format, args...), c.HelpName)
}

// Misusef returns a usage error that refers to the help of the called command.
func Misusef(format string, args ...any) error { return &misused{fmt.Sprintf(format, args...)} }

// misused is what Program.Action makes a misuse of the command.
type misused struct{ text string }

func (m *misused) Error() string        { return m.text }
func (m *misused) Is(target error) bool { return target == agent.ErrUsage }

// called returns the words that call c, without the name of the program.
func called(c *urfave.Command) string {
	return strings.TrimSpace(strings.TrimPrefix(c.HelpName, Name))
}
