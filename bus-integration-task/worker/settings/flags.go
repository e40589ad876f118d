package settings

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// Flags returns the flags of all settings, for one command of urfave/cli. Their values are
// checked by [Resolve], which also reads the variables.
func Flags() []cli.Flag {
	var flags []cli.Flag
	for _, row := range table {
		value := &flagValue{isSwitch: row.value == ""}
		usage := row.usage + row.limits()
		if row.value != "" {
			usage += " (`" + row.value + "`)"
		}
		if len(row.env) > 0 { // not EnvVars, which urfave/cli would read
			usage += " [$" + strings.Join(row.env, ", $") + "]"
		}
		flags = append(flags, &cli.GenericFlag{
			Name: row.flag, Aliases: row.aliases, Category: row.group, Usage: usage, DefaultText: row.def, Value: value,
		})
	}
	return flags
}

// FromContext returns the values of the flags that a command line has set.
func FromContext(c *cli.Context) Lookup {
	return func(name string) (string, bool) {
		if !c.IsSet(name) {
			return "", false
		}
		return fmt.Sprint(c.Generic(name)), true
	}
}

// limits says which workers use the setting.
func (r row) limits() string {
	switch {
	case r.backend == anySession:
		return "; not for container"
	case r.backend != "":
		return "; only for " + r.backend
	case r.needs != "":
		return "; only with --" + r.needs
	}
	return ""
}

// A flagValue keeps the text of a flag.
type flagValue struct {
	text     string
	isSwitch bool
}

func (v *flagValue) Set(text string) error { v.text = text; return nil }
func (v *flagValue) String() string        { return v.text }

// IsBoolFlag reports whether the value can be left out, which means true.
func (v *flagValue) IsBoolFlag() bool { return v.isSwitch }

// A Doc describes a setting.
type Doc struct {
	Flag      string
	Aliases   []string // deprecated names of the flag
	Variables []string // the first one that is set counts
	Policy    string   // field of the policy file; empty if it has none
	Default   string
	Value     string // what the help calls the value; empty for a switch
	Group     string
	Usage     string
	Refused   bool   // only the default is accepted
	Backend   string // the only one that uses the setting, or "sessions": all but the container; empty: all of them
	Needs     string // switch without which the setting has no effect; empty: none
}

// Docs returns the descriptions of all settings, in the order of the help.
func Docs() []Doc {
	var docs []Doc
	for _, r := range table {
		docs = append(docs, Doc{
			r.flag, slices.Clone(r.aliases), slices.Clone(r.env), r.policy, r.def, r.value, r.group, r.usage + r.limits(), r.refused, r.backend, r.needs,
		})
	}
	return docs
}

// Markdown returns the settings as tables in Markdown.
func Markdown() string {
	var b strings.Builder
	code := func(names ...string) string {
		if len(names) == 0 || names[0] == "" {
			return ""
		}
		return "`" + strings.ReplaceAll(strings.Join(names, "`, `"), "|", `\|`) + "`"
	}
	group := ""
	for _, d := range Docs() {
		if d.Group != group {
			group = d.Group
			fmt.Fprintf(&b, "\n## %s\n\n| flag | variables | policy field | default | |\n|---|---|---|---|---|\n", group)
		}
		flag := strings.TrimSuffix("--"+d.Flag+"="+d.Value, "=")
		usage := d.Usage
		if len(d.Aliases) > 0 {
			usage += "; older: " + code("--"+strings.Join(d.Aliases, "`, `--"))
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", code(flag), code(d.Variables...), code(d.Policy), code(d.Default), usage)
	}
	return strings.TrimPrefix(b.String(), "\n")
}
