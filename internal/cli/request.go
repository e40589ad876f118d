package cli

import (
	"context"
	"strings"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/runner"
)

// request turns the flags of run into a request. Whatever can be wrong with a
// flag is found here, before anything is started or written.
func (inv *invocation) request(ctx context.Context, o *runOptions) (agent.Request, error) {
	req := agent.Request{
		Runtime:             o.agent,
		Workdir:             inv.env.Dir,
		Model:               o.model,
		AllowCommands:       o.allowCommands.Value(),
		Env:                 o.env.Value(),
		Resume:              o.resume,
		MaxTurns:            o.maxTurns,
		Continue:            o.continues,
		TrustWorkspace:      o.trustWorkspace,
		RequireInstructions: o.requireAgentsMD,
	}
	for _, step := range []func() error{
		o.checkAlone,
		o.checkSchema,
		func() error { return inv.checkRuntime(o) },
		func() error { return o.parseWords(&req) },
		func() error { return o.parseNumbers(&req) },
		func() error { return inv.parsePaths(o, &req) },
		func() error { return checkEnv(o.env.Value()) },
		func() (err error) { req.Prompt, err = inv.promptText(ctx, o); return err },
	} {
		if err := step(); err != nil {
			return agent.Request{}, err
		}
	}
	return req, nil
}

// checkAlone refuses flags that exclude each other.
func (o *runOptions) checkAlone() error {
	if o.resume != "" && o.continues {
		return agent.Usagef("--resume and --continue exclude each other")
	}
	return nil
}

func (inv *invocation) checkRuntime(o *runOptions) error {
	if o.agent == "" {
		return nil
	}
	_, _, err := inv.stored.registry.ParseToken(o.agent)
	return err
}

func (o *runOptions) parseWords(req *agent.Request) (err error) {
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

func (o *runOptions) parseNumbers(req *agent.Request) error {
	for _, f := range []struct {
		name  string
		value string
		to    *time.Duration
	}{{"timeout", o.timeout, &req.Timeout}, {"idle-timeout", o.idleTimeout, &req.IdleTimeout}} {
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

func (inv *invocation) parsePaths(o *runOptions, req *agent.Request) error {
	if o.workdir != "" {
		req.Workdir = inv.env.abs(o.workdir)
		if err := isDirectory(req.Workdir); err != nil {
			return agent.Usagef("--workdir %q: %w", o.workdir, err)
		}
		inv.workdirs = append(inv.workdirs, req.Workdir)
	}
	for _, dir := range o.addDirs.Value() {
		path := inv.env.abs(dir)
		if err := isDirectory(path); err != nil {
			return agent.Usagef("--add-dir %q: %w", dir, err)
		}
		req.AddDirs = append(req.AddDirs, path)
	}
	return nil
}

// checkEnv checks NAME=VALUE entries. Values never appear in a message, nor what
// may be a value whose name was forgotten.
func checkEnv(entries []string) error {
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
func (inv *invocation) promptText(ctx context.Context, o *runOptions) (string, error) {
	given := 0
	for _, v := range []string{o.prompt, o.text, o.template} {
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
		source, err := inv.readInput(ctx, "--template", o.template)
		if err != nil {
			return "", err
		}
		text, err := renderTemplate(source, o.vars.Value())
		return notEmpty(text, "the rendered template is", err)
	case o.prompt != "":
		text, err := inv.readInput(ctx, "--prompt", o.prompt)
		return notEmpty(text, "--prompt "+quote(o.prompt)+" is", err)
	}
	return notEmpty(o.text, "--text is", nil)
}

func notEmpty(prompt, what string, err error) (string, error) {
	if err == nil && strings.TrimSpace(prompt) == "" {
		err = agent.Usagef("%s empty; nothing was started", what)
	}
	return prompt, err
}
