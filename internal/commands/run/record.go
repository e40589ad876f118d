package run

import (
	"context"

	"github.com/busdk/bus-agent/internal/commands/cmdline"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/preferences"
	"github.com/busdk/bus-agent/runner"
	"github.com/busdk/bus-agent/runs"
	"github.com/busdk/bus-agent/session/control"
)

// RecordOptions are the flags that have runs and sessions recorded.
type RecordOptions struct {
	mode, root string
	labels     agent.Labels
	preamble   bool
}

// The values of --record, BUS_AGENT_RECORD and the preference.
const (
	recordOff      = "off"
	recordOn       = "on"
	recordRequired = "required"
)

// RecordModes returns the values that --record can have.
func RecordModes() []string { return []string{recordOff, recordOn, recordRequired} }

// envRecord is the variable for --record.
const envRecord = "BUS_AGENT_RECORD"

// Flags declares the flags that runs and sessions share.
func (o *RecordOptions) Flags() []urfave.Flag {
	return cmdline.Category("Record",
		cmdline.OneOf("record", "record the run: `WHEN` is on, off, or required (fail if it cannot be recorded)", &o.mode, RecordModes()...).
			Optional(recordOn).Env(envRecord),
		RootFlag(&o.root),
		labelFlag("project", "record the run under project `ID` (default: the name of the repository's folder)", &o.labels.Project, runs.CheckProject),
		labelFlag("task", "record the run under task `ID`, such as task-001 (default: a new task)", &o.labels.Task, runs.CheckTask),
		labelFlag("parent-run", "record that run `ID` started this one", &o.labels.Parent, runs.CheckRun),
	)
}

func labelFlag(name, usage string, to *string, check func(string) error) urfave.Flag {
	return cmdline.Func(name, usage, func(value string) error {
		*to = value
		return check(value)
	})
}

// RootFlag declares --runs-root.
func RootFlag(root *string) urfave.Flag {
	return cmdline.File("runs-root", "use the records in `DIR` (default: bus-agent/runs in the state folder)", root).Env(cmdline.EnvRunsRoot)
}

// Root returns the folder that --runs-root names, "" for none.
func (o *RecordOptions) Root() string { return o.root }

// when returns whether runs are recorded: by the flag, or else the environment or the
// preferences.
func (o *RecordOptions) when(ctx context.Context, prog *cmdline.Program) (string, error) {
	if o.mode != "" {
		return o.mode, nil
	}
	mode := RecordSetting(ctx, prog)
	return mode.Value, mode.Err
}

// RecordSources returns the sources of whether runs are recorded; the first that is set
// wins.
func RecordSources() []runner.Source {
	return []runner.Source{{Env: envRecord}, {Key: runner.KeyRecord}}
}

// RecordSetting returns whether runs without --record are recorded.
func RecordSetting(ctx context.Context, prog *cmdline.Program) runner.Setting[string] {
	for _, source := range RecordSources() {
		mode := prog.SourceText(ctx, source)
		if mode == "" {
			continue
		}
		if _, err := preferences.ParseRecord(mode); err != nil {
			return runner.Setting[string]{Source: source.String(), Err: runner.SourceError(source.String(), err)}
		}
		return runner.Setting[string]{Value: mode, Source: source.String()}
	}
	return runner.Setting[string]{Value: recordOff, Source: runner.SourceBuiltIn}
}

// Settings returns how to record a run or session, nil for not at all.
func (o *RecordOptions) Settings(ctx context.Context, prog *cmdline.Program, warn func(string)) (*control.RecordSettings, error) {
	mode, err := o.when(ctx, prog)
	switch {
	case err != nil:
		return nil, err
	case mode == recordOff && (o.root != "" || o.preamble || o.labels != agent.Labels{}):
		return nil, cmdline.Misusef("--runs-root, --project, --task, --parent-run and --preamble need --record; nothing was started")
	case mode == recordOff:
		return nil, nil
	}
	root, err := prog.RunsRoot(o.root)
	switch {
	case agent.KindOf(err) == "usage":
		return nil, err
	case err != nil && mode == recordRequired:
		return nil, &cmdline.Failure{Text: "nothing was started, because the run cannot be recorded", Err: err}
	case err != nil:
		warn("the run is not recorded: " + err.Error())
		return nil, nil
	}
	return &control.RecordSettings{Root: root, Required: mode == recordRequired, Preamble: o.preamble, Labels: o.labels}, nil
}
