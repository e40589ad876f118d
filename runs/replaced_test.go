package runs_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/runs"
)

// tree returns the content of every file below a folder, by name.
func tree(t *testing.T, dir string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		line := strings.TrimPrefix(path, dir)
		if d.Type().IsRegular() {
			line += " = " + read(t, path)
		}
		all = append(all, line)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// A record is written only to the folders made for it, even if an agent replaces them.
func TestHostileRecordFolderGetsNothing(t *testing.T) {
	t.Parallel()
	for _, which := range []string{".", "..", "../..", "../../.."} {
		for _, how := range []string{"replace", "remove"} {
			t.Run(how+" "+which, func(t *testing.T) {
				t.Parallel()
				foreign := t.TempDir()
				for _, name := range []string{"run-info.yaml", "output.md", "TASK-MESSAGE-BUS.md"} {
					if err := os.WriteFile(filepath.Join(foreign, name), []byte("foreign"), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				b := newBench(t, &runs.Records{Root: filepath.Join(t.TempDir(), "state", "runs")})
				before := tree(t, foreign)
				step := how + " " + which
				if how == "replace" {
					step += " " + foreign
				}
				result, err := b.Run(t.Context(), b.request("say text:ATTACK", step, "say ok:"), agent.Output{})
				if err != nil || result.RunID == "" {
					t.Fatalf("run %q: %v", result.RunID, err)
				}
				if after := tree(t, foreign); !slices.Equal(after, before) {
					t.Errorf("the link's target has %q, want %q", after, before)
				}
				if len(b.warnings) != 1 || !strings.Contains(b.warnings[0], "was moved or replaced during the run") {
					t.Errorf("warnings %q", b.warnings)
				}
				for _, line := range tree(t, b.root) {
					if strings.Contains(line, "-moved/") && strings.HasSuffix(line, "/run-info.yaml") && !strings.Contains(line, "status: completed") {
						t.Errorf("the record that was moved is incomplete: %s", line)
					}
					if how == "remove" && strings.Contains(line, " = ") && !strings.Contains(line, "TASK") {
						t.Errorf("the folder that replaced the record's has %s", line)
					}
				}
			})
		}
	}
}

// The root may be behind links of the user, but not behind a link that agents can
// write.
func TestRootBehindLinks(t *testing.T) {
	t.Parallel()
	for name, inWorkdir := range map[string]bool{"of the user": false, "in the workdir": true} {
		for _, required := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				b := newBench(t, &runs.Records{Root: "/", Required: required})
				foreign, above := t.TempDir(), t.TempDir()
				if inWorkdir {
					above = b.dir
				}
				store := b.Recorder.(*runs.Records)
				store.Root = filepath.Join(above, ".agents", "runs")
				if err := os.Symlink(foreign, filepath.Join(above, ".agents")); err != nil {
					t.Fatal(err)
				}
				result, err := b.Run(t.Context(), b.request("say ok:"), agent.Output{})
				if recorded := len(tree(t, foreign)) > 0; recorded == inWorkdir || recorded != (result.RunID != "") {
					t.Errorf("recorded behind the link: %t, as %q", recorded, result.RunID)
				}
				if (err != nil) != (inWorkdir && required) || inWorkdir && !strings.Contains(strings.Join(b.warnings, "")+errorText(err), ".agents is a symbolic link") {
					t.Errorf("error %v, warnings %q", err, b.warnings)
				}
			})
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// A process that holds the locks of a record delays the end of the run only until its
// context is done.
func TestEndStopsWithItsContext(t *testing.T) {
	t.Parallel()
	store := &runs.Records{Root: t.TempDir(), Required: true}
	synctest.Test(t, func(t *testing.T) {
		recording, err := store.Record(t.Context(), agent.Recordable{
			Start: agent.Start{Runtime: "fake", Path: "/bin/fake", Workdir: "/"}, Request: agent.Request{Prompt: "x"}, Warn: func(string) {},
		})
		if err != nil {
			t.Fatal(err)
		}
		files, _ := filepath.Glob(filepath.Join(store.Root, "*", "*", "TASK-MESSAGE-BUS.md"))
		folders, _ := filepath.Glob(filepath.Join(store.Root, "*", "*", "runs", recording.RunID))
		if len(files) != 1 || len(folders) != 1 {
			t.Fatalf("found %q, %q", files, folders)
		}
		for _, path := range append(files, filepath.Join(folders[0], "run-info.yaml.lock")) {
			f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
				t.Fatal(err)
			}
		}
		late := errors.New("too late")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, late)
		defer cancel()
		begun := time.Now()
		err = recording.End(ctx, agent.Result{Text: "answer"}, nil)
		if waited := time.Since(begun); !errors.Is(err, late) || waited != time.Second {
			t.Errorf("after %v: %v", waited, err)
		}
		if read(t, folders[0], "output.md") != "answer" {
			t.Error("the answer is not recorded")
		}
	})
}
