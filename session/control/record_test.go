package control_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/runs"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/control"
)

// An agent that does not start leaves the same record, whichever call was to start it.
func TestAgentThatDoesNotStartIsRecorded(t *testing.T) {
	t.Parallel()
	causes := map[string]struct {
		change func(b *bench) error // of the executable
		kind   string
		text   string
	}{
		"not installed": {func(b *bench) error { return os.Remove(filepath.Join(b.bin, "talker")) }, "not_installed", "no talker in PATH"},
		"refused": {func(b *bench) error {
			b.workdir = b.bin // which is not trusted
			return nil
		}, "not_installed", "cannot be used"},
		"unstartable": {func(b *bench) error {
			path := filepath.Join(b.bin, "talker")
			return errors.Join(os.Remove(path), os.WriteFile(path, []byte("#!/nonexistent\n"), 0o700))
		}, "agent", "cannot be started"},
	}
	type way func(t *testing.T, b *bench, s control.Settings) (id string, err error) // id is what it reported
	ways := map[string]way{
		"run": func(t *testing.T, b *bench, s control.Settings) (string, error) {
			r := *b.Runner
			r.Recorder = s.Record.Recorder()
			result, err := r.Run(t.Context(), agent.Request{Runtime: s.Runtime, Workdir: s.Workdir, Prompt: "x"}, agent.Output{})
			return result.RunID, err
		},
		"library": func(t *testing.T, b *bench, s control.Settings) (string, error) {
			r := *b.Runner
			r.Recorder = s.Record.Recorder()
			_, err := r.StartSession(t.Context(), agent.Request{Runtime: s.Runtime, Workdir: s.Workdir}, session.Options{})
			return "", err
		},
		"manager": func(t *testing.T, b *bench, s control.Settings) (string, error) {
			_, err := b.Start(t.Context(), control.StartOptions{Settings: s})
			return "", err
		},
		"resume": func(t *testing.T, b *bench, s control.Settings) (string, error) {
			save(t, b.Store, control.Entry{SessionID: "before", NativeID: "n", State: session.StateStopped, Settings: s})
			return "", b.Resume(t.Context(), control.SessionHandle{SessionID: "before"})
		},
		"background": func(t *testing.T, b *bench, s control.Settings) (id string, err error) {
			c := background(b)
			c.Report = func(r control.Report) {
				if r.RunID != "" && id != "" {
					t.Errorf("run %s is reported after run %s", r.RunID, id)
				}
				id = r.RunID
			}
			_, err = c.Start(t.Context(), control.StartOptions{Settings: s})
			return id, err
		},
	}
	for cause, c := range causes {
		for name, start := range ways {
			t.Run(cause+"/"+name, func(t *testing.T) {
				t.Parallel()
				b := newBench(t)
				if err := c.change(b); err != nil {
					t.Fatal(err)
				}
				records := &control.RecordSettings{Root: t.TempDir()}
				reported, err := start(t, b, control.Settings{Runtime: "talker", Workdir: b.workdir, Record: records})
				if agent.KindOf(err) != c.kind {
					t.Errorf("error %v, want one of kind %s", err, c.kind)
				}
				list, problems, err := (&runs.Records{Root: records.Root}).List(t.Context(), runs.Filter{})
				if len(list) != 1 || len(problems) > 0 || err != nil {
					t.Fatalf("%d records, %v, %v; want one", len(list), problems, err)
				}
				got := list[0]
				if got.Agent != "talker" || got.Status != runs.StatusFailed || got.ExitCode != -1 || got.ErrorKind != c.kind ||
					got.ErrorSummary != "agent did not start" || !strings.Contains(got.Error, c.text) || got.Session != (name != "run") {
					t.Errorf("it is recorded as %+v", got.Info)
				}
				if (name == "run" || name == "background") && reported != got.RunID {
					t.Errorf("run %q is reported, want %q", reported, got.RunID)
				}
				entries, _, err := b.Store.List(control.Filter{})
				if err != nil || name != "resume" && len(entries) > 0 || name == "resume" && entries[0].State != session.StateStopped {
					t.Errorf("left are %+v, %v", entries, err)
				}
			})
		}
	}
}
