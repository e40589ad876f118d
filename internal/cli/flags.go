package cli

import (
	"strings"

	urfave "github.com/urfave/cli/v2"
)

// value is the value of a flag that takes one. It keeps exactly what was given
// and knows an empty value from none.
type value struct {
	text string
	set  bool
	// words completes the value; files and dirs say that it is a path.
	words       func() []string
	files, dirs bool
}

func (v *value) Set(text string) error { v.text, v.set = text, true; return nil }
func (v *value) String() string        { return v.text }

// values collects a flag that can be repeated. It splits nothing: a comma is
// part of the value.
type values struct {
	list  []string
	words func() []string
	dirs  bool
}

func (v *values) Set(text string) error { v.list = append(v.list, text); return nil }
func (v *values) String() string        { return strings.Join(v.list, " ") }

// option declares a flag with a value. A word in back quotes in usage names
// the value.
func option(name, usage string, v urfave.Generic) urfave.Flag {
	long, short, _ := strings.Cut(name, ",")
	f := &urfave.GenericFlag{Name: long, Usage: usage, Value: v}
	if short != "" {
		f.Aliases = []string{short}
	}
	return f
}

// toggle declares a flag without a value.
func toggle(name, usage string, on *bool) urfave.Flag {
	long, short, _ := strings.Cut(name, ",")
	f := &urfave.BoolFlag{Name: long, Usage: usage, Destination: on}
	if short != "" {
		f.Aliases = []string{short}
	}
	return f
}

// findFlag returns the flag of flags that has name.
func findFlag(flags []urfave.Flag, name string) urfave.Flag {
	for _, f := range flags {
		for _, n := range f.Names() {
			if n == name {
				return f
			}
		}
	}
	return nil
}

func takesValue(f urfave.Flag) bool {
	_, isBool := f.(*urfave.BoolFlag)
	return !isBool
}

func flagUsage(f urfave.Flag) string {
	if d, ok := f.(urfave.DocGenerationFlag); ok {
		return d.GetUsage()
	}
	return ""
}

// words turns typed words into strings.
func words[T ~string](list []T) func() []string {
	return func() []string {
		out := make([]string, len(list))
		for i, w := range list {
			out[i] = string(w)
		}
		return out
	}
}
