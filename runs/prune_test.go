package runs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

func TestRemove(t *testing.T) {
	t.Parallel()
	store := &Records{Root: t.TempDir()}
	elsewhere := t.TempDir()
	write(t, filepath.Join(elsewhere, "kept"), "")
	var list []Run
	for i := range 2 {
		run, err := ReadRun(put(t, store.Root, exampleInfo(i)))
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, run)
	}
	if err := errors.Join(
		os.Symlink(elsewhere, filepath.Join(list[0].Dir, "link")),
		os.MkdirAll(filepath.Join(list[0].Dir, "deep", "er"), 0o700),
	); err != nil {
		t.Fatal(err)
	}
	task := filepath.Dir(filepath.Dir(list[0].Dir))
	write(t, filepath.Join(task, taskName), "do it\n")
	if err := store.Remove(t.Context(), &list[0], false); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{
		list[0].Dir: false, list[1].Dir: true, task: true, filepath.Join(task, taskName): true, filepath.Join(elsewhere, "kept"): true,
	} {
		if exists(path) != want {
			t.Errorf("%s exists: %v, want %v", path, !want, want)
		}
	}
	if entries, _ := os.ReadDir(filepath.Join(task, runsName)); len(entries) != 0 {
		t.Errorf("%v is left", entries)
	}
	if err := store.Remove(t.Context(), &list[0], false); err == nil {
		t.Error("a run is removed twice")
	}
	linked := Run{Dir: filepath.Join(filepath.Dir(list[1].Dir), "linked")}
	if err := os.Symlink(filepath.Base(list[1].Dir), linked.Dir); err != nil {
		t.Fatal(err)
	}
	if err := store.Remove(t.Context(), &linked, false); err != nil || exists(linked.Dir) || !exists(filepath.Join(list[1].Dir, infoName)) {
		t.Errorf("%v; what a link leads to exists: %v", err, exists(filepath.Join(list[1].Dir, infoName)))
	}
}

func TestRemoveKeepsRunningRunsAndOtherFolders(t *testing.T) {
	t.Parallel()
	store := &Records{Root: t.TempDir()}
	live, kill := liveRun(t, store.Root)
	abroad := exampleInfo(1)
	abroad.Status, abroad.Owner = StatusRunning, "another:1:1:1"
	unknown, err := ReadRun(put(t, store.Root, abroad))
	if err != nil {
		t.Fatal(err)
	}
	plain := filepath.Join(store.Root, "demo", "task", runsName, "plain")
	outside := put(t, t.TempDir(), exampleInfo(2))
	linked := filepath.Join(store.Root, "demo", "linked")
	over := put(t, store.Root, exampleInfo(4))
	if err := errors.Join(os.MkdirAll(plain, 0o700), os.Symlink(filepath.Dir(filepath.Dir(outside)), linked),
		os.Symlink("demo", filepath.Join(store.Root, "alias"))); err != nil {
		t.Fatal(err)
	}
	alias := filepath.Join(store.Root, "alias", exampleInfo(4).TaskID, runsName, filepath.Base(over))
	throughLink := filepath.Join(linked, runsName, filepath.Base(outside))
	damaged := put(t, store.Root, exampleInfo(3))
	write(t, filepath.Join(damaged, infoName), "damaged")
	for _, dir := range []string{
		live.Dir, unknown.Dir, plain, outside, throughLink, alias, damaged, store.Root, filepath.Join(store.Root, "demo"), filepath.Dir(plain),
		filepath.Join(live.Dir, "deeper"), "", "/", filepath.Join(live.Dir, "..", "..", "..", ".."),
	} {
		if err := store.Remove(t.Context(), &Run{Dir: dir}, false); err == nil {
			t.Errorf("%s is removed", dir)
		}
	}
	for _, dir := range []string{live.Dir, unknown.Dir, plain, throughLink, over, damaged} {
		if !exists(dir) {
			t.Errorf("%s is removed", dir)
		}
	}
	path := filepath.Join(live.Dir, infoName)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, status := range []string{"running", "completed", "queued"} { // the agent may write any
		write(t, path, strings.Replace(string(text), "status: running", "status: "+status, 1))
		if err := store.Remove(t.Context(), &live, true); err == nil || !exists(live.Dir) {
			t.Fatalf("force removes a running run with status %s", status)
		}
	}
	kill()
	for _, run := range []*Run{&unknown, &live} {
		if err := store.Remove(t.Context(), run, true); err != nil || exists(run.Dir) {
			t.Errorf("%s is not removed: %v", run.Dir, err)
		}
	}
}

func TestRemoveTask(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		prepare func(task string) error
		want    bool
	}{
		"plain":       {func(string) error { return nil }, true},
		"with a run":  {func(task string) error { return os.MkdirAll(filepath.Join(task, runsName, "another"), 0o700) }, false},
		"with a file": {func(task string) error { return os.WriteFile(filepath.Join(task, "DONE"), nil, 0o600) }, false},
		"with a link": {func(task string) error {
			return errors.Join(os.Remove(filepath.Join(task, taskName)), os.Symlink("/etc/hostname", filepath.Join(task, taskName)))
		}, false},
	} {
		store := &Records{Root: t.TempDir()}
		run, err := ReadRun(put(t, store.Root, exampleInfo(0)))
		if err != nil {
			t.Fatal(err)
		}
		task := filepath.Dir(filepath.Dir(run.Dir))
		write(t, filepath.Join(task, taskName), "x")
		write(t, filepath.Join(task, busName), "x")
		if removed, err := store.RemoveTask(&run); removed || err != nil || !exists(run.Dir) {
			t.Errorf("%s: %v, %v while it has a run", name, removed, err)
		}
		if err := errors.Join(store.Remove(t.Context(), &run, false), c.prepare(task)); err != nil {
			t.Fatal(err)
		}
		removed, err := store.RemoveTask(&run)
		if removed != c.want || err != nil || exists(task) == c.want {
			t.Errorf("%s: removed %v, %v", name, removed, err)
		}
		if !exists(filepath.Dir(task)) {
			t.Errorf("%s: the project is removed", name)
		}
	}
}

// A list made while runs are removed has each of them whole or not at all.
func TestListWhileRunsAreRemoved(t *testing.T) {
	t.Parallel()
	store := &Records{Root: t.TempDir()}
	for i := range 60 {
		info := exampleInfo(i)
		info.TaskID = "task"
		info.StartTime = time.Now() // for a young folder
		put(t, store.Root, info)
	}
	list := mustList(t, store, Filter{})
	done := make(chan error, 1)
	go func() {
		var failures error
		for i := range list {
			failures = errors.Join(failures, store.Remove(t.Context(), &list[i], false))
		}
		done <- failures
	}()
	for {
		left := mustList(t, store, Filter{})
		if len(left) == 0 {
			break
		}
		for i := range left {
			if left[i].ProjectID != "demo" {
				t.Fatal(cmp.Diff(list[0], left[i]))
			}
		}
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}
