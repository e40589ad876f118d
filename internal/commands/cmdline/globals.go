package cmdline

import (
	"slices"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/agent"
)

// globals are the flags every command has.
type Globals struct {
	help, version bool
	Verbose       int
	Quiet         bool
	chdir         string
	Output        string
	format        string
	color         string
	noColor       bool
}

func (g *Globals) JSON() bool { return g.format == "json" }

var (
	formats    = []string{"text", "json"}
	colorModes = []string{"auto", "always", "never"}
)

func (g *Globals) flags() []urfave.Flag {
	verbose := Toggle("verbose,v", "say more on standard error; -vv for more still", nil)
	verbose.Count = &g.Verbose
	return []urfave.Flag{
		Toggle("help,h", "print help and exit", &g.help),
		Toggle("version,V", "print the version and exit", &g.version),
		verbose,
		Toggle("quiet,q", "print errors only; no results, no output file", &g.Quiet),
		Option("chdir,C", "use `DIR` as the current directory", &g.chdir).Of(Dirs),
		Option("output,o", "write results to `FILE` instead of standard output", &g.Output).Of(Files),
		Option("format,f", "print results as `FORMAT`: text or json (default: text)", &g.format).Of(Words(formats...)),
		Option("color", "color standard error: `WHEN` is auto, always or never (default: auto)", &g.color).Of(Words(colorModes...)),
		Toggle("no-color", "do not color; wins over --color", &g.noColor),
	}
}

// applyGlobals checks the global flags and puts them into effect.
func (prog *Program) applyGlobals() error {
	g, env := &prog.Global, prog.Env
	g.Verbose = max(0, g.Verbose) // urfave/cli counts from below zero
	switch {
	case g.Quiet && g.Verbose > 0:
		return agent.Usagef("--quiet and --verbose exclude each other")
	case g.format != "" && !slices.Contains(formats, g.format):
		return agent.Usagef("format %q is not one of text, json", g.format)
	case g.color != "" && !slices.Contains(colorModes, g.color):
		return agent.Usagef("color mode %q is not one of auto, always, never", g.color)
	}
	prog.Screen.quiet = g.Quiet
	prog.Screen.color = prog.wantColor()
	if g.chdir != "" {
		dir := env.Abs(g.chdir)
		if err := IsDirectory(dir); err != nil {
			return &Failure{Text: "cannot change to directory " + Quote(g.chdir), Err: err}
		}
		env.Dir = dir
	}
	if g.Output != "" && !g.Quiet {
		if err := checkOutput(env.Abs(g.Output)); err != nil {
			return agent.Usagef("--output %s: %w", g.Output, err)
		}
	}
	return nil
}

func (prog *Program) wantColor() bool {
	switch {
	case prog.Global.noColor || prog.Global.color == "never":
		return false
	case prog.Global.color == "always":
		return true
	}
	env := prog.Env
	return env.Terminal.Stderr && env.Getenv("NO_COLOR") == "" && env.Getenv("TERM") != "dumb"
}
