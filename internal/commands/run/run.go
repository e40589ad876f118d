package run

import (
	"cmp"
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"time"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/fallback"
	"github.com/busdk/bus-agent/formatters"
	"github.com/busdk/bus-agent/internal/commands/cmdline"
	"github.com/busdk/bus-agent/jsonline"
	"github.com/busdk/bus-agent/render"
	"github.com/busdk/bus-agent/runner"
	"github.com/busdk/bus-agent/structured"
)

// Command is "run".
func Command(prog *cmdline.Program) *urfave.Command {
	o := &Options{vars: map[string]string{}}
	return &urfave.Command{
		Name:      "run",
		Usage:     "run an agent with a prompt",
		ArgsUsage: "[PROMPT] [-- ARGS]",
		Description: `Runs an agent once, in the current directory, and waits until it ends. Give the
prompt as one argument, or with one of --prompt, --text and --template. Without any of
them, it is read from standard input, unless that is a terminal.

Without --agent, run uses the runtime that BUS_AGENT or the preference
bus-agent.runtime names, or else the first one that "detect" prints. The runtimes are:
RUNTIMES.

By default, the conversation is shown on standard error and the final answer is
printed on standard output. If both are the same terminal, file or pipe, the answer is
not printed twice. --output-format ndjson prints the agent's lines unchanged; events prints
normalized events, one JSON object a line. With --format json, standard output gets
one object at the end, even when the agent fails, but nothing after a usage error. Its
members:
  text            the final answer
  text_truncated  true if the middle of the answer is missing
  repeated        true if the answer may have parts twice, after a lost connection
  structured      with --schema, the answer as JSON
  runtime, model  what ran; the model is auto if it is unknown
  session_id      the session, for --resume
  usage           tokens, as in events; null if unknown
  cost_usd        the cost in US dollars; null if unknown
  duration_ms     how long the run took, in milliseconds
  exit_code       of the agent; -1 if a signal ended it or it was not started
  signal          the signal that ended the agent
  kind, error     why the run failed; both are empty if it succeeded
  stderr          the end of the agent's standard error, if the run failed
  run_id          the ID of the record
  attempts        with --fallback, the runtimes that were tried or skipped before
  warnings        the warnings

The values of kind:
  not_installed   the runtime is not installed
  none_available  no runtime was named and none is available
  authentication  the agent is not logged in, or its key was refused
  quota           a quota is used up, or a rate limit was hit
  agent           the agent failed in another way
  timeout         the run took longer than --timeout
  idle_timeout    the agent made no progress for too long
  canceled        the run was stopped, such as by Ctrl-C
  error           any other failure

With --schema, the answer is one JSON value that matches a JSON Schema. If it does not
match the schema, the agent is asked once more. If the second answer does not match
either, the run fails.

With --fallback, bus-agent retries with the next runtime in the list when one is out
of quota, rate-limited, logged out or not installed. The next runtime gets the same
prompt in a new session, with its own default model. bus-agent does not retry after
other failures, or when a tool may have changed something. A runtime that failed is
in cooldown: runs with --fallback skip it for 15 minutes, or 5 if it was logged out.
"doctor" shows runtimes in cooldown.

With --verbose, standard error also shows the directory the agent runs in, its
standard error, the time and tokens used, and the session ID for --resume. Ctrl-C
stops the agent and everything it started.`,
		Flags: o.flags(prog),
		UsageText: cmdline.UsageText(`# ask about the code, changing nothing
bus-agent run --access read "What does this project do?"
# a given agent, a prompt from a file, at most ten minutes
bus-agent run --agent RUNTIME --prompt task.md --timeout 10m
# the answer alone, into a file
bus-agent run --text "Write a haiku about Go" 2>/dev/null > haiku.txt
# another agent when the first is out of quota
bus-agent run --text "Summarize README.md" --access read --fallback RUNTIME
# ask about an image
bus-agent run --text "What does this chart show?" --attach chart.png
# see what would run
bus-agent run --prompt task.md --dry-run`,
			"the agent succeeded",
			"the agent failed, timed out, was stopped, or is not installed"),
		Action: prog.Action(cmdline.JSON|cmdline.Slow, func(ctx context.Context, call cmdline.Call) error {
			o.positional, o.Args = call.Args, call.Rest
			messages := &startMessages{screen: prog.Screen}
			err := o.run(ctx, prog, messages)
			messages.release()
			return err
		}),
	}
}

// run reads the prompt and runs the agent.
func (o *Options) run(ctx context.Context, prog *cmdline.Program, messages *startMessages) error {
	if err := o.readPrompt(ctx, prog); err != nil {
		return err
	}
	var err error
	if o.Attachments, err = prog.ReadAttachments(o.attach); err != nil {
		return err
	}
	o.Workdir = cmp.Or(o.Workdir, prog.Env.Dir)
	r := prog.Runner(messages.warn)
	r.RequireConfigured = o.RequireConfigured
	settings := r.Settings(ctx, "", o.Request, o.output)
	output, timeout := settings.OutputFormat.Value, settings.Timeout.Value
	switch {
	case !prog.Global.JSON() && settings.OutputFormat.Err != nil:
		return settings.OutputFormat.Err
	case !prog.Global.JSON():
	case o.output != "" && output != agent.OutputText:
		return cmdline.Misusef("--output-format %s and --format json both want standard output; leave one out", output)
	default:
		output = ""
	}
	if settings.Timeout.Err != nil {
		return settings.Timeout.Err
	}
	schema, err := o.readSchema(ctx, prog)
	if err != nil {
		return err
	}
	recording, err := o.Record.Settings(ctx, prog, messages.warn)
	if err != nil {
		return err
	}
	o.Labels = o.Record.labels
	r.Recorder = agent.Recorders(recording.Recorder(), r.Recorder)
	chain, err := o.chain(ctx, r)
	if err != nil {
		return err
	}
	if o.dryRun {
		return dryRun(ctx, prog, chain, o.Request, messages)
	}
	var next agentRunner = chain
	if schema != nil {
		next = &structured.Enforcer{Next: chain, Schema: schema, Environ: prog.Env.Environ, Warn: messages.warn, Timeout: timeout}
	}
	return runAgent(ctx, prog, next, o.Request, output, timeout, messages)
}

// readPrompt makes the prompt of the request.
func (o *Options) readPrompt(ctx context.Context, prog *cmdline.Program) (err error) {
	given := slices.DeleteFunc([]string{o.PromptFile, o.text, o.template}, func(v string) bool { return v == "" })
	stdin, _ := prog.Env.Stdin.(*os.File)
	implicit := len(given)+len(o.positional) == 0 && o.schema != "-" && (stdin == nil || !cmdline.IsTerminal(stdin))
	switch {
	case len(given)+len(o.positional) > 1:
		return cmdline.Misusef("the prompt is given twice; use one of PROMPT, --prompt, --text and --template")
	case len(given)+len(o.positional) == 0 && !implicit:
		return errNoPrompt
	case o.schema == "-" && len(given) > 0 && given[0] == "-" && o.text == "":
		return cmdline.Misusef("--schema - and the prompt both read standard input; write one of them to a file")
	case len(o.vars) > 0 && o.template == "":
		return cmdline.Misusef("--var needs --template; a prompt is passed on unchanged")
	case o.template != "":
		if o.Prompt, err = prog.ReadInput(ctx, "--template", o.template); err == nil {
			o.Prompt, err = render.Render(o.Prompt, o.vars)
		}
	case o.PromptFile != "":
		o.Prompt, err = prog.ReadInput(ctx, "--prompt", o.PromptFile)
	case implicit:
		if o.Prompt, err = prog.ReadStdin(ctx, "the prompt"); err == nil && o.Prompt == "" {
			err = errNoPrompt
		}
	case len(o.positional) > 0:
		o.Prompt = o.positional[0]
	default:
		o.Prompt = o.text
	}
	return err
}

var errNoPrompt = cmdline.Misusef("run needs a prompt: PROMPT, --prompt, --text, --template or standard input")

// readSchema adds the schema of the answer to the request; it is nil without one.
func (o *Options) readSchema(ctx context.Context, prog *cmdline.Program) (*structured.Schema, error) {
	if o.schema == "" {
		return nil, nil
	}
	text, err := prog.ReadInput(ctx, "--schema", o.schema)
	if err != nil {
		return nil, err
	}
	schema, err := structured.Compile([]byte(text))
	if err != nil {
		return nil, agent.Usagef("--schema %s: %w", cmdline.Quote(o.schema), err)
	}
	o.Schema = schema.JSON()
	return schema, nil
}

// chain returns r with the runtimes to fall back to.
func (o *Options) chain(ctx context.Context, r *runner.Runner) (*fallback.Chain, error) {
	chain := &fallback.Chain{Runner: r, AfterChanges: o.afterChanges, Cooldown: o.fallbackWait}
	if o.fallback == "" {
		return chain, nil
	}
	for token := range strings.SplitSeq(o.fallback, ",") {
		chain.Runtimes = append(chain.Runtimes, strings.TrimSpace(token))
	}
	list := r.Fallback(ctx, chain.Runtimes)
	switch {
	case list.Err != nil:
		return nil, agent.Usagef("--fallback %s: %w", cmdline.Quote(o.fallback), list.Err)
	case len(list.Value) == 0:
		return chain, nil
	case o.Resume != "" || o.Continue:
		return nil, cmdline.Misusef("--fallback starts new sessions; leave it or --resume and --continue out")
	case len(o.Args) > 0:
		return nil, cmdline.Misusef("the arguments after -- are for one CLI; leave them or --fallback out")
	case len(o.AllowTools)+len(o.DenyTools) > 0:
		return nil, cmdline.Misusef("the names of tools are those of one CLI; leave --allow-tool and --deny-tool or --fallback out")
	}
	return chain, nil
}

// agentRunner is a fallback.Chain or a runner around it.
type agentRunner interface {
	Run(context.Context, agent.Request, agent.Output) (agent.Result, error)
}

// runAgent runs the agent, for up to timeout, and prints it in the format output, or as
// one JSON object when output is "".
func runAgent(ctx context.Context, prog *cmdline.Program, r agentRunner, req agent.Request, output agent.OutputFormat, timeout time.Duration, messages *startMessages) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	v := &view{prog: prog, messages: messages}
	out := v.output(output)
	req.CaptureLimit = -1 // no format prints what is kept
	var openErr error
	environ := slices.Concat(prog.Env.Environ, req.Env)
	out.Started = func(start agent.Start) {
		environ = append(environ, start.Command.Env...)
		v.started(start)
		prog.LimitReaders(timeout)
		if openErr = prog.Out.Open(); openErr != nil {
			cancel(openErr)
		}
	}

	begun := time.Now()
	result, err := r.Run(ctx, req, out)
	v.close()
	v.noteRecord(result.RunID) // of an agent that did not start
	v.summarize(result)
	_, schema := r.(*structured.Enforcer)
	switch {
	case openErr != nil:
		return openErr
	case errors.Is(err, agent.ErrUsage):
		return err
	case output == "":
		result.Duration = cmp.Or(result.Duration, time.Since(begun))
		report := Report(result, err)
		if schema && err == nil {
			report.Structured = []byte(result.Text)
		}
		if printErr := prog.Out.PrintJSON(report); err == nil {
			return printErr
		}
	case output == agent.OutputText && err == nil:
		if schema {
			result.Text = string(jsonline.EscapeControls([]byte(result.Text), 0))
		}
		return PrintAnswer(prog, result, v.streamed)
	case output == agent.OutputText && !v.streamed && result.Text != "":
		return &cmdline.Unseen{Err: err, Text: formatters.SanitizeString(runner.Mask(environ, result.Text))}
	}
	return err
}
