package run

import (
	"context"
	"strings"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/commands/cmdline"
	"github.com/busdk/bus-agent/runner"
)

// request turns the flags of run into a request. Whatever can be wrong with a
// flag is found here, before anything is started or written.
func request(prog *cmdline.Program, ctx context.Context, o *Options) (agent.Request, error) {
	req := agent.Request{
		Runtime:             o.Agent,
		Workdir:             prog.Env.Dir,
		Model:               o.Model,
		AllowCommands:       o.AllowCommands.Value(),
		Env:                 o.Env.Value(),
		Resume:              o.Resume,
		MaxTurns:            o.maxTurns,
		Continue:            o.continues,
		TrustWorkspace:      o.TrustWorkspace,
		RequireInstructions: o.RequireAgentsMD,
	}
	for _, step := range []func() error{
		o.CheckAlone,
		o.checkSchema,
		func() error { return CheckRuntime(prog, o) },
		func() error { return o.ParseWords(&req) },
		func() error { return o.ParseNumbers(&req) },
		func() error { return ParsePaths(prog, o, &req) },
		func() error { return CheckEnv(o.Env.Value()) },
		func() (err error) { req.Prompt, err = promptText(prog, ctx, o); return err },
	} {
		if err := step(); err != nil {
			return agent.Request{}, err
		}
	}
	return req, nil
}

// checkAlone refuses flags that exclude each other.
func (o *Options) CheckAlone() error {
	if o.Resume != "" && o.continues {
		return agent.Usagef("--resume and --continue exclude each other")
	}
	return nil
}

func CheckRuntime(prog *cmdline.Program, o *Options) error {
	if o.Agent == "" {
		return nil
	}
	_, _, err := prog.Stored.Registry.ParseToken(o.Agent)
	return err
}

func (o *Options) ParseWords(req *agent.Request) (err error) {
	if o.effort != "" {
		if req.ReasoningEffort, err = agent.ParseEffort(o.effort); err != nil {
			return err
		}
	}
	if o.verbosity != "" {
		if req.Verbosity, err = agent.ParseVerbosity(o.verbosity); err != nil {
			return err
		}
	}
	if o.access != "" {
		if req.Access, err = agent.ParseAccess(o.access); err != nil {
			return err
		}
	}
	if o.output != "" {
		_, err = agent.ParseOutputFormat(o.output)
	}
	return err
}

func (o *Options) ParseNumbers(req *agent.Request) error {
	for _, f := range []struct {
		name  string
		value string
		to    *time.Duration
	}{{"timeout", o.Timeout, &req.Timeout}, {"idle-timeout", o.idleTimeout, &req.IdleTimeout}} {
		if f.value == "" {
			continue
		}
		d, err := runner.ParseTimeout(f.value)
		if err != nil {
			return agent.Usagef("--%s: %w", f.name, err)
		}
		*f.to = d
	}
	return nil
}

func ParsePaths(prog *cmdline.Program, o *Options, req *agent.Request) error {
	if o.workdir != "" {
		req.Workdir = prog.Env.Abs(o.workdir)
		if err := cmdline.IsDirectory(req.Workdir); err != nil {
			return agent.Usagef("--workdir %q: %w", o.workdir, err)
		}
		prog.Workdirs = append(prog.Workdirs, req.Workdir)
	}
	for _, dir := range o.addDirs.Value() {
		path := prog.Env.Abs(dir)
		if err := cmdline.IsDirectory(path); err != nil {
			return agent.Usagef("--add-dir %q: %w", dir, err)
		}
		req.AddDirs = append(req.AddDirs, path)
	}
	return nil
}

// checkEnv checks NAME=VALUE entries. Values never appear in a message, nor what
// may be a value whose name was forgotten.
func CheckEnv(entries []string) error {
	for i, entry := range entries {
		name, value, ok := strings.Cut(entry, "=")
		switch {
		case !ok:
			return agent.Usagef("--env number %d is not NAME=VALUE; it is not shown here, as it may be a secret", i+1)
		case name == "":
			return agent.Usagef("--env has a value without a name; write NAME=VALUE")
		case strings.ContainsRune(name, 0) || strings.ContainsRune(value, 0):
			return agent.Usagef("--env %q has a NUL character", strings.ReplaceAll(name, "\x00", ""))
		}
	}
	return nil
}

// promptText returns the prompt, whole.
func promptText(prog *cmdline.Program, ctx context.Context, o *Options) (string, error) {
	given := 0
	for _, v := range []string{o.Prompt, o.text, o.template} {
		if v != "" {
			given++
		}
	}
	switch {
	case given != 1:
		return "", agent.Usagef("run needs exactly one of --prompt, --text and --template")
	case len(o.vars.Value()) > 0 && o.template == "":
		return "", agent.Usagef("--var needs --template; a prompt is passed on as it is")
	case o.template != "":
		source, err := prog.ReadInput(ctx, "--template", o.template)
		if err != nil {
			return "", err
		}
		text, err := renderTemplate(source, o.vars.Value())
		return cmdline.NotEmpty(text, "the rendered template is", err)
	case o.Prompt != "":
		text, err := prog.ReadInput(ctx, "--prompt", o.Prompt)
		return cmdline.NotEmpty(text, "--prompt "+cmdline.Quote(o.Prompt)+" is", err)
	}
	return cmdline.NotEmpty(o.text, "--text is", nil)
}
