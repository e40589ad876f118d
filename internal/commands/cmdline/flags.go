package cmdline

import (
	"strings"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/agent"
)

// The flags are those of urfave/cli, which derives the names of a flag with a regular
// expression whenever it asks for them: hundreds of times in one start of the program.
// These have them ready, and know what completes their value.
type (
	stringFlag struct {
		urfave.StringFlag
		names []string
		words func() []string
		Bare  string // the value of a flag that is given without one
	}
	listFlag struct {
		urfave.StringSliceFlag
		names []string
		words func() []string
	}
	numberFlag struct {
		urfave.IntFlag
		names []string
	}
	boolFlag struct {
		urfave.BoolFlag
		names []string
	}
)

func (f *stringFlag) Names() []string { return f.names }
func (f *listFlag) Names() []string   { return f.names }
func (f *numberFlag) Names() []string { return f.names }
func (f *boolFlag) Names() []string   { return f.names }

// String describes a flag whose value can be left out.
func (f *stringFlag) String() string {
	text := f.StringFlag.String()
	if f.Bare == "" {
		return text
	}
	names, usage, _ := strings.Cut(text, "\t")
	return strings.Replace(names, " ", "[=", 1) + "]\t" + usage
}

// String leaves out that a flag can be repeated and what a number is by default: the
// usage says it in words.
func (f *listFlag) String() string   { return describe(f.Name, f.Aliases, f.Usage) }
func (f *numberFlag) String() string { return describe(f.Name, f.Aliases, f.Usage) }

func describe(name string, aliases []string, usage string) string {
	return urfave.FlagStringer(&urfave.StringFlag{Name: name, Aliases: aliases, Usage: usage})
}

// option declares a flag with a value: "name", or "name,n" with its short form. A word in
// back quotes in the usage names the value. An empty value is a usage error.
func Option(name, usage string, to *string) *stringFlag {
	names := strings.Split(name, ",")
	return &stringFlag{names: names, StringFlag: urfave.StringFlag{
		Name: names[0], Aliases: names[1:], Usage: usage, Destination: to,
		Action: func(_ *urfave.Context, value string) error { return notEmptyValue(names[0], value) },
	}}
}

// list declares a flag with a value that can be repeated.
func List(name, usage string, to *urfave.StringSlice) *listFlag {
	return &listFlag{names: []string{name}, StringSliceFlag: urfave.StringSliceFlag{
		Name: name, Usage: usage, Destination: to, KeepSpace: true,
		Action: func(_ *urfave.Context, values []string) error {
			for _, value := range values {
				if err := notEmptyValue(name, value); err != nil {
					return err
				}
			}
			return nil
		},
	}}
}

// number declares a flag with a number from least; to holds what it is without the flag.
func Number(name, usage string, least int, to *int) *numberFlag {
	names := strings.Split(name, ",")
	return &numberFlag{names: names, IntFlag: urfave.IntFlag{
		Name: names[0], Aliases: names[1:], Usage: usage, Value: *to, Destination: to,
		Action: func(_ *urfave.Context, n int) error {
			if n < least {
				return agent.Usagef("--%s %d is not a number from %d", names[0], n, least)
			}
			return nil
		},
	}}
}

// toggle declares a flag without a value.
func Toggle(name, usage string, on *bool) *boolFlag {
	names := strings.Split(name, ",")
	return &boolFlag{names: names, BoolFlag: urfave.BoolFlag{
		Name: names[0], Aliases: names[1:], Usage: usage, Destination: on, DisableDefaultText: true,
	}}
}

func notEmptyValue(name, value string) error {
	if value == "" {
		return agent.Usagef("--%s is given an empty value; leave it out or name something", name)
	}
	return nil
}

// of has words complete the value.
func (f *stringFlag) Of(words func() []string) *stringFlag { f.words = words; return f }
func (f *listFlag) Of(words func() []string) *listFlag     { f.words = words; return f }

// words turns typed words into strings.
func Words[T ~string](list ...T) func() []string {
	return func() []string {
		out := make([]string, len(list))
		for i, w := range list {
			out[i] = string(w)
		}
		return out
	}
}

// The values that ask the shell to complete a path.
var (
	Files = Words(":file")
	Dirs  = Words(":dir")
)
