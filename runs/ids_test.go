package runs

import (
	"strings"
	"sync"
	"testing"
	"time"
)

func TestConcurrentRunIDsDiffer(t *testing.T) {
	t.Parallel()
	const n = 1000
	ids := make([]string, n)
	now := time.Now()
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { ids[i] = newRunID(now) })
	}
	all.Wait()
	seen := map[string]bool{}
	for _, id := range ids {
		if err := CheckRun(id); err != nil || seen[id] {
			t.Fatalf("%s: %v, seen %t", id, err, seen[id])
		}
		seen[id] = true
	}
}

func TestRunIDHasRealDigits(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 0, 7, 23, 376949496, time.UTC)
	if got := newRunID(at); got[:20] != "20261121-0007233769-" {
		t.Errorf("%s", got)
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	for id, ok := range map[string]bool{
		"20261121-0007230000-28482-1": true, "20261121-0007230000-28482-1-12345": true, "20260205-150405123-12345": true, "test-run": true,
		"": false, "..": false, ".x": false, "-x": false, "a b": false, "a/b": false, "a\n": false, "20261121-0007230000-28482-1/..": false,
	} {
		if (CheckRun(id) == nil) != ok {
			t.Errorf("run %q: %v", id, CheckRun(id))
		}
	}
	for id, ok := range map[string]bool{"a": true, "my-project": true, "a1": true, "": false, "-a": false, "a-": false, "A": false, "a/b": false, "..": false, "a\n": false} {
		if (CheckProject(id) == nil) != ok {
			t.Errorf("project %q: %v", id, CheckProject(id))
		}
	}
	for id, ok := range map[string]bool{"task-001": true, "task-20260101-000000-mine": true, "": false, "Task": false, "..": false, "a/b": false, "-a": false, strings.Repeat("a", 129): false} {
		if (CheckTask(id) == nil) != ok {
			t.Errorf("task %q: %v", id, CheckTask(id))
		}
	}
	for _, about := range []string{"", "codex", "Äpfel & Birnen", "a very long name of more than forty letters, which is cut somewhere", "---", "x"} {
		if id := newTask(time.Now(), about); CheckTask(id) != nil {
			t.Errorf("task of %q: %v", about, CheckTask(id))
		}
	}
	for folder, want := range map[string]string{"/home/me/My Project": "my-project", "/": "project", "/x/ü": "project", "/x/.git": "git", "/x/a.b_c": "a-b-c"} {
		if got := projectOf(folder); got != want {
			t.Errorf("project of %s: %q, want %q", folder, got, want)
		}
		if err := CheckProject(projectOf(folder)); err != nil {
			t.Error(err)
		}
	}
	if a, b := newTask(time.Now(), "x"), newTask(time.Now(), "x"); a == b {
		t.Error("two tasks are one")
	}
}
