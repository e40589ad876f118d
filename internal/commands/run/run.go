package run

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/busdk/bus-agent/internal/commands/cmdline"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/fallback"
	"github.com/busdk/bus-agent/formatters"
	"github.com/busdk/bus-agent/runner"
)

// runOptions are the flags of run as they were given.
type Options struct {
	RecordOptions
	fallbackOptions
	schemaOptions
	Agent, Model, effort, verbosity, output, access string
	Timeout, idleTimeout, workdir                   string
	Prompt, text, template                          string
	Resume                                          string
	maxTurns                                        int
	AllowCommands, addDirs, Env, vars               urfave.StringSlice

	continues, RequireAgentsMD, TrustWorkspace, RequireConfigured, dryRun bool
}

func Command(prog *cmdline.Program) *urfave.Command {
	o := &Options{}
	return &urfave.Command{
		Name:      "run",
		Usage:     "run an agent with a prompt",
		ArgsUsage: "[-- ARGS]",
		Description: `Runs one agent once, in the current directory, and waits for its end. Exactly
one of --prompt, --text and --template says what it is asked.

Without --agent, the runtime is the one that BUS_AGENT or the preference
bus-agent.runtime names, or else the first that "detect" prints. There are:
RUNTIMES.

In the output format text, standard error shows the conversation while it
happens and standard output gets the final answer alone, ended by one line
break; when both are the same terminal the answer is not printed again. ndjson
passes the agent's own lines on unchanged, events prints one normalized event
in JSON a line. With --format json, standard output gets one object at the end,
also when the agent fails: text, runtime, model, session_id, usage, cost_usd,
duration_ms, exit_code, kind, error, attempts, warnings.

With --schema, the answer is one JSON value that follows a JSON Schema, and nothing
else; with --format json it stands in the member structured as well. An answer that
does not follow it is asked for once more; when that does not help, the run fails.

With --fallback, a runtime that has no quota left, hits a rate limit, is not logged
in or not installed is no end: the next one of the list gets the same prompt in a
new session, with its own default model. That is not done after other failures, nor
when a tool may have changed something by then. A runtime that failed so rests, 15
minutes without quota and 5 without a login: runs with --fallback leave it out
meanwhile, and "doctor" shows it.

With --verbose, standard error also shows where the agent runs, its own
standard error, what the run took, and the ID that --resume takes. When the agent
fails, the last lines of its standard error are shown in any case. Ctrl-C stops
the agent and everything it started.`,
		Flags: o.Flags(prog),
		UsageText: cmdline.UsageText(`# ask about the code, changing nothing
bus-agent run --access read --text "What does this project do?"
# a prompt from a file, a certain agent, at most ten minutes
bus-agent run --agent RUNTIME --prompt task.md --timeout 10m
# the answer alone, into a file
bus-agent run --text "Write a haiku about Go" 2>/dev/null > haiku.txt
# another agent where the first has no quota left
bus-agent run --text "Summarize README.md" --access read --fallback RUNTIME
# see what would run
bus-agent run --prompt task.md --dry-run`,
			"the agent succeeded",
			"the agent failed, timed out, was stopped, or is not installed"),
		Action: prog.Action(cmdline.JSON|cmdline.Slow, func(ctx context.Context, call cmdline.Call) error {
			return start(prog, ctx, o, call.Rest)
		}),
	}
}

func (o *Options) TrustFlag() urfave.Flag {
	return cmdline.Toggle("trust-workspace", "let hooks, MCP servers and settings of the repository run", &o.TrustWorkspace)
}

func (o *Options) Flags(prog *cmdline.Program) []urfave.Flag {
	return append([]urfave.Flag{
		cmdline.Option("agent", "run the agent `RUNTIME`", &o.Agent).Of(prog.Stored.Registry.Tokens),
		cmdline.Option("prompt", "read the prompt from `FILE`, - for standard input", &o.Prompt).Of(cmdline.Files),
		cmdline.Option("text", "take `TEXT` as the prompt", &o.text),
		cmdline.Option("template", "render the template in `FILE`, - for standard input, as the prompt", &o.template).Of(cmdline.Files),
		cmdline.List("var", "give the template a value as `NAME=VALUE`; can be repeated", &o.vars),
		cmdline.Option("model", "use `MODEL`; auto leaves the choice to the runtime (default: auto)", &o.Model),
		cmdline.Option("model-reasoning-effort", "let the model think `EFFORT`: minimal, low, medium, high or xhigh", &o.effort).Of(cmdline.Words(agent.Efforts()...)),
		cmdline.Option("model-verbosity", "let the model write `VERBOSITY`: low, medium or high", &o.verbosity).Of(cmdline.Words(agent.Verbosities()...)),
		cmdline.Option("output-format", "print `OUTPUT`: text, ndjson or events (default: text)", &o.output).Of(cmdline.Words(agent.OutputFormats()...)),
		cmdline.Option("access", "give the agent `ACCESS`: read (look only), write (edit here), full (no limits) (default: write)", &o.access).Of(cmdline.Words(agent.Accesses()...)),
		cmdline.List("allow-command", "let the agent run commands that match `PATTERN` unconfined; can be repeated", &o.AllowCommands),
		cmdline.List("add-dir", "let the agent work in `DIR` too; can be repeated", &o.addDirs).Of(cmdline.Dirs),
		cmdline.List("env", "set a variable for the agent as `NAME=VALUE`; can be repeated", &o.Env),
		cmdline.Option("timeout", "stop the agent after `DURATION`, such as 90s or 1h30m (default: 60m)", &o.Timeout),
		cmdline.Option("idle-timeout", "stop the agent after `DURATION` without progress (default: never)", &o.idleTimeout),
		cmdline.Option("workdir", "let the agent work in `DIR` (default: the current directory)", &o.workdir).Of(cmdline.Dirs),
		cmdline.Option("resume", "continue the session `ID`", &o.Resume),
		cmdline.Toggle("continue", "continue the latest session of the workdir", &o.continues),
		cmdline.Number("max-turns", "stop the agent after `N` turns of the model", 1, &o.maxTurns),
		cmdline.Toggle("require-agents-md", "fail when there is no AGENTS.md or it cannot be delivered whole", &o.RequireAgentsMD),
		o.TrustFlag(),
		cmdline.Toggle("require-configured", "fail when nothing names a runtime, instead of taking the first available", &o.RequireConfigured),
		cmdline.Toggle("dry-run", "print what would run and write, and do nothing", &o.dryRun),
	}, slices.Concat(o.RecordOptions.flags(), o.fallbackOptions.flags(prog), o.schemaOptions.flags())...)
}

func start(prog *cmdline.Program, ctx context.Context, o *Options, rest []string) error {
	req, err := request(prog, ctx, o)
	if err != nil {
		return err
	}
	req.Args = rest

	messages := &startMessages{screen: prog.Screen}
	r := prog.Runner(messages.warn)
	r.RequireConfigured = o.RequireConfigured
	output, timeout, err := outputFormat(prog, ctx, r, o, req)
	if err == nil {
		err = readSchema(prog, ctx, &o.schemaOptions, &req)
	}
	if err == nil {
		err = addRecorder(prog, ctx, r, &o.RecordOptions, &req, messages.warn)
	}
	var chain *fallback.Chain
	if err == nil {
		chain, err = withFallback(prog, ctx, r, &o.fallbackOptions, req)
	}
	if err != nil {
		messages.release()
		return err
	}
	if o.dryRun {
		return printPlan(prog, ctx, chain, req, messages)
	}
	return runAgent(prog, ctx, withSchema(prog, ctx, &o.schemaOptions, r, chain, req, messages.warn), req, output, timeout, messages)
}

// outputFormat settles what is printed of the run, "" when that is one JSON object,
// and how long it may take.
func outputFormat(prog *cmdline.Program, ctx context.Context, r *runner.Runner, o *Options, req agent.Request) (agent.OutputFormat, time.Duration, error) {
	settings, err := r.Settings(ctx, "", req, agent.OutputFormat(o.output))
	if err != nil {
		return "", 0, err
	}
	output, timeout := settings.OutputFormat.Value, settings.Timeout.Value
	switch {
	case !prog.Global.JSON():
		return output, timeout, nil
	case o.output != "" && output != agent.OutputText:
		return "", 0, agent.Usagef("--output-format %s and --format json both want standard output; leave one out", output)
	}
	return "", timeout, nil
}

// agentRunner is a runner.Runner or what stands around it.
type agentRunner interface {
	Run(context.Context, agent.Request, agent.Output) (agent.Result, error)
}

// runAgent runs the agent, for up to timeout, and prints what output asks for.
func runAgent(prog *cmdline.Program, ctx context.Context, r agentRunner, req agent.Request, output agent.OutputFormat, timeout time.Duration, messages *startMessages) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	prog.Out.Before = prog.Screen.Clear
	v := &View{Prog: prog, messages: messages}
	out := v.output(output)
	req.CaptureLimit = -1 // no format prints what is kept
	var openErr error
	environ := slices.Concat(prog.Env.Environ, req.Env)
	out.Started = func(start agent.Start) {
		environ = append(environ, start.Command.Env...)
		v.started(start)
		prog.Outlets.Limit(timeout)
		if openErr = prog.Out.Open(); openErr != nil {
			cancel(openErr)
		}
	}

	begun := time.Now()
	result, err := r.Run(ctx, req, out)
	v.close()
	v.summarize(result)
	switch {
	case openErr != nil:
		return openErr
	case errors.Is(err, agent.ErrUsage):
		return err
	case output == "":
		if result.Duration == 0 {
			result.Duration = time.Since(begun)
		}
		said := Report(result, err)
		said.Structured = structuredAnswer(r, result, err)
		if printErr := prog.Out.PrintJSON(said); printErr != nil && err == nil {
			return printErr
		}
	case output == agent.OutputText && err == nil:
		if structuredAnswer(r, result, err) != nil {
			result.Text = printableJSON(result.Text)
		}
		return v.Answer(result)
	case output == agent.OutputText && !v.Streamed && result.Text != "":
		return &cmdline.Unseen{Err: err, Text: formatters.SanitizeString(runner.Mask(environ, result.Text))}
	}
	return err
}
