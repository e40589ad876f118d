package run

import (
	"slices"
	"strings"
	"time"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/fallback"
	"github.com/busdk/bus-agent/internal/commands/cmdline"
	"github.com/busdk/bus-agent/internal/statefile"
	"github.com/busdk/bus-agent/runner"
)

// Options are the flags of run. Those that sessions share are exported.
type Options struct {
	agent.Request // what the flags fill in directly

	PromptFile        string
	RequireConfigured bool
	Record            RecordOptions

	positional             []string // the prompt, at most one
	text, template, schema string
	vars                   map[string]string
	attach                 []string // files
	output                 agent.OutputFormat
	dryRun                 bool

	fallback     string
	fallbackWait time.Duration // negative for none
	afterChanges bool
}

// AgentFlags choose the agent and its model.
func (o *Options) AgentFlags(prog *cmdline.Program) []urfave.Flag {
	return cmdline.Category("Agent",
		prog.Runtime("agent", "run the agent `RUNTIME`", &o.Runtime).Env("BUS_AGENT"),
		cmdline.String("model", "use `MODEL`; auto lets the runtime choose (default: auto)", &o.Model).Env("BUS_AGENT_MODEL"),
		cmdline.OneOf("model-reasoning-effort", "reasoning `EFFORT` of the model: minimal, low, medium, high or xhigh", &o.ReasoningEffort, agent.Efforts()...).Env("BUS_AGENT_MODEL_REASONING_EFFORT"),
		cmdline.OneOf("model-verbosity", "`VERBOSITY` of the model: low, medium or high", &o.Verbosity, agent.Verbosities()...).Env("BUS_AGENT_MODEL_VERBOSITY"),
		cmdline.String("append-system-prompt", "add `TEXT` to the system prompt of the agent", &o.AppendSystemPrompt).Opaque(),
		MCPFlag(prog, &o.MCPServers),
		cmdline.OneOf("user-config", "use your own settings of the CLI, `MODE`: on or off (default: by runtime)", &o.UserConfig, agent.UserConfigs()...).Env("BUS_AGENT_USER_CONFIG"),
		cmdline.Switch("require-configured", "fail when no runtime is configured, instead of using the first available", &o.RequireConfigured),
	)
}

// AccessFlags say what the agent may see and do.
func (o *Options) AccessFlags(prog *cmdline.Program) []urfave.Flag {
	return cmdline.Category("Access",
		cmdline.OneOf("access", "`ACCESS` of the agent: read (no changes), write (edit in the workdir), full (no limits) (default: write)", &o.Access, agent.Accesses()...),
		prog.Dir("workdir", "run the agent in `DIR` (default: the current directory)", &o.Workdir),
		prog.Dirs("add-dir", "let the agent work in `DIR` too", &o.AddDirs),
		cmdline.Strings("allow-tool", "offer the model only the tools that are named this way, `NAME`", &o.AllowTools),
		cmdline.Strings("deny-tool", "do not offer the model the tool `NAME`", &o.DenyTools),
		cmdline.Strings("allow-command", "let the agent run commands that match `PATTERN` without confinement", &o.AllowCommands),
		EnvFlag(&o.Env),
		TrustFlag(&o.TrustWorkspace),
		cmdline.Switch("require-agents-md", "fail if there is no AGENTS.md, or if the agent cannot get all of it", &o.RequireInstructions),
	)
}

// TrustFlag declares --trust-workspace.
func TrustFlag(trust *bool) urfave.Flag {
	return cmdline.Switch("trust-workspace", "allow hooks, MCP servers and settings of the repository", trust)
}

// MCPFlag declares --mcp.
func MCPFlag(prog *cmdline.Program, servers *[]agent.MCPServer) urfave.Flag {
	return cmdline.Func("mcp", "give the agent the tools of your MCP servers, which `FILE` describes", func(name string) error {
		data, err := statefile.ReadLinked(prog.Env.Abs(name), agent.MaxMCPBytes)
		if err != nil {
			return agent.Usagef("%s: %w", name, cmdline.Cause(err))
		}
		if *servers, err = agent.ParseMCPServers(data); err != nil {
			return agent.Usagef("%s: %w", name, err)
		}
		return nil
	}).Complete(cmdline.AnyFile)
}

// EnvFlag declares --env. Its values may be secrets, as may a value whose name was
// forgotten, so no error shows them.
func EnvFlag(entries *[]string) urfave.Flag {
	return cmdline.Func("env", "set a variable for the agent as `NAME=VALUE`", func(entry string) error {
		if name, value, ok := strings.Cut(entry, "="); !ok || name == "" || strings.ContainsRune(name+value, 0) {
			return agent.Usagef("number %d is not NAME=VALUE; it is not shown, as it may be a secret", len(*entries)+1)
		}
		*entries = append(*entries, entry)
		return nil
	}).Repeatable()
}

func (o *Options) flags(prog *cmdline.Program) []urfave.Flag {
	return slices.Concat(o.AgentFlags(prog), o.AccessFlags(prog), o.Record.Flags(),
		cmdline.Category("Record", cmdline.Switch("preamble", "tell the agent where its record is, and to write its answer there", &o.Record.preamble)),
		cmdline.Category("Agent",
			cmdline.String("resume", "continue session `ID`", &o.Resume),
			cmdline.Switch("continue", "continue the latest session in the workdir", &o.Continue),
		),
		cmdline.Category("Input",
			cmdline.File("prompt", "read the prompt from `FILE`, - for standard input", &o.PromptFile),
			cmdline.String("text", "use `TEXT` as the prompt", &o.text).Opaque(),
			cmdline.File("template", "use the template in `FILE` as the prompt, - for standard input", &o.template),
			varFlag(o.vars),
			cmdline.AttachFlag(&o.attach),
		),
		cmdline.Category("Limit",
			cmdline.Duration("timeout", "stop the agent after `DURATION`, such as 90s or 1h30m (default: 60m)", &o.Timeout).Env("BUS_AGENT_TIMEOUT"),
			cmdline.Duration("idle-timeout", "stop the agent after `DURATION` without progress (default: never)", &o.IdleTimeout),
			cmdline.Number("max-turns", "stop the agent after `N` turns of the model", 1, &o.MaxTurns),
		),
		cmdline.Category("Output",
			cmdline.OneOf("output-format", "print `OUTPUT`: text, ndjson or events (default: text)", &o.output, agent.OutputFormats()...).Env("BUS_AGENT_OUTPUT_FORMAT"),
			cmdline.File("schema", "require a JSON answer that matches the JSON Schema in `FILE`, - for standard input", &o.schema),
			cmdline.Switch("dry-run", "print what would be run and written, and do nothing", &o.dryRun),
		),
		cmdline.Category("Fallback",
			cmdline.String("fallback", "try the runtimes in `LIST`, separated by commas, if one is unavailable; or none", &o.fallback).
				Complete(func() []string { return append(prog.Stored.Registry.Tokens(), runner.NoFallback) }).Env("BUS_AGENT_FALLBACK"),
			cmdline.Switch("fallback-after-changes", "try the next runtime even when a tool may have changed something", &o.afterChanges),
			cmdline.Func("fallback-cooldown", "cooldown of a runtime that failed: `DURATION`, 0 for none (default: 15m or 5m)", o.setCooldown),
		),
	)
}

func (o *Options) setCooldown(value string) error {
	d, err := time.ParseDuration(value)
	switch {
	case err != nil || d < 0:
		return agent.Usagef("%q is not a duration such as 30s, 5m or 1h30m, and not 0", value)
	case d > fallback.MaxCooldown:
		return agent.Usagef("%q is longer than 30 days", value)
	}
	o.fallbackWait = d
	if d == 0 {
		o.fallbackWait = -1
	}
	return nil
}
