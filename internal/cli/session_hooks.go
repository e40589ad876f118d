package cli

import (
	"context"
	"encoding/json"
	"strings"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/preferences"
	"github.com/busdk/bus-agent/session/control"
)

const hooksDetails = `JSON is a list; - reads it from standard input. Each of its members is told what
happens in sessions, beside the hooks of the command that starts one:
  {"file": PATH}             a line of JSON for each event is appended to the file
                             with this absolute path
  {"command": [WORD, ...]}   a program and its arguments, run for each event with
                             the line on its standard input
The events are SessionStart, SessionStop, OnMessage and OnError.`

func (o *startOptions) hookFileFlag() urfave.Flag {
	return list("hook-file", "append a line of JSON to `FILE` for each event; can be repeated", &o.hookFiles)
}

func (o *startOptions) hookCommandFlag() urfave.Flag {
	return list("hook-command", "run `COMMAND`, a program or a JSON list of it and its arguments, for each event; can be repeated", &o.hookCommands)
}

// addHooks adds the hooks that the flags name.
func (inv *invocation) addHooks(o *startOptions, s *control.Settings) error {
	for _, name := range o.hookFiles.Value() {
		if err := inv.addHook(s, "--hook-file", control.SinkSpec{File: inv.env.abs(name)}); err != nil {
			return err
		}
	}
	for _, text := range o.hookCommands.Value() {
		words := []string{text}
		if strings.HasPrefix(text, "[") {
			words = nil
			if err := json.Unmarshal([]byte(text), &words); err != nil {
				return agent.Usagef("--hook-command %q is no list of words in JSON: %w", text, err)
			}
		}
		if len(words) > 0 && strings.ContainsRune(words[0], '/') {
			words[0] = inv.env.abs(words[0])
		}
		if err := inv.addHook(s, "--hook-command", control.SinkSpec{Command: words}); err != nil {
			return err
		}
	}
	return nil
}

func (inv *invocation) addHook(s *control.Settings, flag string, spec control.SinkSpec) error {
	if err := spec.Check(); err != nil {
		return agent.Usagef("%s: %w", flag, err)
	}
	s.Hooks = append(s.Hooks, spec)
	return nil
}

// storeHooks is "set hooks".
func storeHooks(ctx context.Context, inv *invocation, args []string) error {
	text := args[0]
	if text == "-" {
		var err error
		if text, err = inv.readStdin(ctx, "hooks"); err != nil {
			return err
		}
	}
	if _, err := control.ParseSinks([]byte(text)); err != nil {
		return err
	}
	return preferences.SetDefaultHooks(ctx, json.RawMessage(text))
}
