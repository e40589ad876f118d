package cmdline

import (
	"os"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/agent"
)

// Globals are the flags that every command has.
type Globals struct {
	Verbose int // how often --verbose is given
	Quiet   bool
	Output  string // the file for results, "" for standard output

	help, version  bool
	chdir          string
	format, colors string
	noColor        bool
}

// JSON reports whether results are printed as JSON.
func (g *Globals) JSON() bool { return g.format == "json" }

// JUnit reports whether results are printed as JUnit XML.
func (g *Globals) JUnit() bool { return g.format == "junit" }

func (g *Globals) flags() []urfave.Flag {
	verbose := Switch("verbose,v", "print more on standard error; -vv prints even more", nil)
	verbose.(*switchFlag).Count = &g.Verbose
	return []urfave.Flag{
		Switch("help,h", "print help and exit", &g.help),
		Switch("version,V", "print the version and exit", &g.version),
		verbose,
		Switch("quiet,q", "print errors only; no results, no output file", &g.Quiet),
		String("chdir,C", "use `DIR` as the current directory", &g.chdir).Complete(anyDir),
		File("output,o", "write results to `FILE`; if it exists, those of a failed run are in FILE.bus-agent-*.partial until the next command", &g.Output),
		OneOf("format,f", "print results as `FORMAT`: text, json or, with verify, junit (default: text)", &g.format, "text", "json", "junit"),
		OneOf("color", "color standard error: `WHEN` is auto, always or never (default: auto)", &g.colors, "auto", "always", "never"),
		Switch("no-color", "do not color standard error; overrides --color", &g.noColor),
	}
}

// applyGlobals puts the global flags into effect.
func (prog *Program) applyGlobals() error {
	g, env := &prog.Global, prog.Env
	g.Verbose = max(0, g.Verbose) // urfave/cli counts from below zero
	if g.Quiet && g.Verbose > 0 {
		return misuse(prog.root, "--quiet and --verbose exclude each other")
	}
	prog.Screen.quiet = g.Quiet
	switch {
	case g.noColor || g.colors == "never":
	case g.colors == "always":
		prog.Screen.color = true
	default:
		prog.Screen.color = env.Terminal.Stderr && env.Getenv("NO_COLOR") == "" && env.Getenv("TERM") != "dumb"
	}
	if g.chdir != "" {
		dir := env.Abs(g.chdir)
		if err := isDirectory(dir); err != nil {
			return &Failure{Text: "cannot change to directory " + Quote(g.chdir), Err: err}
		}
		env.Dir = dir
	}
	if g.Output != "" && !g.Quiet {
		if err := CheckOutput(env.Abs(g.Output)); err != nil {
			return agent.Usagef("--output %s: %w", g.Output, err)
		}
	}
	return nil
}

// isDirectory returns why dir is not a directory that can be entered. It opens nothing
// but directories, because opening a named pipe waits for its writer.
func isDirectory(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return Cause(err)
	case !info.IsDir():
		return errNotDirectory
	}
	f, err := os.Open(dir)
	if err != nil {
		return Cause(err)
	}
	return f.Close()
}
