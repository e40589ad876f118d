package run

import (
	"cmp"
	"context"
	"slices"

	"github.com/busdk/bus-agent/internal/commands/cmdline"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/runner"
	"github.com/busdk/bus-agent/runs"
	"github.com/busdk/bus-agent/session/control"
)

// recordOptions are the flags that have a run recorded.
type RecordOptions struct {
	record, runsRoot, project, task, parentRun string
	preamble                                   bool
}

// The words of --record, BUS_AGENT_RECORD and the preference.
const (
	recordOff      = "off"
	recordOn       = "on"
	recordRequired = "required"
)

func RecordWords() []string { return []string{recordOff, recordOn, recordRequired} }

// envRunsRoot names the variable for --runs-root, envRecord that for --record.
const (
	envRunsRoot = "BUS_AGENT_RUNS_ROOT"
	envRecord   = "BUS_AGENT_RECORD"
)

func (o *RecordOptions) flags() []urfave.Flag {
	record := cmdline.Option("record", "keep a record of the run; with `WORD`: on, off, or required to fail where it cannot be kept", &o.record).Of(RecordWords)
	record.Bare = recordOn
	return []urfave.Flag{
		record,
		RecordsFlag(&o.runsRoot),
		cmdline.Option("project", "record it under the project `ID` (default: the name of the repository's folder)", &o.project),
		cmdline.Option("task", "record it as a run of the task `ID`, task-YYYYMMDD-HHMMSS-name (default: a new task)", &o.task),
		cmdline.Option("parent-run", "record that the run `ID` started it", &o.parentRun),
		cmdline.Toggle("preamble", "tell the agent of its record before the prompt, and to write its answer there", &o.preamble),
	}
}

func RecordsFlag(root *string) urfave.Flag {
	return cmdline.Option("runs-root", "the folder of the records is `DIR` (default: bus-agent/runs in the state folder)", root).Of(cmdline.Dirs)
}

// runsRoot returns the folder of records: what was asked for, the variable's, that
// of the recorded run in which this program runs, or the user's.
func RecordsRoot(prog *cmdline.Program, asked string) (string, error) {
	if dir := cmp.Or(asked, prog.Env.Getenv(envRunsRoot)); dir != "" {
		return prog.Env.Abs(dir), nil
	}
	if root, _, ok := runs.Outer(prog.Env.Environ); ok {
		return root, nil
	}
	return runs.DefaultRoot(prog.Env.Environ)
}

// recording returns the word that says whether a run is recorded.
func recording(prog *cmdline.Program, ctx context.Context, o *RecordOptions) (string, error) {
	word, source := o.record, "--record"
	if o.record == "" {
		word, source = prog.Env.Getenv(envRecord), envRecord
	}
	if word == "" {
		word, source = prog.Preference(ctx, runner.KeyRecord), runner.KeyRecord
	}
	if word == "" {
		return recordOff, nil
	}
	if !slices.Contains(RecordWords(), word) {
		return "", agent.Usagef("%s: %q is not on, off or required", source, word)
	}
	return word, nil
}

// recordSettings settles what the flags, the environment and the preferences say;
// nil when nothing is to be recorded.
func RecordSettings(prog *cmdline.Program, ctx context.Context, o *RecordOptions, warn func(string)) (*control.Recording, error) {
	word, err := recording(prog, ctx, o)
	if err != nil {
		return nil, err
	}
	if err := o.check(word != recordOff); err != nil || word == recordOff {
		return nil, err
	}
	root, err := RecordsRoot(prog, o.runsRoot)
	switch {
	case agent.KindOf(err) == "usage":
		return nil, err
	case err != nil && word == recordRequired:
		return nil, &cmdline.Failure{Text: "nothing was started, because the run cannot be recorded", Err: err}
	case err != nil:
		warn("the run is not recorded: " + err.Error())
		return nil, nil
	}
	return &control.Recording{
		Root: root, Required: word == recordRequired, Preamble: o.preamble,
		Labels: agent.Labels{Project: o.project, Task: o.task, Parent: o.parentRun},
	}, nil
}

// check refuses names that cannot be, and all of them where nothing is recorded.
func (o *RecordOptions) check(recorded bool) error {
	for _, f := range []struct {
		name  string
		value string
		check func(string) error
	}{{"project", o.project, runs.CheckProject}, {"task", o.task, runs.CheckTask}, {"parent-run", o.parentRun, runs.CheckRun}, {"runs-root", o.runsRoot, nil}} {
		switch {
		case f.value == "":
		case !recorded:
			return agent.Usagef("--%s needs --record; nothing was started", f.name)
		case f.check != nil:
			if err := f.check(f.value); err != nil {
				return agent.Usagef("--%s: %w", f.name, err)
			}
		}
	}
	if o.preamble && !recorded {
		return agent.Usagef("--preamble needs --record; nothing was started")
	}
	return nil
}

// addRecorder has r record what the flags ask for, beside what it records anyway.
func addRecorder(prog *cmdline.Program, ctx context.Context, r *runner.Runner, o *RecordOptions, req *agent.Request, warn func(string)) error {
	s, err := RecordSettings(prog, ctx, o, warn)
	r.Recorder = agent.Recorders(s.Recorder(), r.Recorder)
	if s != nil {
		req.Labels = s.Labels
	}
	return err
}
