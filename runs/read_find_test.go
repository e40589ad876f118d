package runs

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/agent"
)

func TestFind(t *testing.T) {
	t.Parallel()
	store := &Records{Root: t.TempDir()}
	for i := range 3 {
		put(t, store.Root, exampleInfo(i))
	}
	twin := exampleInfo(0)
	twin.ProjectID = "other"
	put(t, store.Root, twin)
	first, second := exampleInfo(0), exampleInfo(1)
	outside := put(t, t.TempDir(), exampleInfo(7))
	for handle, want := range map[string]string{
		second.RunID:                        second.RunID,
		second.RunID[:13]:                   second.RunID,
		"4711-2":                            second.RunID,
		"latest":                            exampleInfo(2).RunID,
		second.TaskID + "/latest":           second.RunID,
		"demo/" + second.TaskID + "/latest": second.RunID,
		"demo/" + first.TaskID + "/" + first.RunID:                      first.RunID,
		"demo/" + first.TaskID + "/4711-1":                              first.RunID,
		first.TaskID + "/" + second.RunID:                               "there is no run",
		"demo/" + second.TaskID + "/runs/latest":                        second.RunID,
		"demo/" + second.TaskID + "/runs/4711-2/":                       second.RunID,
		store.Root + "/demo/" + second.TaskID + "/runs/" + second.RunID: second.RunID,
		first.RunID:              "2 runs can be meant",
		"20261121":               "4 runs can be meant",
		"none":                   "there is no run",
		"other/none/latest":      "there is no run",
		"":                       "does not name a run",
		"/":                      "does not name a run",
		"..":                     "does not name a run",
		"../" + second.RunID:     "does not name a run",
		"demo/../demo":           "does not name a run",
		"demo/x/../4711-2":       "does not name a run",
		"a//b":                   "does not name a run",
		"a/b/c/d":                "does not name a run",
		"a/b/runs/c/d":           "does not name a run",
		".new-1":                 "does not name a run",
		"a\x00b":                 "does not name a run",
		outside:                  "does not name a run",
		filepath.Dir(store.Root): "does not name a run",
		store.Root:               "does not name a run",
	} {
		run, err := store.Find(t.Context(), handle)
		switch {
		case strings.Contains(want, " "):
			if !errors.Is(err, agent.ErrUsage) || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v, want %s", handle, err, want)
			}
		case err != nil || run.RunID != want || filepath.Base(run.Dir) != want:
			t.Errorf("%q: %s, %v, want %s", handle, run.RunID, err, want)
		}
	}
	_, err := store.Find(t.Context(), first.RunID)
	for _, path := range []string{"\n  demo/", "\n  other/"} {
		if !strings.Contains(err.Error(), path+first.TaskID+"/"+first.RunID) {
			t.Errorf("not all candidates are listed: %v", err)
		}
	}
}

func TestFindReportsDamage(t *testing.T) {
	t.Parallel()
	store := &Records{Root: t.TempDir()}
	if _, err := store.Find(t.Context(), Latest); !errors.Is(err, agent.ErrUsage) {
		t.Error(err)
	}
	dir := put(t, store.Root, exampleInfo(0))
	write(t, filepath.Join(dir, infoName), "damaged")
	for _, handle := range []string{Latest, exampleInfo(0).RunID} {
		if _, err := store.Find(t.Context(), handle); err == nil || errors.Is(err, agent.ErrUsage) || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %v", handle, err)
		}
	}
	if err := os.Remove(filepath.Join(dir, infoName)); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Find(t.Context(), exampleInfo(0).RunID); err == nil || !strings.Contains(err.Error(), dir) {
		t.Error(err)
	}
}

func TestLatestFailsWhenTheNewestIsDamaged(t *testing.T) {
	t.Parallel()
	store := &Records{Root: t.TempDir()}
	var dirs []string
	for i := range 3 {
		dirs = append(dirs, put(t, store.Root, exampleInfo(i)))
	}
	byHand := exampleInfo(3)
	byHand.RunID = "by-hand" // has no time in it
	dirs = append(dirs, put(t, store.Root, byHand))
	for _, i := range []int{0, 3} {
		write(t, filepath.Join(dirs[i], infoName), "damaged")
	}
	if run, err := store.Find(t.Context(), Latest); err != nil || run.Dir != dirs[2] {
		t.Errorf("%s, %v, want %s", run.Dir, err, dirs[2])
	}
	write(t, filepath.Join(dirs[2], infoName), "damaged")
	if run, err := store.Find(t.Context(), Latest); err == nil || errors.Is(err, agent.ErrUsage) || !strings.Contains(err.Error(), dirs[2]) {
		t.Errorf("%s, %v", run.Dir, err)
	}
	if run, err := store.Find(t.Context(), exampleInfo(1).TaskID+"/latest"); err != nil || run.Dir != dirs[1] {
		t.Errorf("%s, %v, want %s", run.Dir, err, dirs[1])
	}
}
