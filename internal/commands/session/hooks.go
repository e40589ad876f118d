package session

import (
	"encoding/json"
	"strings"

	"github.com/busdk/bus-agent/internal/commands/cmdline"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session/control"
)

func (o *startOptions) hookFileFlag() urfave.Flag {
	return cmdline.List("hook-file", "append a line of JSON to `FILE` for each event; can be repeated", &o.hookFiles)
}

func (o *startOptions) hookCommandFlag() urfave.Flag {
	return cmdline.List("hook-command", "run `COMMAND`, a program or a JSON list of it and its arguments, for each event; can be repeated", &o.hookCommands)
}

// addHooks adds the hooks that the flags name.
func addHooks(prog *cmdline.Program, o *startOptions, s *control.Settings) error {
	for _, name := range o.hookFiles.Value() {
		if err := addHook(prog, s, "--hook-file", control.SinkSpec{File: prog.Env.Abs(name)}); err != nil {
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
			words[0] = prog.Env.Abs(words[0])
		}
		if err := addHook(prog, s, "--hook-command", control.SinkSpec{Command: words}); err != nil {
			return err
		}
	}
	return nil
}

func addHook(prog *cmdline.Program, s *control.Settings, flag string, spec control.SinkSpec) error {
	if err := spec.Check(); err != nil {
		return agent.Usagef("%s: %w", flag, err)
	}
	s.Hooks = append(s.Hooks, spec)
	return nil
}
