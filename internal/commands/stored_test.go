package commands_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/internal/commands"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/runner"
)

// file is a source of preferences that counts how often it is read.
type file struct {
	reads int
	err   error
}

func (f *file) Get(context.Context, string) (json.RawMessage, bool, error) {
	f.reads++
	return nil, false, f.err
}

func (f *file) Snapshot(context.Context) (runner.Preferences, error) {
	f.reads++
	return content{}, f.err
}

// content describes one runtime, and one wrongly.
type content struct{}

func (content) Get(context.Context, string) (json.RawMessage, bool, error) { return nil, false, nil }

func (content) Runtimes() map[string]json.RawMessage {
	return map[string]json.RawMessage{"mine": nil, "broken": nil}
}

func (content) Registry(base *registry.Registry) (*registry.Registry, []string) {
	all := base.Clone()
	if err := all.Register(plain("mine")); err != nil {
		return base, []string{err.Error()}
	}
	all.Refuse("broken", errors.New("it is broken"))
	return all, []string{"broken is left out"}
}

func TestPreferencesAreReadOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args     string
		err      error
		out      string
		warnings string
	}{
		{args: "detect", warnings: "bus-agent: broken is left out\n"},
		{args: "detect", err: errors.New("unreadable"), warnings: "bus-agent: preferences cannot be read; ignoring them: unreadable\n"},
		{args: "format", warnings: "bus-agent: broken is left out\n"},
		{args: "__complete run --agent m", out: "mine\nmine:local\n"},
		{args: "__complete unset runtime-definition ", out: "broken\nmine\n"},
		{args: "__complete set runtime-definition b", out: "broken\n"},
	} {
		t.Run(c.args, func(t *testing.T) {
			t.Parallel()
			f := &file{err: c.err}
			var out, errs bytes.Buffer
			code := commands.Main(t.Context(), &commands.Env{
				Args: strings.Split(c.args, " "), Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs,
				Environ: []string{"PATH="}, Dir: t.TempDir(), Registry: new(registry.Registry), Preferences: f,
			})
			if code != 0 || f.reads != 1 || out.String() != c.out {
				t.Errorf("exit code %d, %d reads, %q; want 0, 1, %q", code, f.reads, out.String(), c.out)
			}
			if c.warnings == "" && errs.Len() > 0 || strings.Count(errs.String(), c.warnings) != 1 && c.warnings != "" {
				t.Errorf("standard error is %q, want %q once", errs.String(), c.warnings)
			}
		})
	}
}
