// Package settings has the commands that store, remove and show defaults.
package settings

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/commands/cmdline"
	"github.com/busdk/bus-agent/internal/commands/run"
	"github.com/busdk/bus-agent/preferences"
	"github.com/busdk/bus-agent/registry/described"
	"github.com/busdk/bus-agent/runner"
	"github.com/busdk/bus-agent/session/control"
	"github.com/busdk/bus-agent/session/policy"
)

// A setting is a preference that set writes and unset removes.
type setting struct {
	name      string // of the command
	key       string
	purpose   string
	arguments string
	details   string
	example   string
	// subject: the first argument is part of the key, a model or the ID of a runtime.
	subject bool
	// many: the value is one or more arguments.
	many  bool
	store func(ctx context.Context, prog *cmdline.Program, args []string) error
	// check returns what is wrong with a stored value; it is nil for a setting that has
	// other sources, because package runner checks that one.
	check func(value string) error

	// subjects and values complete the arguments; they may be nil.
	subjects, values func(*cmdline.Program) []string
}

// keyFor returns the key of the preference. subject is the first argument if the key
// has one.
func (s *setting) keyFor(subject string) string {
	switch {
	case !s.subject:
		return s.key
	case s.key == runner.KeyRuntimes:
		return s.key + "." + subject
	}
	return runner.KeyForModel(s.key, subject)
}

// complete returns the values of the argument after those in done.
func (s *setting) complete(prog *cmdline.Program, done []string) []string {
	list, at := s.values, len(done)
	if s.subject {
		if at--; at < 0 {
			list, at = s.subjects, 0
		}
	}
	if list == nil || at > 0 && !s.many {
		return nil
	}
	return list(prog)
}

func settings() []setting {
	efforts, verbosities := words(agent.Efforts()), words(agent.Verbosities())
	return []setting{
		{
			name: "runtime", key: runner.KeyRuntime, purpose: "the runtime to use when no flag or variable names one",
			arguments: "RUNTIME", example: "RUNTIME", values: tokens,
			store: func(ctx context.Context, prog *cmdline.Program, args []string) error {
				if err := prog.CheckRuntime(args[0]); err != nil {
					return err
				}
				return preferences.SetDefaultRuntime(ctx, args[0])
			},
		},
		{
			name: "model", key: runner.KeyModel, purpose: "the model; auto lets the runtime choose",
			arguments: "MODEL", example: "auto", values: words([]string{runner.DefaultModel}), store: onlyArgument(preferences.SetDefaultModel),
		},
		{
			name: "model-reasoning-effort", key: runner.KeyReasoningEffort, purpose: "the reasoning effort of models",
			arguments: "minimal|low|medium|high|xhigh", example: "high", values: efforts, store: onlyArgument(preferences.SetDefaultReasoningEffort),
		},
		{
			name: "model-verbosity", key: runner.KeyVerbosity, purpose: "the verbosity of models",
			arguments: "low|medium|high", example: "low", values: verbosities, store: onlyArgument(preferences.SetDefaultVerbosity),
		},
		{
			name: "model-reasoning-effort-for-model", key: runner.KeyReasoningEffortForModel, purpose: "the reasoning effort of one model",
			arguments: "MODEL minimal|low|medium|high|xhigh", subject: true, example: "gpt-5.5 high", values: efforts,
			store: forModel(preferences.SetDefaultReasoningEffortForModel), check: parses(agent.ParseEffort),
		},
		{
			name: "model-verbosity-for-model", key: runner.KeyVerbosityForModel, purpose: "the verbosity of one model",
			arguments: "MODEL low|medium|high", subject: true, example: "gpt-5.5 low", values: verbosities,
			store: forModel(preferences.SetDefaultVerbosityForModel), check: parses(agent.ParseVerbosity),
		},
		{
			name: "user-config", key: runner.KeyUserConfig, purpose: "whether agents use your own configuration of their CLIs",
			arguments: "on|off", example: "on", values: words(agent.UserConfigs()), store: onlyArgument(preferences.SetDefaultUserConfig),
		},
		{
			name: "user-config-for-runtime", key: runner.KeyUserConfigForRuntime, purpose: "whether one runtime uses your own configuration of its CLI",
			arguments: "RUNTIME on|off", subject: true, example: "RUNTIME on", values: words(agent.UserConfigs()),
			subjects: ids, check: parses(agent.ParseUserConfig),
			store: func(ctx context.Context, prog *cmdline.Program, args []string) error {
				id, err := withoutVariant(prog, args[0])
				if err != nil {
					return err
				}
				return preferences.SetDefaultUserConfigForRuntime(ctx, id, agent.UserConfig(args[1]))
			},
		},
		{
			name: "output-format", key: runner.KeyOutputFormat, purpose: "what run prints",
			arguments: "text|ndjson|events", example: "events", values: words(agent.OutputFormats()), store: onlyArgument(preferences.SetDefaultOutputFormat),
		},
		{
			name: "timeout", key: runner.KeyTimeout, purpose: "how long a run may take",
			arguments: "DURATION", example: "30m",
			store: func(ctx context.Context, _ *cmdline.Program, args []string) error {
				d, err := runner.ParseTimeout(args[0])
				if err != nil {
					return err
				}
				return preferences.SetDefaultTimeout(ctx, d)
			},
		},
		idList("order", runner.KeyOrder, "the order in which runtimes are considered", preferences.SetDefaultOrder),
		idList("enable", runner.KeyEnable, "the list of runtimes that may be used", preferences.SetDefaultEnable),
		idList("disable", runner.KeyDisable, "the list of runtimes that may not be used; overrides enable", preferences.SetDefaultDisable),
		{
			name: "record", key: runner.KeyRecord, purpose: "whether runs are recorded",
			arguments: "off|on|required", example: "on", values: words(run.RecordModes()), store: onlyArgument(preferences.SetDefaultRecord),
		},
		{
			name: "fallback", key: runner.KeyFallback, purpose: "the runtimes that run tries when the first is unavailable",
			arguments: "RUNTIME...", many: true, example: "RUNTIME", values: tokens,
			details: "The runtimes are tried in this order. Separate them by spaces or commas.",
			store: func(ctx context.Context, prog *cmdline.Program, args []string) error {
				list := splitList(args)
				for _, token := range list {
					if err := prog.CheckRuntime(token); err != nil {
						return err
					}
				}
				return preferences.SetDefaultFallback(ctx, list)
			},
		},
		{
			name: "hooks", key: runner.KeyHooks, purpose: "hooks that are notified of the events of sessions",
			arguments: "JSON", example: `'[{"file":"/var/log/agents.ndjson"},{"command":["notify","agent"]}]'`,
			details: hooksDetails, check: parses(func(value string) ([]control.SinkSpec, error) { return control.ParseSinks([]byte(value)) }),
			store: func(ctx context.Context, prog *cmdline.Program, args []string) error {
				text, err := argumentOrStdin(ctx, prog, args[0], "hooks")
				if err != nil {
					return err
				}
				if _, err := control.ParseSinks([]byte(text)); err != nil {
					return agent.Usagef("set %w; nothing was stored", err)
				}
				return preferences.SetDefaultHooks(ctx, json.RawMessage(text))
			},
		},
		{
			name: "policy", key: runner.KeyPolicy, purpose: "the rules that answer approval requests of sessions",
			arguments: "JSON", example: `'{"rules":[{"command":["go","test"],"decision":"accept"}]}'`,
			details: policyDetails, check: parses(func(value string) (*policy.Policy, error) { return policy.Parse([]byte(value)) }),
			store: func(ctx context.Context, prog *cmdline.Program, args []string) error {
				text, err := argumentOrStdin(ctx, prog, args[0], "policy")
				if err != nil {
					return err
				}
				if _, err := policy.Parse([]byte(text)); err != nil {
					return agent.Usagef("set %w; nothing was stored", err)
				}
				return preferences.SetDefaultPolicy(ctx, json.RawMessage(text))
			},
		},
		{
			name: "mcp", key: runner.KeyMCP, purpose: "your MCP servers, for agents that can be given some",
			arguments: "JSON", example: `'{"mcpServers":{"notes":{"command":"notes-mcp"}}}'`,
			details: mcpDetails, check: parses(storedServers),
			store: func(ctx context.Context, prog *cmdline.Program, args []string) error {
				text, err := argumentOrStdin(ctx, prog, args[0], "description of MCP servers")
				if err != nil {
					return err
				}
				if _, err := storedServers(text); err != nil {
					return agent.Usagef("set mcp: %w; nothing was stored", err)
				}
				return preferences.SetDefaultMCPServers(ctx, json.RawMessage(text))
			},
		},
		{
			name: "runtime-definition", key: runner.KeyRuntimes, purpose: "a runtime described in JSON",
			arguments: "ID JSON", subject: true, example: `mine '{"executables":["mine"],"install_url":"https://m.example"}'`,
			details:  definitionDetails,
			subjects: func(prog *cmdline.Program) []string { return prog.Stored.DescribedIDs() },
			store: func(ctx context.Context, prog *cmdline.Program, args []string) error {
				text, err := argumentOrStdin(ctx, prog, args[1], "definition of runtime "+args[0])
				if err != nil {
					return err
				}
				// Other stored descriptions do not count: this one may replace any.
				if _, err := described.Runtime(args[0], []byte(text), prog.BuiltIn()); err != nil {
					return err
				}
				return preferences.SetRuntimeDefinition(ctx, args[0], json.RawMessage(text))
			},
		},
	}
}

const hooksDetails = `JSON is a list of hooks, or - to read the list from standard input. These hooks are
notified of the events of every session. Flags of "session start" add hooks for one
session. A hook is one of:
  {"file": PATH}            append a line of JSON for each event to the file PATH,
                            an absolute path
  {"command": [ARG, ...]}   run a program with arguments for each event, with the
                            line of JSON on its standard input
The events are SessionStart, SessionStop, OnMessage and OnError.`

const mcpDetails = `JSON is one object, or - to read it from standard input, in the form of --mcp, which
replaces it for one run or session. Give a secret as ${NAME}: the variable NAME is read
when an agent starts.`

// storedServers reads MCP servers and refuses values that must not be stored.
func storedServers(text string) ([]agent.MCPServer, error) {
	servers, err := agent.ParseMCPServers([]byte(text))
	if err != nil {
		return nil, err
	}
	for _, entry := range agent.MCPSecrets(servers) {
		name, value, _ := strings.Cut(entry, "=")
		if runner.NewMasker([]string{name + "=a long value"}) != nil && !strings.Contains(value, "${") {
			return nil, agent.Usagef("the values of headers, variables named like secrets and passwords of URLs are not stored: give each as ${NAME}, for a variable that is set when agents start")
		}
	}
	return servers, nil
}

const policyDetails = `JSON is one object, or - to read it from standard input. --policy of "session start",
"chat" and "acp" replaces it. The members of the object:
  rules    a list of objects: decision (accept, decline, ask) and what the rule
           is for, all optional: kind (read, edit, delete, execute, fetch,
           other); path, a file, a folder that ends in /, or a pattern with *
           and **; or command, the first words of a command as a list
  default  the decision without a rule: ask (the default) or decline
The most specific rule decides: docs/sessions.md explains which that is.`

const definitionDetails = `JSON is one object, or - to read it from standard input. The runtime ID can then be used
like a built-in one. The members of the object:
  executables     names of its executable, tried in order; required
  install_url     where to get it; required
  name            its display name (default: ID)
  token_env       names of variables that can hold a credential
  args            arguments in order. Each is a string, or a list of strings that
                  are kept or left out together. {model} {resume} {workdir}
                  {access} {effort} {continue} {home} {idle-timeout} {prompt}
                  {prompt-file} {system-prompt} {mcp-file} {allow-tools}
                  {deny-tools} are replaced with their values; an argument is
                  left out if one of them has no value
  prompt          how the program gets the prompt: stdin (the default), argument
                  ({prompt}, after an argument "--") or file ({prompt-file})
  output          text (the default), ndjson:RUNTIME for the output of a built-in
                  runtime, or acp if the program speaks the Agent Client
                  Protocol and supports sessions, but not runs
  access          for each of read, write and full that it supports, the
                  arguments for {access}, or an object: args; env, variables;
                  files, of its home; in sessions mode, the ID of a mode, and
                  accept_edits (default: write only, nothing to set)
  efforts         for each reasoning effort that it supports, the arguments for
                  {effort}, or an object: args, env, files; in sessions option,
                  the value of the program's option for the effort
  continue        the arguments for {continue}
  acp             sessions by the Agent Client Protocol: args; access and efforts
                  if they differ; authenticate, the ID of a login method; meta, an
                  object for what only the agent knows; models,
                  true if the model is set by the protocol
  failures        a list of objects: kind (authentication, quota, idle_timeout)
                  and what shows it: exit_codes, contains (texts in the error),
                  answers (beginnings of answers that are not the model's)
  silence_fails   true when a run without text and tool calls has failed
  instructions    how the program gets AGENTS.md: prompt (in front of the prompt,
                  the default), native (it reads the file itself) or none
  slash_commands  true when a leading "/" of a prompt would be a command
  executed        files in the workdir or above that the program would run or
                  take settings from, such as .env; if one exists, a run
                  needs --trust-workspace
  reads           files that the program reads by itself, such as MINE.md or
                  .mine/skills/*/SKILL.md; a run is refused if one is a link
                  out of the repository or not a regular file
  home            a private home for each start: env, the variable with its path;
                  folder, the user's own below HOME; logins, files of it to link;
                  files, contents of others; sessions, patterns of the files
                  to keep for resuming
  env             variables to set, null to remove one; do not put secrets here`

// idList is a setting whose value is a list of runtimes without variants.
func idList(name, key, purpose string, set func(context.Context, []string) error) setting {
	return setting{
		name: name, key: key, purpose: purpose,
		arguments: "RUNTIME...", many: true, example: "RUNTIME",
		details: "Separate the runtimes by spaces or commas. Name them without a variant.",
		values:  ids,
		store: func(ctx context.Context, prog *cmdline.Program, args []string) error {
			list := splitList(args)
			for _, id := range list {
				if _, err := withoutVariant(prog, id); err != nil {
					return err
				}
			}
			return set(ctx, list)
		},
	}
}

// ids returns the IDs of all runtimes.
func ids(prog *cmdline.Program) (ids []string) {
	for _, rt := range prog.Stored.Registry.All() {
		ids = append(ids, rt.ID)
	}
	return ids
}

// withoutVariant returns id if it is that of a runtime.
func withoutVariant(prog *cmdline.Program, id string) (string, error) {
	if err := prog.CheckRuntime(id); err != nil {
		return "", err
	}
	if base, _, variant := strings.Cut(id, ":"); variant {
		return "", agent.Usagef("runtime %q is a variant; name %s alone", id, base)
	}
	return id, nil
}

func splitList(args []string) []string { return strings.Split(strings.Join(args, ","), ",") }

func argumentOrStdin(ctx context.Context, prog *cmdline.Program, arg, what string) (string, error) {
	if arg == "-" {
		return prog.ReadStdin(ctx, what)
	}
	return arg, nil
}

func tokens(prog *cmdline.Program) []string { return prog.Stored.Registry.Tokens() }

func words[T ~string](list []T) func(*cmdline.Program) []string {
	return func(*cmdline.Program) []string {
		out := make([]string, len(list))
		for i, w := range list {
			out[i] = string(w)
		}
		return out
	}
}

// onlyArgument stores the only argument.
func onlyArgument[T ~string](set func(context.Context, T) error) func(context.Context, *cmdline.Program, []string) error {
	return func(ctx context.Context, _ *cmdline.Program, args []string) error { return set(ctx, T(args[0])) }
}

// parses returns a check of values that parse accepts.
func parses[T any](parse func(string) (T, error)) func(string) error {
	return func(value string) error {
		_, err := parse(value)
		return err
	}
}

// forModel stores the second argument for the model that the first one names.
func forModel[T ~string](set func(context.Context, string, T) error) func(context.Context, *cmdline.Program, []string) error {
	return func(ctx context.Context, _ *cmdline.Program, args []string) error {
		return set(ctx, args[0], T(args[1]))
	}
}
