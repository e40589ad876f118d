package cli

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/runner"
)

// request turns the flags of run into a request. Whatever can be wrong with a
// flag is found here, before anything is started or written.
func (inv *invocation) request(ctx context.Context, o *runOptions) (agent.Request, error) {
	req := agent.Request{
		Runtime:             o.agent.text,
		Workdir:             inv.env.Dir,
		Model:               o.model.text,
		AllowCommands:       o.allowCommands.list,
		Env:                 o.env.list,
		Resume:              o.resume.text,
		Continue:            o.continues,
		TrustWorkspace:      o.trustWorkspace,
		RequireInstructions: o.requireAgentsMD,
	}
	for _, step := range []func() error{
		o.checkEmpty,
		o.checkSchema,
		func() error { return inv.checkRuntime(o) },
		func() error { return o.parseWords(&req) },
		func() error { return o.parseNumbers(&req) },
		func() error { return inv.parsePaths(o, &req) },
		func() error { return checkEnv(o.env.list) },
		func() (err error) { req.Prompt, err = inv.promptText(ctx, o); return err },
	} {
		if err := step(); err != nil {
			return agent.Request{}, err
		}
	}
	return req, nil
}

// checkEmpty refuses empty values where they name something.
func (o *runOptions) checkEmpty() error {
	for _, f := range []struct {
		name  string
		value value
	}{
		{"agent", o.agent}, {"model", o.model}, {"model-reasoning-effort", o.effort}, {"model-verbosity", o.verbosity},
		{"output-format", o.output}, {"access", o.access}, {"timeout", o.timeout}, {"idle-timeout", o.idleTimeout},
		{"workdir", o.workdir}, {"prompt", o.prompt}, {"template", o.template}, {"resume", o.resume}, {"max-turns", o.maxTurns},
	} {
		if f.value.set && f.value.text == "" {
			return agent.Usagef("--%s is given an empty value; leave it out or name something", f.name)
		}
	}
	for _, f := range []struct {
		name   string
		values values
	}{{"allow-command", o.allowCommands}, {"add-dir", o.addDirs}} {
		for _, v := range f.values.list {
			if v == "" {
				return agent.Usagef("--%s is given an empty value; leave it out or name something", f.name)
			}
		}
	}
	if o.resume.set && o.continues {
		return agent.Usagef("--resume and --continue exclude each other")
	}
	return nil
}

func (inv *invocation) checkRuntime(o *runOptions) error {
	if !o.agent.set {
		return nil
	}
	_, _, err := inv.stored.registry.ParseToken(o.agent.text)
	return err
}

func (o *runOptions) parseWords(req *agent.Request) (err error) {
	if o.effort.set {
		if req.ReasoningEffort, err = agent.ParseEffort(o.effort.text); err != nil {
			return err
		}
	}
	if o.verbosity.set {
		if req.Verbosity, err = agent.ParseVerbosity(o.verbosity.text); err != nil {
			return err
		}
	}
	if o.access.set {
		if req.Access, err = agent.ParseAccess(o.access.text); err != nil {
			return err
		}
	}
	if o.output.set {
		_, err = agent.ParseOutputFormat(o.output.text)
	}
	return err
}

func (o *runOptions) parseNumbers(req *agent.Request) error {
	for _, f := range []struct {
		name  string
		value value
		to    *time.Duration
	}{{"timeout", o.timeout, &req.Timeout}, {"idle-timeout", o.idleTimeout, &req.IdleTimeout}} {
		if !f.value.set {
			continue
		}
		d, err := runner.ParseTimeout(f.value.text)
		if err != nil {
			return agent.Usagef("--%s: %w", f.name, err)
		}
		*f.to = d
	}
	if o.maxTurns.set {
		n, err := strconv.Atoi(o.maxTurns.text)
		if err != nil || n <= 0 {
			return agent.Usagef("--max-turns %q is not a positive number", o.maxTurns.text)
		}
		req.MaxTurns = n
	}
	return nil
}

func (inv *invocation) parsePaths(o *runOptions, req *agent.Request) error {
	if o.workdir.set {
		req.Workdir = inv.env.abs(o.workdir.text)
		if err := isDirectory(req.Workdir); err != nil {
			return agent.Usagef("--workdir %q: %w", o.workdir.text, err)
		}
		inv.workdirs = append(inv.workdirs, req.Workdir)
	}
	for _, dir := range o.addDirs.list {
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
	for _, v := range []value{o.prompt, o.text, o.template} {
		if v.set {
			given++
		}
	}
	switch {
	case given != 1:
		return "", agent.Usagef("run needs exactly one of --prompt, --text and --template")
	case len(o.vars.list) > 0 && !o.template.set:
		return "", agent.Usagef("--var needs --template; a prompt is passed on as it is")
	case o.template.set:
		source, err := inv.readInput(ctx, "--template", o.template.text)
		if err != nil {
			return "", err
		}
		text, err := renderTemplate(source, o.vars.list)
		return notEmpty(text, "the rendered template is", err)
	case o.prompt.set:
		text, err := inv.readInput(ctx, "--prompt", o.prompt.text)
		return notEmpty(text, "--prompt "+quote(o.prompt.text)+" is", err)
	}
	return notEmpty(o.text.text, "--text is", nil)
}

func notEmpty(prompt, what string, err error) (string, error) {
	if err == nil && strings.TrimSpace(prompt) == "" {
		err = agent.Usagef("%s empty; nothing was started", what)
	}
	return prompt, err
}
