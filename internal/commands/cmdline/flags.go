package cmdline

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/runner"
)

// A Flag is a flag with a value, which it checks when it is parsed. Its usage names the
// value in back quotes.
//
// urfave/cli derives the names of a flag with a regular expression each time it needs
// them, hundreds of times in one start of the program; Flag keeps them.
type Flag struct {
	urfave.GenericFlag
	names      []string
	values     func() []string // complete the value
	unadorned  string          // the value when none is given
	env        string          // the variable that package runner reads, for the help
	repeatable bool
	opaque     bool // the value may be any text
}

// A switchFlag is a flag without a value.
type switchFlag struct {
	urfave.BoolFlag
	names []string
}

func (f *Flag) Names() []string       { return f.names }
func (f *switchFlag) Names() []string { return f.names }

// String returns the line of the flag in the help.
func (f *Flag) String() string {
	text := urfave.FlagStringer(&urfave.StringFlag{Name: f.Name, Aliases: f.Aliases, Usage: f.Usage, EnvVars: strings.Fields(f.env)})
	if f.unadorned == "" {
		return text
	}
	names, usage, _ := strings.Cut(text, "\t")
	return strings.Replace(names, " ", "[=", 1) + "]\t" + usage
}

// Complete has values complete the value.
func (f *Flag) Complete(values func() []string) *Flag { f.values = values; return f }

// Optional lets the value be left out; it is then taken to be value.
func (f *Flag) Optional(value string) *Flag { f.unadorned = value; return f }

// Repeatable lets the flag be given several times, each with another value.
func (f *Flag) Repeatable() *Flag {
	f.repeatable = true
	f.Usage += "; can be repeated"
	return f
}

// Opaque lets the next word be the value even if it looks like a flag: a script can pass
// any text.
func (f *Flag) Opaque() *Flag { f.opaque = true; return f }

// Env names the environment variable that counts when the flag is not given. Package
// runner reads it, because urfave/cli reads the variables of the process alone.
func (f *Flag) Env(name string) *Flag { f.env = name; return f }

// AnyFile returns the values with which the shell completes the path of a file.
func AnyFile() []string { return []string{":file"} }

// anyDir is AnyFile for a directory.
func anyDir() []string { return []string{":dir"} }

// setter makes a function a urfave.Generic. urfave/cli also calls Set with what String
// returns, for each short name of a flag, and drops the error.
type setter func(string) error

func (s setter) Set(value string) error { return s(value) }
func (s setter) String() string         { return "" }

// Func declares a flag: "name", or "name,n" with its short form. Its value, if it is not
// empty, is passed to set, whose error is a usage error.
func Func(name, usage string, set func(string) error) *Flag {
	return flagFor(name, usage, func(value string) error {
		if value == "" {
			return errors.New("the value is empty")
		}
		return set(value)
	})
}

func flagFor(name, usage string, set func(string) error) *Flag {
	names := strings.Split(name, ",")
	return &Flag{names: names, GenericFlag: urfave.GenericFlag{Name: names[0], Aliases: names[1:], Usage: usage, Value: setter(set)}}
}

// String declares a flag whose value is not empty.
func String(name, usage string, to *string) *Flag {
	return Func(name, usage, func(v string) error { *to = v; return nil })
}

// Text declares a flag whose value can be empty.
func Text(name, usage string, to *string) *Flag {
	return flagFor(name, usage, func(v string) error { *to = v; return nil })
}

// Strings declares a flag that can be repeated, whose values are not empty.
func Strings(name, usage string, to *[]string) *Flag {
	return Func(name, usage, func(v string) error { *to = append(*to, v); return nil }).Repeatable()
}

// File declares a flag whose value is the name of a file.
func File(name, usage string, to *string) *Flag { return String(name, usage, to).Complete(AnyFile) }

// OneOf declares a flag whose value is one of a set.
func OneOf[T ~string](name, usage string, to *T, set ...T) *Flag {
	values := make([]string, len(set))
	for i, v := range set {
		values[i] = string(v)
	}
	return Func(name, usage, func(value string) error {
		for _, v := range set {
			if string(v) == value {
				*to = v
				return nil
			}
		}
		return fmt.Errorf("%q is not one of %s", value, strings.Join(values, ", "))
	}).Complete(func() []string { return values })
}

// Number declares a flag whose value is a number from least.
func Number(name, usage string, least int, to *int) *Flag {
	return Func(name, usage, func(value string) error {
		n, err := strconv.Atoi(value)
		if err != nil || n < least {
			return fmt.Errorf("%q is not a number from %d", value, least)
		}
		*to = n
		return nil
	})
}

// Duration declares a flag whose value is a positive duration.
func Duration(name, usage string, to *time.Duration) *Flag {
	return Func(name, usage, func(value string) (err error) {
		*to, err = runner.ParseTimeout(value)
		return err
	})
}

// Runtime declares a flag whose value is the token of a registered runtime.
func (prog *Program) Runtime(name, usage string, to *string) *Flag {
	return Func(name, usage, func(value string) error {
		*to = value
		return prog.CheckRuntime(value)
	}).Complete(func() []string { return prog.Stored.Registry.Tokens() })
}

// CheckRuntime returns a usage error unless token is that of a registered runtime.
func (prog *Program) CheckRuntime(token string) error {
	_, _, err := prog.Stored.Registry.ParseToken(token)
	if err != nil {
		return agent.Usagef("%w%s", err, Hint(prog.Stored.Registry.Tokens(), token))
	}
	return nil
}

// RuntimeOf returns the runtime that a token names.
func (prog *Program) RuntimeOf(token string) (registry.Runtime, bool) {
	rt, _, err := prog.Stored.Registry.ParseToken(token)
	return rt, err == nil
}

// Dir declares a flag whose value is a directory; to gets its absolute path. Files of
// the repository it is in are read as [Program.ReadInput] does.
func (prog *Program) Dir(name, usage string, to *string) *Flag {
	return Func(name, usage, prog.directory(func(dir string) { *to = dir; prog.workdirs = append(prog.workdirs, dir) })).Complete(anyDir)
}

// Dirs declares a flag that can be repeated, whose values are directories.
func (prog *Program) Dirs(name, usage string, to *[]string) *Flag {
	return Func(name, usage, prog.directory(func(dir string) { *to = append(*to, dir) })).Complete(anyDir).Repeatable()
}

func (prog *Program) directory(use func(string)) func(string) error {
	return func(value string) error {
		dir, err := filepath.Abs(prog.Env.Abs(value)) // fails where the current directory was removed
		if err == nil {
			err = isDirectory(dir)
		}
		if err != nil {
			return fmt.Errorf("%q: %w", value, err)
		}
		use(dir)
		return nil
	}
}

// Switch declares a flag without a value.
func Switch(name, usage string, on *bool) urfave.Flag {
	names := strings.Split(name, ",")
	return &switchFlag{names: names, BoolFlag: urfave.BoolFlag{
		Name: names[0], Aliases: names[1:], Usage: usage, Destination: on, DisableDefaultText: true,
	}}
}

// Category puts flags under one heading of the help.
func Category(heading string, flags ...urfave.Flag) []urfave.Flag {
	for _, f := range flags {
		switch f := f.(type) {
		case *Flag:
			f.Category = heading
		case *switchFlag:
			f.Category = heading
		}
	}
	return flags
}
