package cli

import (
	"errors"
	"io/fs"
	"os"
	"slices"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/agent"
)

// globals are the flags every command has.
type globals struct {
	help, version bool
	verbose       int
	quiet         bool
	chdir         string
	output        string
	format        string
	color         string
	noColor       bool
}

func (g *globals) json() bool { return g.format == "json" }

var (
	formats    = []string{"text", "json"}
	colorModes = []string{"auto", "always", "never"}
)

func (g *globals) flags() []urfave.Flag {
	verbose := toggle("verbose,v", "say more on standard error; -vv for more still", nil)
	verbose.Count = &g.verbose
	return []urfave.Flag{
		toggle("help,h", "print help and exit", &g.help),
		toggle("version,V", "print the version and exit", &g.version),
		verbose,
		toggle("quiet,q", "print errors only; no results, no output file", &g.quiet),
		option("chdir,C", "use `DIR` as the current directory", &g.chdir).of(dirs),
		option("output,o", "write results to `FILE` instead of standard output", &g.output).of(files),
		option("format,f", "print results as `FORMAT`: text or json (default: text)", &g.format).of(words(formats...)),
		option("color", "color standard error: `WHEN` is auto, always or never (default: auto)", &g.color).of(words(colorModes...)),
		toggle("no-color", "do not color; wins over --color", &g.noColor),
	}
}

// applyGlobals checks the global flags and puts them into effect.
func (inv *invocation) applyGlobals() error {
	g, env := &inv.global, inv.env
	g.verbose = max(0, g.verbose) // urfave/cli counts from below zero
	switch {
	case g.quiet && g.verbose > 0:
		return agent.Usagef("--quiet and --verbose exclude each other")
	case g.format != "" && !slices.Contains(formats, g.format):
		return agent.Usagef("format %q is not one of text, json", g.format)
	case g.color != "" && !slices.Contains(colorModes, g.color):
		return agent.Usagef("color mode %q is not one of auto, always, never", g.color)
	}
	inv.screen.quiet = g.quiet
	inv.screen.color = inv.wantColor()
	if g.chdir != "" {
		dir := env.abs(g.chdir)
		if err := isDirectory(dir); err != nil {
			return &failure{text: "cannot change to directory " + quote(g.chdir), err: err}
		}
		env.Dir = dir
	}
	if g.output != "" && !g.quiet {
		if err := checkOutput(env.abs(g.output)); err != nil {
			return agent.Usagef("--output %s: %w", g.output, err)
		}
	}
	return nil
}

func (inv *invocation) wantColor() bool {
	switch {
	case inv.global.noColor || inv.global.color == "never":
		return false
	case inv.global.color == "always":
		return true
	}
	env := inv.env
	return env.Terminal.Stderr && env.getenv("NO_COLOR") == "" && env.getenv("TERM") != "dumb"
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
