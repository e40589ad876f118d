package cmdline

import (
	"flag"
	"fmt"
	"slices"
	"strings"

	urfave "github.com/urfave/cli/v2"
)

// completeCommand is what the completion scripts call with the words of the
// line after the name of the program, the last of which is being typed. It
// prints one candidate a line, with a tab and a description where there is one,
// or ":file" or ":dir" when a path is wanted.
const completeCommand = "__complete"

// complete prints what can stand where the last of typed is. The completion of urfave/cli
// knows no values of flags, gives up at "--" and reads the arguments of the process.
func (prog *Program) complete(typed []string) error {
	current := ""
	if n := len(typed); n > 0 {
		typed, current = typed[:n-1], typed[n-1]
	}
	var all, fitting strings.Builder
	prog.candidates(&all, typed, current)
	for line := range strings.Lines(all.String()) {
		if strings.HasPrefix(line, current) || line[0] == ':' {
			fitting.WriteString(line)
		}
	}
	return prog.Out.Print(fitting.String())
}

func (prog *Program) candidates(b *strings.Builder, typed []string, current string) {
	l := prog.arrange(typed)
	c := l.command()
	name, _, hasValue := strings.Cut(current, "=")
	switch {
	case l.lost || c != prog.root && slices.Contains(typed, "--"):
	case l.pending != nil:
		writeValues(b, l.pending, "")
	case strings.HasPrefix(current, "--") && hasValue:
		if f, _ := l.find(name[2:]); f != nil {
			writeValues(b, f, name+"=")
		}
	case strings.HasPrefix(current, "-"):
		flags := prog.root.Flags
		if c != prog.root {
			flags = slices.Concat(c.Flags, flags)
		}
		for _, f := range flags {
			fmt.Fprintf(b, "--%s\t%s\n", f.Names()[0], strings.ReplaceAll(f.(urfave.DocGenerationFlag).GetUsage(), "`", ""))
		}
	case c.BashComplete != nil:
		args := flag.NewFlagSet("", flag.ContinueOnError)
		_ = args.Parse(append([]string{"--"}, l.args...)) // no flags, no errors
		c.BashComplete(urfave.NewContext(&urfave.App{Writer: b}, args, nil))
	default:
		for _, sub := range prog.below(c) {
			fmt.Fprintf(b, "%s\t%s\n", sub.Name, sub.Usage)
		}
	}
}

// completes has words complete the argument after done.
func Completes(words func(done []string) []string) urfave.BashCompleteFunc {
	return func(c *urfave.Context) {
		for _, word := range words(c.Args().Slice()) {
			fmt.Fprintln(c.App.Writer, word)
		}
	}
}

// writeValues writes the values that f can have, each after prefix.
func writeValues(b *strings.Builder, f urfave.Flag, prefix string) {
	var words func() []string
	switch f := f.(type) {
	case *stringFlag:
		words = f.words
	case *listFlag:
		words = f.words
	}
	if words == nil {
		return
	}
	for _, word := range words() {
		if word[0] != ':' {
			word = prefix + word
		}
		b.WriteString(word + "\n")
	}
}
