package control_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/control"
)

// A state folder of version 1, which kept two files of each session, is listed,
// shown, watched, stopped and resumed; what was kept of a session is whole then.
func TestFolderOfVersion1(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if err := os.MkdirAll(b.Store.Dir(), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(b.Store.Dir(), os.DirFS("testdata/version1")); err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob(filepath.Join(b.Store.Dir(), "*", "entry.json"))
	for _, name := range files {
		if err := os.Chmod(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	more, _ := filepath.Glob(filepath.Join(b.Store.Dir(), "*.json"))
	for _, name := range append(files, more...) {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		fitted := strings.NewReplacer("/src/app", b.workdir, `"runtime": "claude"`, `"runtime": "talker"`, "/src/told", filepath.Join(t.TempDir(), "hooked")).Replace(string(text))
		if err := os.WriteFile(name, []byte(fitted), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	list, problems, err := b.Store.List(control.Filter{})
	if err != nil || len(problems) > 0 || len(list) != 3 {
		t.Fatalf("%d sessions, %v, %v", len(list), problems, err)
	}
	client := &control.Client{Store: b.Store, Host: control.Program{Path: filepath.Join(b.bin, "host"), Args: []string{"host"}, Environ: b.Runner.Environ}}
	for name, want := range map[string]struct {
		id, folder, reason string
		state              session.State
		settings           control.Settings
	}{
		"one":   {"609bb75f", "609bb75f", "all done", session.StateStopped, control.Settings{Mode: session.ModeMinimal, StartTimeout: 3 * time.Minute}},
		"two":   {"gt-2", "d3f7ada9", "stopped", session.StateStopped, control.Settings{Mode: session.ModeMinimal, Model: "m", Access: agent.AccessRead, StartTimeout: 3 * time.Minute, Idle: time.Hour, ApprovalTimeout: 2 * time.Minute, Bead: "gp-7"}},
		"three": {"d945e552", "d945e552", "the process that held it has died", session.StateCrashed, control.Settings{Mode: session.ModeMinimal, Access: agent.AccessRead, StartTimeout: 3 * time.Minute}},
	} {
		e, err := b.Store.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		got, expected := e.Settings, want.settings
		if expected.Runtime, expected.Workdir = "talker", b.workdir; name == "two" && len(got.Hooks) == 1 {
			expected.Hooks = got.Hooks
		}
		if e.SessionID != want.id || e.Folder != want.folder || e.State != want.state || e.Reason != want.reason || e.NativeID != "s-1" || e.NativeModel != "model-x" {
			t.Errorf("%s: %+v", name, e)
		}
		if !equal(got, expected) {
			t.Errorf("%s has the settings\n%+v, want\n%+v", name, got, expected)
		}
		if byFolder, err := b.Store.Find(want.folder); err != nil || byFolder.SessionID != e.SessionID {
			t.Errorf("%s by its old ID: %+v, %v", name, byFolder, err)
		}
		if st, err := client.Show(t.Context(), e); err != nil || st.Running || st.State != want.state {
			t.Errorf("%s is shown as %+v, %v", name, st, err)
		}
		records := 0
		if err := client.Watch(t.Context(), e, control.WatchOptions{Last: -1}, control.Watcher{Record: func(*control.LogRecord) error { records++; return nil }}); err != nil || records == 0 {
			t.Errorf("%s has %d records, %v", name, records, err)
		}
		e, err = client.Resume(t.Context(), e, control.ResumeOptions{Prompt: "env GT_ROLE"})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		t.Cleanup(func() { _ = client.Stop(t.Context(), e, "") }) // unless it was
		if e.Name != name || e.SessionID != want.id || e.Folder != want.folder || e.NativeID != "s-1" || !equal(e.Settings, expected) {
			t.Errorf("%s is resumed as %+v", name, e)
		}
		if _, err := os.Stat(filepath.Join(b.Store.Folder(e), "entry.json")); err == nil {
			t.Errorf("%s has its second file", name)
		}
		result, err := client.Ask(t.Context(), e, control.Message{Text: "env GT_ROLE"}, control.Watcher{})
		if role := map[string]string{"two": "witness"}[name]; err != nil || result.Text != "GT_ROLE="+role {
			t.Errorf("%s: %+v, %v", name, result, err)
		}
		if err := client.Stop(t.Context(), e, "done"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
