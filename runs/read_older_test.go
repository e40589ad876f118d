package runs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The words of older writers are read as today's.
func TestRecordsOfOlderWriters(t *testing.T) {
	t.Parallel()
	for lines, want := range map[string]struct {
		status        Status
		kind, summary string
	}{
		"status: success\n":                                                {StatusCompleted, "", ""},
		"status: timed out\n":                                              {StatusFailed, "timeout", "timed out"},
		"status: failed\nerror_summary: timed out\n":                       {StatusFailed, "timeout", "timed out"},
		"status: failed\nerror_summary: canceled\n":                        {StatusFailed, "canceled", "canceled"},
		"status: failed\nexit_code: 7\n":                                   {StatusFailed, "agent", ""},
		"status: failed\nerror_kind: quota\nerror_summary: agent failed\n": {StatusFailed, "quota", "agent failed"},
	} {
		dir := filepath.Join(t.TempDir(), "demo", "task-001", "runs", "test-run")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, infoName), "run_id: test-run\nproject_id: demo\ntask_id: task-001\nagent: codex\nstart_time: 2026-02-05T15:04:05Z\nend_time: 2026-02-05T15:05:05Z\n"+lines)
		run, err := ReadRun(dir)
		if err != nil || run.Status != want.status || run.ErrorKind != want.kind || run.ErrorSummary != want.summary {
			t.Errorf("%q is %s, %q, %q; %v", lines, run.Status, run.ErrorKind, run.ErrorSummary, err)
		}
		store := &Records{Root: filepath.Dir(filepath.Dir(filepath.Dir(filepath.Dir(dir))))}
		for _, handle := range []string{"test-run", "task-001/latest", "demo/task-001/test-run"} {
			if found, err := store.Find(t.Context(), handle); err != nil || found.Dir != dir {
				t.Errorf("%s finds %q, %v", handle, found.Dir, err)
			}
		}
	}
}

func TestFilesOfOlderWriters(t *testing.T) {
	t.Parallel()
	run, err := ReadRun(put(t, t.TempDir(), exampleInfo(0)))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(run.Dir, "stdout"), "out")
	write(t, filepath.Join(run.Dir, "stderr"), "older")
	write(t, filepath.Join(run.Dir, stderrName), "newer")
	for name, want := range map[string]string{FileStdout: "out", FileStderr: "newer"} {
		for _, open := range []func(string) (io.ReadCloser, error){
			run.Open,
			func(name string) (io.ReadCloser, error) { return run.Follow(t.Context(), name) },
		} {
			f, err := open(name)
			if err != nil {
				t.Fatal(err)
			}
			if text, err := io.ReadAll(f); string(text) != want || err != nil {
				t.Errorf("%s is %q, %v", name, text, err)
			}
			f.Close()
		}
	}
	if err := os.Remove(filepath.Join(run.Dir, "stdout")); err != nil {
		t.Fatal(err)
	}
	if _, err := run.Open(FileStdout); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), stdoutName) {
		t.Error(err)
	}
}

// A record that cannot be read gives one line, which names the file and what is wrong.
func TestDamagedRecordsGiveOneLine(t *testing.T) {
	t.Parallel()
	const head = "run_id: x\nstatus: completed\nstart_time: 2026-01-01T12:00:00Z\n"
	for text, want := range map[string]string{
		"":                            "empty",
		"\n \n":                       "empty",
		"nothing":                     "not a record of a run",
		"a: b: c\n\t\n- d\n":          "not a record of a run",
		head + "exit_code: [1\n":      "not a record of a run",
		head + "exit_code: many\n":    "not a record of a run",
		head + "pid: x\npgid: y\n":    "not a record of a run",
		strings.Repeat("\x00", 4096):  "not a record of a run",
		head[:len(head)-1]:            "cut off: the last line has no end",
		"run_id: x\nstatus: failed\n": "not a whole record: run_id, status or start_time is missing",
		head + "version: 2\n":         "version 2 of records; this program reads version 1",
	} {
		path := filepath.Join(t.TempDir(), infoName)
		write(t, path, text)
		_, err := ReadInfo(path)
		if err == nil || !strings.HasPrefix(err.Error(), path+": "+want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.30q: %v, want %s", text, err, want)
		}
	}
}
