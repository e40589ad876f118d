package cli

import (
	"flag"
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

// A commandFlag is a flag, in the form that the framework takes: an [urfave.Flag].
// The flags that come with the framework look for their names with a regular
// expression whenever they are asked, which every start of the program would pay.
type commandFlag struct {
	name  string // without dashes
	short string // of one letter, empty for none
	usage string // a word in back quotes names the value

	value gather // nil for a flag without a value
	bare  string // the value of a flag that stands alone; empty where it needs one
	on    *bool  // whether a flag without a value was given, nil if nobody asks
	count *int   // how often, nil if nobody asks
}

// gather takes the values that a flag is given.
type gather interface {
	Set(text string) error
	String() string
}

// option declares a flag with a value: "name" or "name,n" with its short form.
func option(name, usage string, v gather) *commandFlag {
	long, short, _ := strings.Cut(name, ",")
	return &commandFlag{name: long, short: short, usage: usage, value: v}
}

// toggle declares a flag without a value.
func toggle(name, usage string, on *bool) *commandFlag {
	long, short, _ := strings.Cut(name, ",")
	return &commandFlag{name: long, short: short, usage: usage, on: on}
}

func (f *commandFlag) takesValue() bool { return f.value != nil }

// Apply makes the flag known to a set, by the one name that stands in the line
// that the framework is handed.
func (f *commandFlag) Apply(set *flag.FlagSet) error {
	set.Var(f, f.name, f.usage)
	return nil
}

// Names returns the name the framework meets.
func (f *commandFlag) Names() []string { return []string{f.name} }

// IsSet is always false: the values know that themselves.
func (f *commandFlag) IsSet() bool { return false }

// Set takes a value; "true" for a flag that has none.
func (f *commandFlag) Set(text string) error {
	if f.value != nil {
		return f.value.Set(text)
	}
	if f.on != nil {
		*f.on = true
	}
	if f.count != nil {
		*f.count++
	}
	return nil
}

func (f *commandFlag) String() string {
	if f == nil || f.value == nil {
		return ""
	}
	return f.value.String()
}

// IsBoolFlag tells the framework which flags have no value.
func (f *commandFlag) IsBoolFlag() bool { return f.value == nil }

// findFlag returns the flag of flags that has name, nil for none.
func findFlag(flags []*commandFlag, name string) *commandFlag {
	for _, f := range flags {
		if name != "" && (f.name == name || f.short == name) {
			return f
		}
	}
	return nil
}

// frameworkFlags returns flags as the framework takes them.
func frameworkFlags(flags []*commandFlag) []urfave.Flag {
	list := make([]urfave.Flag, len(flags))
	for i, f := range flags {
		list[i] = f
	}
	return list
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
