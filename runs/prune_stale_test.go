package runs

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/busdk/bus-agent/internal/process"
	"github.com/busdk/bus-agent/internal/tree"
)

// staleInfo returns the record of a running run of the program runner.
func staleInfo(runner string) Info {
	info := exampleInfo(1)
	info.Status, info.EndTime, info.Owner = StatusRunning, time.Time{}, runner
	return info
}

func TestStaleFoldersAreRemoved(t *testing.T) {
	t.Parallel()
	store := &Records{Root: t.TempDir()}
	dir := put(t, store.Root, exampleInfo(0))
	alive, abroad := process.Self(), "another:1:1:1"
	gone, kill := liveRun(t, t.TempDir())
	kill()
	dead := gone.Owner
	id := exampleInfo(1).RunID
	over := exampleInfo(1)
	for name, c := range map[string]struct {
		info   *Info
		files  []string
		old    bool
		forced bool // removed only with force
		want   bool // removed
	}{
		removedPrefix + id:                   {info: &over, files: []string{"output.md", "more/file"}, want: true},
		removedPrefix + "by-hand":            {info: &over, want: true},
		removedPrefix + id + "-empty":        {want: true},
		removedPrefix + id + "-abroad":       {info: new(staleInfo(abroad)), want: true}, // it was removed with force
		removedPrefix + id + "-alive":        {info: new(staleInfo(alive))},
		removedPrefix + id + "-no-record":    {files: []string{"notes"}, old: true},
		removedPrefix + id + "-damaged":      {files: []string{infoName}, old: true},
		removedPrefix + "":                   {info: &over},
		removedPrefix[:len(removedPrefix)-1]: {info: &over},
		newPrefix + "1":                      {info: new(staleInfo(dead)), files: []string{promptName}, want: true},
		newPrefix + "2":                      {info: new(staleInfo(alive)), files: []string{promptName}, old: true},
		newPrefix + "3":                      {info: new(staleInfo(abroad)), old: true, forced: true},
		newPrefix + "4":                      {files: []string{promptName, "run-info.7.yaml.tmp"}, old: true, want: true},
		newPrefix + "5":                      {files: []string{promptName}},
		newPrefix + "6":                      {info: new(staleInfo(dead)), files: []string{"notes"}, old: true},
		newPrefix + "plan":                   {info: new(staleInfo(dead)), old: true},
		".hidden":                            {info: &over, old: true},
	} {
		for _, force := range []bool{false, true} {
			path := filepath.Join(filepath.Dir(dir), name)
			if err := os.MkdirAll(path, 0o700); err != nil {
				t.Fatal(err)
			}
			if c.info != nil {
				text, err := marshalInfo(c.info)
				if err != nil {
					t.Fatal(err)
				}
				write(t, filepath.Join(path, infoName), string(text))
			}
			for _, file := range c.files {
				if err := os.MkdirAll(filepath.Dir(filepath.Join(path, file)), 0o700); err != nil {
					t.Fatal(err)
				}
				write(t, filepath.Join(path, file), "x")
			}
			if c.old {
				if err := os.Chtimes(path, start.AddDate(-1, 0, 0), start.AddDate(-1, 0, 0)); err != nil {
					t.Fatal(err)
				}
			}
			for _, filter := range []Filter{{Project: "other"}, {Project: "demo", Task: exampleInfo(5).TaskID}} {
				if err := store.RemoveStale(t.Context(), filter, true); err != nil || !exists(path) {
					t.Fatalf("%s: a filter removes it that does not choose its task; %v", name, err)
				}
			}
			err := store.RemoveStale(t.Context(), Filter{Project: "demo"}, force)
			if want := c.want || c.forced && force; err != nil || exists(path) == want {
				t.Errorf("%s, force %v: %v, removed %v, want %v", name, force, err, !want, want)
			}
			if !exists(dir) {
				t.Fatal("a run is removed")
			}
			if err := os.RemoveAll(path); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := (&Records{Root: filepath.Join(store.Root, "none")}).RemoveStale(t.Context(), Filter{}, false); err != nil {
		t.Error(err)
	}
}

// An interrupted removal leaves the record, so that a later one can finish it, even in
// read-only folders.
func TestInterruptedRemovalKeepsTheRecord(t *testing.T) {
	t.Parallel()
	store := &Records{Root: t.TempDir()}
	run, err := ReadRun(put(t, store.Root, exampleInfo(0)))
	if err != nil {
		t.Fatal(err)
	}
	closed := filepath.Join(run.Dir, "z")
	if err := errors.Join(os.Mkdir(closed, 0o700), os.WriteFile(filepath.Join(closed, "file"), nil, 0o600), os.Chmod(closed, 0o500)); err != nil {
		t.Fatal(err)
	}
	stale := filepath.Join(filepath.Dir(run.Dir), removedPrefix+filepath.Base(run.Dir))
	root, err := os.OpenRoot(filepath.Dir(run.Dir))
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := root.Rename(filepath.Base(run.Dir), filepath.Base(stale)); err != nil {
		t.Fatal(err)
	}
	if err := removeRecord(t.Context(), root, filepath.Base(stale), 1); !errors.Is(err, tree.ErrOver) || !exists(filepath.Join(stale, infoName)) {
		t.Errorf("%v, the record exists: %v", err, exists(filepath.Join(stale, infoName)))
	}
	if err := store.RemoveStale(t.Context(), Filter{}, false); err != nil || exists(stale) {
		t.Error(err)
	}
}
