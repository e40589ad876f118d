package cli

import (
	"errors"
	"io/fs"
	"os"
	"slices"

	"github.com/busdk/bus-agent/agent"
)

// globals are the flags every command has.
type globals struct {
	help, version bool
	verbose       int
	quiet         bool
	chdir         value
	output        value
	format        value
	color         value
	noColor       bool
}

func (g *globals) json() bool { return g.format.text == "json" }

func (g *globals) flags() []*commandFlag {
	g.chdir.dirs, g.output.files = true, true
	g.format.words = func() []string { return []string{"text", "json"} }
	g.color.words = func() []string { return []string{"auto", "always", "never"} }
	verbose := toggle("verbose,v", "say more on standard error; -vv for more still", nil)
	verbose.count = &g.verbose
	return []*commandFlag{
		toggle("help,h", "print help and exit", &g.help),
		toggle("version,V", "print the version and exit", &g.version),
		verbose,
		toggle("quiet,q", "print errors only; no results, no output file", &g.quiet),
		option("chdir,C", "use `DIR` as the current directory", &g.chdir),
		option("output,o", "write results to `FILE` instead of standard output", &g.output),
		option("format,f", "print results as `FORMAT`: text or json (default: text)", &g.format),
		option("color", "color standard error: `WHEN` is auto, always or never (default: auto)", &g.color),
		toggle("no-color", "do not color; wins over --color", &g.noColor),
	}
}

// applyGlobals checks the global flags and puts them into effect.
func (inv *invocation) applyGlobals() error {
	g, env := &inv.global, inv.env
	switch {
	case g.quiet && g.verbose > 0:
		return agent.Usagef("--quiet and --verbose exclude each other")
	case g.format.set && !slices.Contains(g.format.words(), g.format.text):
		return agent.Usagef("format %q is not one of text, json", g.format.text)
	case g.color.set && !slices.Contains(g.color.words(), g.color.text):
		return agent.Usagef("color mode %q is not one of auto, always, never", g.color.text)
	case g.output.set && g.output.text == "":
		return agent.Usagef("--output needs the name of a file")
	case g.chdir.set && g.chdir.text == "":
		return agent.Usagef("--chdir needs the name of a directory")
	}
	inv.screen.quiet = g.quiet
	inv.screen.color = inv.wantColor()
	if g.chdir.set {
		dir := env.abs(g.chdir.text)
		if err := isDirectory(dir); err != nil {
			return &failure{text: "cannot change to directory " + quote(g.chdir.text), err: err}
		}
		env.Dir = dir
	}
	if g.output.set && !g.quiet {
		if err := checkOutput(env.abs(g.output.text)); err != nil {
			return agent.Usagef("--output %s: %w", g.output.text, err)
		}
	}
	return nil
}

func (inv *invocation) wantColor() bool {
	switch {
	case inv.global.noColor || inv.global.color.text == "never":
		return false
	case inv.global.color.text == "always":
		return true
	}
	env := inv.env
	return env.Terminal.Stderr && env.getenv("NO_COLOR") == "" && env.getenv("TERM") != "dumb"
}

// peekQuiet finds --quiet on a line that is wrong.
func (inv *invocation) peekQuiet(l line) {
	inv.screen.quiet = slices.Contains(l.globals, "--quiet")
}

// isDirectory returns why dir is no directory that can be entered. It opens
// nothing else: opening a named pipe waits for its writer.
func isDirectory(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return cause(err)
	case !info.IsDir():
		return errors.New("not a directory")
	}
	f, err := os.Open(dir)
	if err != nil {
		return cause(err)
	}
	return f.Close()
}

// cause strips the operation and path from an error of the file system.
func cause(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}
