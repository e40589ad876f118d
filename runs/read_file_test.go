package runs

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/process"
	"github.com/busdk/bus-agent/internal/statefile"
)

// liveRun is a run whose program is another process, which the test ends.
func liveRun(t *testing.T, root string) (run Run, kill func()) {
	t.Helper()
	child := exec.Command("/bin/cat")
	if _, err := child.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	kill = func() {
		_ = child.Process.Kill()
		_ = child.Wait() // the test may have waited already
	}
	t.Cleanup(kill)
	info := exampleInfo(0)
	info.Status, info.EndTime, info.ExitCode = StatusRunning, time.Time{}, -1
	var err error
	if info.Owner, err = process.Identify(child.Process.Pid); err != nil {
		t.Fatal(err)
	}
	if run, err = ReadRun(put(t, root, info)); err != nil || run.Status != StatusRunning {
		t.Fatal(run.Status, err)
	}
	return run, kill
}

func TestFollowReadsUntilTheRunEnds(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(t *testing.T, run *Run, kill func()){
		"ends": func(t *testing.T, run *Run, _ func()) {
			info := run.Info
			info.Status, info.EndTime = StatusFailed, time.Now().UTC()
			folder, err := statefile.OpenDir(run.Dir)
			if err != nil {
				t.Fatal(err)
			}
			defer folder.Close()
			if err := updateInfo(t.Context(), folder, &info); err != nil {
				t.Fatal(err)
			}
		},
		"crashes": func(_ *testing.T, _ *Run, kill func()) { kill() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run, kill := liveRun(t, t.TempDir())
			texts := make(chan string)
			done := make(chan error, 1)
			go func() { // the file does not exist yet
				r, err := run.Follow(t.Context(), FileEvents)
				if err == nil {
					err = ReadEvents(r, func(e *Event) error { texts <- e.Text; return nil })
					err = errors.Join(err, r.Close())
				}
				close(texts)
				done <- err
			}()
			file, err := os.OpenFile(filepath.Join(run.Dir, eventsName), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
			if err != nil {
				t.Fatal(err)
			}
			say := func(text string) {
				if _, err := file.Write(append((&Event{Time: start, Event: agent.Event{Kind: agent.KindText, Text: text}}).AppendJSON(nil), '\n')); err != nil {
					t.Fatal(err)
				}
			}
			for _, text := range []string{"one", "two"} {
				say(text)
				if got := <-texts; got != text {
					t.Errorf("%q, want %q", got, text)
				}
			}
			say("three")
			say("four")
			end(t, &run, kill)
			for _, text := range []string{"three", "four"} {
				if got := <-texts; got != text {
					t.Errorf("%q, want %q", got, text)
				}
			}
			if text, more := <-texts; more {
				t.Errorf("more: %q", text)
			}
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}

func TestFollowEnds(t *testing.T) {
	t.Parallel()
	run, kill := liveRun(t, t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	write(t, filepath.Join(run.Dir, stdoutName), "text")
	r, err := run.Follow(ctx, FileStdout)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	text := make([]byte, 10)
	if n, err := r.Read(text); string(text[:n]) != "text" || err != nil {
		t.Errorf("%q, %v", text[:n], err)
	}
	cancel()
	if n, err := r.Read(text); n != 0 || err != context.Canceled {
		t.Error(n, err)
	}
	if _, err := run.Follow(ctx, FileEvents); err != context.Canceled {
		t.Error(err)
	}
	kill()
	if _, err := run.Follow(t.Context(), FileEvents); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if err := os.RemoveAll(run.Dir); err != nil {
		t.Fatal(err)
	}
	if _, err := run.Follow(t.Context(), FileEvents); err == nil {
		t.Error("a run that was removed is followed")
	}
}

func TestFilesOfARun(t *testing.T) {
	t.Parallel()
	run, err := ReadRun(put(t, t.TempDir(), exampleInfo(0)))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(run.Dir, outputName), "done\n")
	if err := os.Symlink(filepath.Join(run.Dir, outputName), filepath.Join(run.Dir, stderrName)); err != nil {
		t.Fatal(err)
	}
	for _, open := range []func(string) (io.ReadCloser, error){
		run.Open,
		func(name string) (io.ReadCloser, error) { return run.Follow(t.Context(), name) },
	} {
		f, err := open(FileOutput)
		if err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(f); string(text) != "done\n" || err != nil {
			t.Errorf("%q, %v", text, err)
		}
		f.Close()
		if _, err := open(FileStdout); !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
		if _, err := open(FileStderr); err == nil {
			t.Error("a link is followed")
		}
	}
}
