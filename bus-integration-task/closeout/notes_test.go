package closeout_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/busdk/bus-integration-task/closeout"
)

// A fake command bus: this test binary, started by a link of that name.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) != "bus" {
		os.Exit(m.Run())
	}
	home := os.Getenv("HOME")
	log := fmt.Sprintf("%q\n%q\n", os.Args[1:], os.Environ())
	if err := os.WriteFile(filepath.Join(home, "log"), []byte(log), 0o600); err != nil {
		panic(err)
	}
	answer, _ := os.ReadFile(filepath.Join(home, "answer"))
	switch string(answer) {
	case "fail":
		fmt.Fprintln(os.Stderr, "refused \x1b[31m"+os.Getenv("BUS_NOTES_API_TOKEN"))
		os.Exit(1)
	case "hang":
		if err := os.Remove(filepath.Join(home, "answer")); err != nil {
			panic(err)
		}
		time.Sleep(time.Hour)
	case "flood":
		for range 3 {
			fmt.Println(strings.Repeat("x", 64<<10))
		}
	}
	fmt.Print(string(answer))
	os.Exit(0)
}

// withBus returns a home and a PATH with the fake command bus in it.
func withBus(t *testing.T, answer string) (home string, environ []string) {
	t.Helper()
	home = t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	link(t, self, filepath.Join(home, "bin", "bus"))
	if err := os.WriteFile(filepath.Join(home, "answer"), []byte(answer), 0o600); err != nil {
		t.Fatal(err)
	}
	return home, []string{"HOME=" + home, "PATH=bin::" + filepath.Join(home, "bin"), "BUS_API_TOKEN=token-of-events", "OPENAI_API_KEY=sk-0123456789"}
}

func link(t *testing.T, target, name string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, name); err != nil {
		t.Fatal(err)
	}
}

func TestNotes(t *testing.T) {
	t.Parallel()
	home, environ := withBus(t, "created note-123 -> busdk\n")
	environ = append(environ, "BUS_NOTES_API_URL=http://127.0.0.1:1", "SECRET=no")
	notes := closeout.Notes{Environ: environ}
	ids, err := notes.Add(t.Context(), closeout.Note{Module: "bus-dev", WorkRef: "busdk#81.1", Session: "a-1", Text: "--key sk-0123456789"})
	if diff := cmp.Diff([]string{"note-123"}, ids); diff != "" || err != nil {
		t.Fatal(diff, err)
	}
	log, err := os.ReadFile(filepath.Join(home, "log"))
	if err != nil {
		t.Fatal(err)
	}
	want := `["notes" "add" "--module=bus-dev" "--task=busdk#81.1" "--session=a-1" "--tag=agent-work-log" "--source=bus-integration-task" "--" "--key ***"]
["PATH=` + filepath.Join(home, "bin") + `" "HOME=` + home + `" "BUS_NOTES_API_URL=http://127.0.0.1:1" "BUS_NOTES_API_TOKEN=token-of-events"]
`
	got := strings.Replace(string(log), ` "PWD=/"`, "", 1)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestNotesReadsIDs(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string][]string{
		`{"id":"n1"}`:               {"n1"},
		`{"ids":["b","a","b",""]}`:  {"a", "b"},
		"note_7, notes#8 footnote:": {"note_7", "notes#8"},
		"ok":                        nil,
		`{"id":"a\u001b"}`:          nil,
		"flood":                     nil,
		"":                          nil,
	} {
		t.Run(answer, func(t *testing.T) {
			t.Parallel()
			_, environ := withBus(t, answer)
			ids, err := (&closeout.Notes{Environ: environ}).Add(t.Context(), closeout.Note{})
			if diff := cmp.Diff(want, ids); diff != "" || (err != nil) != (want == nil) {
				t.Error(diff, err)
			}
		})
	}
}

func TestNotesFail(t *testing.T) {
	t.Parallel()
	_, environ := withBus(t, "fail")
	_, err := (&closeout.Notes{Environ: environ}).Add(t.Context(), closeout.Note{})
	if got := fmt.Sprint(err); got != "bus notes add: exit status 1: refused �[31m***" {
		t.Errorf("got %q", got)
	}

	_, environ = withBus(t, "hang")
	_, err = (&closeout.Notes{Environ: environ, Timeout: time.Millisecond}).Add(t.Context(), closeout.Note{})
	if got := fmt.Sprint(err); got != "bus notes add: it took longer than 1ms" {
		t.Errorf("got %q", got)
	}

	home, environ := withBus(t, "hang")
	ctx, cancel := context.WithCancel(t.Context())
	go func() { // once the command is running
		defer cancel()
		for t.Context().Err() == nil {
			if _, err := os.Stat(filepath.Join(home, "answer")); err != nil {
				return
			}
		}
	}()
	if _, err = (&closeout.Notes{Environ: environ}).Add(ctx, closeout.Note{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestNotesUnavailable(t *testing.T) {
	t.Parallel()
	home, environ := withBus(t, `{"id":"n"}`)
	workspace := t.TempDir()
	link(t, filepath.Join(home, "bin", "bus"), filepath.Join(workspace, "bin", "bus"))
	link(t, filepath.Join(workspace, "bin"), filepath.Join(home, "linked"))
	unusable := t.TempDir()
	if err := os.WriteFile(filepath.Join(unusable, "bus"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		environ []string
		want    string
	}{
		"no PATH":             {[]string{"BUS_API_TOKEN=t"}, "no command bus"},
		"not executable":      {append(environ, "PATH="+unusable), "no command bus"},
		"in the workspace":    {append(environ, "PATH="+filepath.Join(workspace, "bin")), "no command bus"},
		"through a workspace": {append(environ, "PATH="+filepath.Join(home, "linked")), "no command bus"},
		"no token":            {append(environ, "BUS_API_TOKEN="), "neither BUS_NOTES_API_TOKEN nor BUS_API_TOKEN"},
	} {
		_, err := (&closeout.Notes{Environ: c.environ, Workspaces: []string{workspace}}).Add(t.Context(), closeout.Note{})
		if !errors.Is(err, closeout.ErrNotesUnavailable) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
	}
	if _, err := os.Stat(filepath.Join(home, "log")); err == nil {
		t.Error("the command was started")
	}
}

func TestNotesDue(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		elapsed   time.Duration
		published int
		want      bool
	}{
		{-time.Hour, 0, false}, {0, 0, false}, {time.Hour - 1, 0, false}, {time.Hour, 0, true},
		{time.Hour, 1, false}, {2 * time.Hour, 1, true}, {10 * time.Hour, 1, true}, {1<<63 - 1, 0, true},
	} {
		if got := closeout.NotesDue(c.elapsed, c.published); got != c.want {
			t.Errorf("NotesDue(%v, %d) = %t", c.elapsed, c.published, got)
		}
	}
	if got := closeout.NotesQuery("bus-dev", "busdk#81.1"); got != "module=bus-dev task=busdk#81.1 tag=agent-work-log" {
		t.Errorf("got %q", got)
	}
}
