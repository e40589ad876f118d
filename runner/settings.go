package runner

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
)

// The built-in defaults of the run settings.
const (
	DefaultModel   = "auto"
	DefaultTimeout = 60 * time.Minute
)

// Settings are the run settings that have defaults.
type Settings struct {
	Model           Setting[string] // "auto" when the runtime chooses
	ReasoningEffort Setting[agent.ReasoningEffort]
	Verbosity       Setting[agent.Verbosity]
	OutputFormat    Setting[agent.OutputFormat]
	Timeout         Setting[time.Duration]
	UserConfig      Setting[agent.UserConfig] // empty for the default of the runtime
}

// Settings resolves the run settings of req for the runtime with the given ID, "" for
// none. Output is the output format of the call, "" for none. Each setting has its own
// error; see [Setting].
func (r *Runner) Settings(ctx context.Context, runtimeID string, req agent.Request, output agent.OutputFormat) Settings {
	return r.settings(r.lookup(ctx, r.warn), runtimeID, req, output)
}

func (r *Runner) settings(l *lookup, runtimeID string, req agent.Request, output agent.OutputFormat) (s Settings) {
	sources := r.sources()
	s.Model = parsed(req.Model, sources.Model, l, runtimeID, "", DefaultModel, agent.ParseModel)
	model := s.Model.Value
	s.ReasoningEffort = parsed(req.ReasoningEffort, sources.ReasoningEffort, l, runtimeID, model, "", agent.ParseEffort)
	s.Verbosity = parsed(req.Verbosity, sources.Verbosity, l, runtimeID, model, "", agent.ParseVerbosity)
	s.OutputFormat = parsed(output, sources.OutputFormat, l, runtimeID, model, agent.OutputText, agent.ParseOutputFormat)
	s.UserConfig = parsed(req.UserConfig, sources.UserConfig, l, runtimeID, model, "", agent.ParseUserConfig)
	s.Timeout = timeout(req.Timeout, sources.Timeout, l, runtimeID)
	return s
}

func timeout(call time.Duration, sources []Source, l *lookup, runtimeID string) Setting[time.Duration] {
	if call < 0 {
		return Setting[time.Duration]{Source: SourceCall, Err: agent.Usagef("timeout %v is not positive", call)}
	}
	if call > 0 {
		return Setting[time.Duration]{Value: call, Source: SourceCall}
	}
	text, source, err := l.text(sources, runtimeID, "")
	switch {
	case err != nil:
		return Setting[time.Duration]{Source: source, Err: err}
	case text == "":
		return Setting[time.Duration]{Value: DefaultTimeout, Source: SourceBuiltIn}
	}
	d, err := ParseTimeout(text)
	if err != nil {
		return Setting[time.Duration]{Source: source, Err: SourceError(source, err)}
	}
	return Setting[time.Duration]{Value: d, Source: source}
}

// ParseTimeout parses a duration such as "90s" or "60m". One that is not positive is an
// agent.ErrUsage error.
func ParseTimeout(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, agent.Usagef("%q is not a duration such as 30s, 5m or 1h30m", text)
	}
	if d <= 0 {
		return 0, agent.Usagef("timeout %s is not positive", text)
	}
	return d, nil
}

// apply puts the settings into req and checks by o that rt supports the request. An
// option that it does not support is an error; effort and verbosity are ignored
// instead, with a warning if the call set them. So is the error of a default that rt
// does not support.
func apply(req *agent.Request, s Settings, rt registry.Runtime, o registry.Options, warn func(string)) error {
	switch {
	case s.Timeout.Err != nil:
		return s.Timeout.Err
	case s.Model.Err != nil && (o.Model || s.Model.Source == SourceCall):
		return s.Model.Err
	case s.ReasoningEffort.Err != nil && (len(o.Efforts) > 0 || s.ReasoningEffort.Source == SourceCall):
		return s.ReasoningEffort.Err
	case s.Verbosity.Err != nil && (len(o.Verbosity) > 0 || s.Verbosity.Source == SourceCall):
		return s.Verbosity.Err
	case s.UserConfig.Err != nil && (rt.UserConfig.Files != nil || s.UserConfig.Source == SourceCall):
		return s.UserConfig.Err
	}
	req.Timeout = s.Timeout.Value
	req.Model = s.Model.Value
	if req.Model == DefaultModel {
		req.Model = ""
	}
	if req.Model != "" && !o.Model {
		if s.Model.Source == SourceCall {
			return cannot(rt, "be given a model")
		}
		req.Model = ""
	}
	req.ReasoningEffort = s.ReasoningEffort.Value
	if e := req.ReasoningEffort; e != "" && !slices.Contains(o.Efforts, e) {
		if s.ReasoningEffort.Source == SourceCall {
			warn(fmt.Sprintf("%s does not take model reasoning effort %q; ignoring it", rt.ID, e))
		}
		req.ReasoningEffort = ""
	}
	req.Verbosity = s.Verbosity.Value
	if v := req.Verbosity; v != "" && !slices.Contains(o.Verbosity, v) {
		if s.Verbosity.Source == SourceCall {
			warn(fmt.Sprintf("%s does not take model verbosity %q; ignoring it", rt.ID, v))
		}
		req.Verbosity = ""
	}
	req.UserConfig = s.UserConfig.Value
	if c := req.UserConfig; c != "" && !rt.UserConfig.Takes(c) {
		what := "leave out the user's configuration"
		if c == agent.UserConfigOn {
			what = "use the user's configuration"
		}
		if s.UserConfig.Source == SourceCall {
			return cannot(rt, what)
		}
		warn(fmt.Sprintf("%s cannot %s; ignoring %s", rt.ID, what, s.UserConfig.Source))
		req.UserConfig = ""
	}
	if req.Access != "" {
		if _, err := agent.ParseAccess(string(req.Access)); err != nil {
			return err
		}
		if !slices.Contains(o.Access, req.Access) {
			return cannot(rt, fmt.Sprintf("give an agent access %q", req.Access))
		}
	} else {
		req.Access = agent.AccessWrite
	}
	switch {
	case len(req.MCPServers) > 0 && !o.MCPServers:
		return cannot(rt, "be given MCP servers")
	case req.AppendSystemPrompt != "" && !o.AppendSystemPrompt:
		return cannot(rt, "be given an additional system prompt")
	case len(req.AllowTools) > 0 && !o.AllowTools:
		return cannot(rt, "limit the tools of its model to a list")
	case len(req.DenyTools) > 0 && !o.DenyTools:
		return cannot(rt, "leave out single tools")
	case len(req.AllowCommands) > 0 && !o.AllowCommands:
		return cannot(rt, "allow single commands")
	case len(req.AddDirs) > 0 && !o.AddDirs:
		return cannot(rt, "work in further directories")
	case req.Resume != "" && !o.Resume:
		return cannot(rt, "resume a session")
	case req.Resume != "" && rt.SessionUUIDs && !isUUID(req.Resume):
		return agent.Usagef("session %q is not the ID of a session of %s, which is a UUID; nothing was started", req.Resume, rt.Name)
	case req.Continue && !o.Continue:
		return cannot(rt, "continue the latest session")
	case req.MaxTurns > 0 && !o.MaxTurns:
		return cannot(rt, "limit its turns")
	}
	return nil
}

func cannot(rt registry.Runtime, what string) error {
	return &agent.Error{Kind: agent.ErrUsage, Runtime: rt.ID, Err: fmt.Errorf("%s cannot %s; nothing was started", rt.Name, what)}
}
