package settings

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/busdk/bus-agent/internal/commands/cmdline"
	"github.com/busdk/bus-agent/internal/commands/run"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/preferences"
	"github.com/busdk/bus-agent/registry/described"
	"github.com/busdk/bus-agent/runner"
	"github.com/busdk/bus-agent/session/control"
)

// setting is a preference that set writes and unset removes.
type setting struct {
	name      string // of the command
	key       string
	purpose   string
	arguments string
	// subject says that the first argument is part of the key: a model or the
	// ID of a runtime.
	subject bool
	details string
	example string
	words   func(prog *cmdline.Program, done []string) []string
	store   func(ctx context.Context, prog *cmdline.Program, args []string) error
}

// keyFor returns the key of the preference; subject is the first argument
// where the key has one.
func (s *setting) keyFor(subject string) string {
	switch {
	case !s.subject:
		return s.key
	case s.key == runner.KeyRuntimes:
		return s.key + "." + subject
	}
	return runner.KeyForModel(s.key, subject)
}

func settings() []setting {
	return []setting{
		{
			name: "runtime", key: runner.KeyRuntime, purpose: "the runtime that runs when nothing else names one",
			arguments: "RUNTIME", example: "RUNTIME",
			words: first(func(prog *cmdline.Program) []string { return prog.Stored.Registry.Tokens() }),
			store: func(ctx context.Context, prog *cmdline.Program, args []string) error {
				if _, _, err := prog.Stored.Registry.ParseToken(args[0]); err != nil {
					return err
				}
				return preferences.SetDefaultRuntime(ctx, args[0])
			},
		},
		{
			name: "model", key: runner.KeyModel, purpose: "the model; auto leaves the choice to the runtime",
			arguments: "MODEL", example: "auto",
			words: first(func(*cmdline.Program) []string { return []string{runner.DefaultModel} }),
			store: func(ctx context.Context, _ *cmdline.Program, args []string) error {
				return preferences.SetDefaultModel(ctx, args[0])
			},
		},
		{
			name: "model-reasoning-effort", key: runner.KeyReasoningEffort, purpose: "how much the model thinks",
			arguments: "minimal|low|medium|high|xhigh", example: "high",
			words: first(func(*cmdline.Program) []string { return cmdline.Words(agent.Efforts()...)() }),
			store: func(ctx context.Context, _ *cmdline.Program, args []string) error {
				return preferences.SetDefaultReasoningEffort(ctx, agent.ReasoningEffort(args[0]))
			},
		},
		{
			name: "model-verbosity", key: runner.KeyVerbosity, purpose: "how much the model writes",
			arguments: "low|medium|high", example: "low",
			words: first(func(*cmdline.Program) []string { return cmdline.Words(agent.Verbosities()...)() }),
			store: func(ctx context.Context, _ *cmdline.Program, args []string) error {
				return preferences.SetDefaultVerbosity(ctx, agent.Verbosity(args[0]))
			},
		},
		{
			name: "model-reasoning-effort-for-model", key: runner.KeyReasoningEffortForModel, purpose: "how much one model thinks",
			arguments: "MODEL minimal|low|medium|high|xhigh", subject: true, example: "gpt-5.5 high",
			words: second(func(*cmdline.Program) []string { return cmdline.Words(agent.Efforts()...)() }),
			store: func(ctx context.Context, _ *cmdline.Program, args []string) error {
				return preferences.SetDefaultReasoningEffortForModel(ctx, args[0], agent.ReasoningEffort(args[1]))
			},
		},
		{
			name: "model-verbosity-for-model", key: runner.KeyVerbosityForModel, purpose: "how much one model writes",
			arguments: "MODEL low|medium|high", subject: true, example: "gpt-5.5 low",
			words: second(func(*cmdline.Program) []string { return cmdline.Words(agent.Verbosities()...)() }),
			store: func(ctx context.Context, _ *cmdline.Program, args []string) error {
				return preferences.SetDefaultVerbosityForModel(ctx, args[0], agent.Verbosity(args[1]))
			},
		},
		{
			name: "output-format", key: runner.KeyOutputFormat, purpose: "what run prints",
			arguments: "text|ndjson|events", example: "events",
			words: first(func(*cmdline.Program) []string { return cmdline.Words(agent.OutputFormats()...)() }),
			store: func(ctx context.Context, _ *cmdline.Program, args []string) error {
				return preferences.SetDefaultOutputFormat(ctx, agent.OutputFormat(args[0]))
			},
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
		listSetting("order", runner.KeyOrder, "the order in which runtimes are considered", preferences.SetDefaultOrder),
		listSetting("enable", runner.KeyEnable, "the only runtimes that may be used", preferences.SetDefaultEnable),
		listSetting("disable", runner.KeyDisable, "runtimes that may not be used; wins over enable", preferences.SetDefaultDisable),
		{
			name: "record", key: runner.KeyRecord, purpose: "whether runs are recorded",
			arguments: "off|on|required", example: "on",
			words: first(func(*cmdline.Program) []string { return run.RecordWords() }),
			store: func(ctx context.Context, _ *cmdline.Program, args []string) error {
				return preferences.SetDefaultRecord(ctx, args[0])
			},
		},
		fallbackSetting(),
		{
			name: "hooks", key: runner.KeyHooks, purpose: "who is told what happens in sessions",
			arguments: "JSON", example: `'[{"file":"/var/log/agents.ndjson"},{"command":["notify","agent"]}]'`,
			details: hooksDetails,
			store:   storeHooks,
		},
		{
			name: "runtime-definition", key: runner.KeyRuntimes, purpose: "a runtime described in JSON",
			arguments: "ID JSON", subject: true, example: `mine '{"executables":["mine"],"install_url":"https://example.com"}'`,
			details: definitionDetails,
			words:   first(func(prog *cmdline.Program) []string { return prog.Stored.DescribedIDs() }),
			store:   setRuntimeDefinition,
		},
	}
}

const definitionDetails = `JSON is one object; - reads it from standard input. ID is then a runtime like
those built in. Its members:
  executables     names of its program, tried in order; required
  install_url     where to get it; required
  name            its name for people (default: ID)
  token_env       names of variables a credential can come from
  args            arguments in order, each a string, or a list of strings that
                  stand or fall together. {model} {resume} {workdir} {access}
                  {prompt} {prompt-file} are replaced; an argument is left out
                  when there is no value for what it holds
  prompt          how the prompt arrives: stdin (the default), argument ({prompt},
                  after an argument "--") or file ({prompt-file})
  output          text (the default), ndjson:RUNTIME to read it as that of a
                  runtime that is built in, or acp where the program speaks the
                  Agent Client Protocol: then it holds sessions and does not run
  access          for each of read, write and full that it honours, the arguments
                  {access} stands for (default: write alone, without arguments)
  instructions    how AGENTS.md arrives: prompt (before it, the default), native
                  (the program reads it itself) or none
  slash_commands  true when a leading "/" of a prompt would be a command
  executed        files that the program would run or take settings from, in the
                  workdir or above it, such as .env; a run is refused where there
                  is one, unless with --trust-workspace
  reads           files that the program reads by itself, such as MINE.md or
                  .mine/skills/*/SKILL.md; a run is refused where one is a link
                  out of the repository or cannot be read without waiting
  env             variables to set, null to remove one; no place for secrets`

func listSetting(name, key, purpose string, set func(context.Context, []string) error) setting {
	return setting{
		name: name, key: key, purpose: purpose,
		arguments: "RUNTIME...", example: "RUNTIME",
		details: "The runtimes are separated by spaces or commas. Name them without a variant.",
		words: func(prog *cmdline.Program, _ []string) []string {
			var ids []string
			for _, rt := range prog.Stored.Registry.All() {
				ids = append(ids, rt.ID)
			}
			return ids
		},
		store: func(ctx context.Context, prog *cmdline.Program, args []string) error {
			var ids []string
			for _, arg := range args {
				for id := range strings.SplitSeq(arg, ",") {
					if _, ok := prog.Stored.Registry.Lookup(id); !ok {
						return unknownID(prog, id)
					}
					ids = append(ids, id)
				}
			}
			return set(ctx, ids)
		},
	}
}

// unknownID is the error of an ID that a list cannot have.
func unknownID(prog *cmdline.Program, id string) error {
	if _, _, err := prog.Stored.Registry.ParseToken(id); err != nil {
		return err
	}
	base, _, _ := strings.Cut(id, ":")
	return agent.Usagef("runtime %q is a variant; name %s alone", id, base)
}

func setRuntimeDefinition(ctx context.Context, prog *cmdline.Program, args []string) error {
	id, definition := args[0], args[1]
	if definition == "-" {
		var err error
		if definition, err = prog.ReadStdin(ctx, "definition of runtime "+id); err != nil {
			return err
		}
	}
	// Of the other descriptions none counts: this one may replace any.
	if _, err := described.Runtime(id, []byte(definition), prog.Env.BaseRegistry()); err != nil {
		return err
	}
	return preferences.SetRuntimeDefinition(ctx, id, json.RawMessage(definition))
}

func first(list func(*cmdline.Program) []string) func(*cmdline.Program, []string) []string {
	return nth(0, list)
}

func second(list func(*cmdline.Program) []string) func(*cmdline.Program, []string) []string {
	return nth(1, list)
}

func nth(n int, list func(*cmdline.Program) []string) func(*cmdline.Program, []string) []string {
	return func(prog *cmdline.Program, done []string) []string {
		if len(done) != n {
			return nil
		}
		return list(prog)
	}
}

func SetCommand(prog *cmdline.Program) *urfave.Command {
	c := &urfave.Command{
		Name:  "set",
		Usage: "store a default",
		Description: `Defaults are kept in your BusDK preferences. They hold until a flag or an
environment variable says otherwise; "config show" tells what is in effect.`,
		UsageText: cmdline.UsageText(`# run a certain agent by default
bus-agent set runtime RUNTIME
# give a run half an hour
bus-agent set timeout 30m`,
			"the default was stored", "the preferences cannot be written"),
		Action: prog.Group,
	}
	for _, s := range settings() {
		c.Subcommands = append(c.Subcommands, &urfave.Command{
			Name:        s.name,
			Usage:       "store " + s.purpose,
			ArgsUsage:   s.arguments,
			Description: strings.TrimSpace("Writes the preference " + s.keyPattern() + ".\n" + s.details),
			UsageText: cmdline.UsageText(`# for example
bus-agent set `+s.name+` `+s.example+`
# back to the built-in default
bus-agent unset `+s.unsetExample(),
				"the default was stored", "the preferences cannot be written"),
			BashComplete: cmdline.Completes(func(done []string) []string {
				if s.words == nil {
					return nil
				}
				return s.words(prog, done)
			}),
			Action: prog.Action(cmdline.Slow, func(ctx context.Context, call cmdline.Call) error {
				return s.store(ctx, prog, call.Args)
			}),
		})
	}
	return c
}

func (s *setting) keyPattern() string {
	switch {
	case !s.subject:
		return s.key
	case s.key == runner.KeyRuntimes:
		return s.key + ".ID"
	}
	return s.key + ".MODEL"
}

func (s *setting) unsetExample() string {
	if subject, _, ok := strings.Cut(s.example, " "); ok && s.subject {
		return s.name + " " + subject
	}
	return s.name
}

func fallbackSetting() setting {
	return setting{
		name: "fallback", key: runner.KeyFallback, purpose: "the runtimes that run tries where the first cannot work now",
		arguments: "RUNTIME...", example: "RUNTIME",
		details: "The runtimes are tried in this order. They are separated by spaces or commas.",
		words:   func(prog *cmdline.Program, _ []string) []string { return prog.Stored.Registry.Tokens() },
		store: func(ctx context.Context, prog *cmdline.Program, args []string) error {
			var tokens []string
			for _, arg := range args {
				for token := range strings.SplitSeq(arg, ",") {
					if _, _, err := prog.Stored.Registry.ParseToken(token); err != nil {
						return err
					}
					tokens = append(tokens, token)
				}
			}
			return preferences.SetDefaultFallback(ctx, tokens)
		},
	}
}

const hooksDetails = `JSON is a list; - reads it from standard input. Each of its members is told what
happens in sessions, beside the hooks of the command that starts one:
  {"file": PATH}             a line of JSON for each event is appended to the file
                             with this absolute path
  {"command": [WORD, ...]}   a program and its arguments, run for each event with
                             the line on its standard input
The events are SessionStart, SessionStop, OnMessage and OnError.`

// storeHooks is "set hooks".
func storeHooks(ctx context.Context, prog *cmdline.Program, args []string) error {
	text := args[0]
	if text == "-" {
		var err error
		if text, err = prog.ReadStdin(ctx, "hooks"); err != nil {
			return err
		}
	}
	if _, err := control.ParseSinks([]byte(text)); err != nil {
		return err
	}
	return preferences.SetDefaultHooks(ctx, json.RawMessage(text))
}
