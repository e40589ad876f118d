package control

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/jsonline"
	"github.com/busdk/bus-agent/runner"
)

// A SinkSpec describes a sink, as preferences and flags do. Exactly one field is
// set.
type SinkSpec struct {
	// File is the absolute path of a file, for [OpenFile].
	File string `json:"file,omitempty"`
	// Command is a program and its arguments, for [Command].
	Command []string `json:"command,omitempty"`
}

// open returns the sink. The file is opened and the program is found at once; a command
// has the environment environ.
func (s SinkSpec) open(environ []string) (Sink, error) {
	if s.File != "" {
		sink, err := OpenFile(s.File)
		if err != nil {
			return nil, fmt.Errorf("hook file: %w", err)
		}
		return sink, nil
	}
	command := Command{Argv: s.Command, Environ: environ}
	found, err := command.find()
	if err != nil {
		return nil, fmt.Errorf("hook %s: %w", command, err)
	}
	return found, nil
}

// Check returns an error if s is invalid.
func (s SinkSpec) Check() error {
	switch {
	case (s.File == "") == (len(s.Command) == 0):
		return errors.New(`a hook has either "file" or "command"`)
	case s.File != "" && !filepath.IsAbs(s.File):
		return fmt.Errorf("file %q is not an absolute path", s.File)
	case len(s.Command) > 0 && s.Command[0] == "":
		return errors.New("the command names no program")
	case len(s.Command) > 0 && strings.ContainsRune(s.Command[0], '/') && !filepath.IsAbs(s.Command[0]):
		return fmt.Errorf("program %q is neither a name nor an absolute path", s.Command[0])
	case strings.ContainsRune(s.File+strings.Join(s.Command, ""), 0):
		return errors.New("there is a NUL character in it")
	}
	return nil
}

// ParseSinks parses a list of sinks in JSON, such as
//
//	[{"file": "/home/me/events.ndjson"}, {"command": ["notify", "--agent"]}]
func ParseSinks(text []byte) ([]SinkSpec, error) {
	var list []SinkSpec
	if err := jsonline.Decode(text, &list); err != nil {
		return nil, agent.Usagef("hooks: %w", err)
	}
	for i, s := range list {
		if err := s.Check(); err != nil {
			return nil, agent.Usagef("hook %d: %w", i+1, err)
		}
	}
	return list, nil
}

// StoredSinks returns the sinks that the preference bus-agent.hooks lists, none
// where it is not set. preferences may be nil.
func StoredSinks(ctx context.Context, preferences runner.Preferences) ([]SinkSpec, error) {
	if preferences == nil {
		return nil, nil
	}
	text, ok, err := preferences.Get(ctx, runner.KeyHooks)
	if err != nil || !ok {
		return nil, err
	}
	list, err := ParseSinks(text)
	if err != nil {
		return nil, fmt.Errorf("preference %s: %w", runner.KeyHooks, err)
	}
	return list, nil
}

// openHooks opens the sinks of a session. One of own that cannot be opened is an error;
// one of shared is a warning. Without sinks the Hooks is nil.
func openHooks(ctx context.Context, environ []string, shared, own []SinkSpec, warn func(string)) (*Hooks, error) {
	var sinks []Sink
	for i, spec := range slices.Concat(shared, own) {
		sink, err := spec.open(environ)
		switch {
		case err == nil:
			sinks = append(sinks, sink)
		case i < len(shared):
			warn(err.Error())
		default:
			NewHooks(nil, sinks...).Close(ctx)
			return nil, agent.Usagef("%w", err)
		}
	}
	if len(sinks) == 0 {
		return nil, nil
	}
	return NewHooks(warn, sinks...), nil
}
