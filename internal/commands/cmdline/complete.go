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

// Completes has values complete the argument after those in done.
func Completes(values func(done []string) []string) urfave.BashCompleteFunc {
	return func(c *urfave.Context) {
		for _, value := range values(c.Args().Slice()) {
			fmt.Fprintln(c.App.Writer, value)
		}
	}
}

// CompletesFirst has values complete the first argument.
func CompletesFirst(values func() []string) urfave.BashCompleteFunc {
	return Completes(func(done []string) []string {
		if len(done) > 0 {
			return nil
		}
		return values()
	})
}

// writeValues writes the values that f can have, each after prefix.
func writeValues(b *strings.Builder, f urfave.Flag, prefix string) {
	v, ok := f.(*Flag)
	if !ok || v.values == nil {
		return
	}
	for _, value := range v.values() {
		if value[0] != ':' {
			value = prefix + value
		}
		b.WriteString(value + "\n")
	}
}
