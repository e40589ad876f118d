package instructions_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/instructions"
	"github.com/busdk/bus-agent/internal/process"
	"github.com/busdk/bus-agent/internal/testuser"
)

// ownsVariable names a directory. With it, the test binary makes a home there and a
// folder for temporary files, and waits to be killed.
const ownsVariable = "TEST_OWNS"

func init() {
	dir, owns := os.LookupEnv(ownsVariable)
	if !owns {
		return
	}
	if err := own(dir); err != nil {
		os.Stderr.WriteString(err.Error())
		os.Exit(1)
	}
	os.Exit(0)
}

func own(dir string) error {
	chain, err := instructions.Discover(dir)
	if err != nil {
		return err
	}
	w, err := instructions.Open(chain, false)
	if err != nil {
		return err
	}
	h, err := w.NewHome(parent)
	if err != nil {
		return err
	}
	if err := h.WriteFile("snapshots/env", []byte("KEY=secret"), 0o600); err != nil {
		return err
	}
	if err := h.KeepIfStale("state", "said", "*.jsonl", "days/*"); err != nil {
		return err
	}
	temp, _, err := process.MakeTempDir(os.Getenv("TMPDIR"), "")
	if err != nil {
		return err
	}
	os.Stdout.WriteString(h.Path() + "\n" + temp + "\n")
	os.Stdin.Read(make([]byte, 1))
	return h.Remove()
}

// ownedFolders are the folders that a program has made, and a function that kills it.
type ownedFolders struct {
	home, temp string
	pid        int
	kill       func()
}

func startOwning(t *testing.T, dir, temp string) ownedFolders {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = []string{ownsVariable + "=" + dir, "TMPDIR=" + temp, "GORACE=atexit_sleep_ms=0"}
	var errs bytes.Buffer
	cmd.Stderr = &errs
	stdin, err := cmd.StdinPipe()
	must(t, err)
	stdout, err := cmd.StdoutPipe()
	must(t, err, cmd.Start())
	o := ownedFolders{pid: cmd.Process.Pid, kill: func() {
		cmd.Process.Kill()
		cmd.Wait()
		stdin.Close()
	}}
	t.Cleanup(o.kill)
	var text []byte
	for b := make([]byte, 1<<10); strings.Count(string(text), "\n") < 2; {
		n, err := stdout.Read(b)
		text = append(text, b[:n]...)
		if err != nil {
			t.Fatalf("%v: %s", err, errs.String())
		}
	}
	o.home, o.temp, _ = strings.Cut(strings.TrimSpace(string(text)), "\n")
	return o
}

func TestStaleFoldersAreFoundAndRemoved(t *testing.T) {
	t.Parallel()
	dir, temp := tempDir(t), tempDir(t)
	places := instructions.Locations{Workdir: dir, Owned: owned, TempDirs: []string{temp, temp, filepath.Join(temp, "missing")}}
	live, dead := startOwning(t, dir, temp), startOwning(t, dir, temp)
	mine := newHome(t, open(t, dir, false))
	must(t, mine.WriteFile("s", nil, 0o600), mine.Keep("s", "s"))
	// A folder without a claim may belong to any program.
	write(t, dir, map[string]string{parent + "/0123456789abcdef/x": "x"})
	write(t, temp, map[string]string{"bus-agent-1/x": "x", "other/x": "x"})
	if found := places.Stale(t.Context(), 0); len(found) > 0 {
		t.Errorf("of live owners: %+v", found)
	}
	dead.kill()
	if found := places.Stale(t.Context(), live.pid); len(found) > 0 {
		t.Errorf("of another owner: %+v", found)
	}
	for _, owner := range []int{0, dead.pid} {
		found := places.Stale(t.Context(), owner)
		if len(found) != 2 || found[0] != (instructions.StaleFolder{Path: dead.home, What: "private home", Owner: dead.pid}) ||
			found[1] != (instructions.StaleFolder{Path: dead.temp, What: "temporary files", Owner: dead.pid}) {
			t.Errorf("owner %d: %+v", owner, found)
		}
	}
	if !exists(dead.home) || !exists(dead.temp) {
		t.Fatal("to look has removed something")
	}
	if found := places.RemoveStale(t.Context(), 0); len(found) != 2 || found[0].Err != nil || found[1].Err != nil {
		t.Errorf("removed %+v", found)
	}
	for name, want := range map[string]bool{
		dead.home: false, dead.temp: false, live.home: true, live.temp: true, mine.Path(): true, keptBy(mine) + "/s": true,
		dir + "/" + parent + "/0123456789abcdef/x": true, temp + "/bus-agent-1/x": true, temp + "/other/x": true,
	} {
		if exists(name) != want {
			t.Errorf("%s exists: %v", name, !want)
		}
	}
}

func TestRemovingAStaleHomeLeavesNothing(t *testing.T) {
	t.Parallel()
	dir, temp := tempDir(t), tempDir(t)
	owner := startOwning(t, dir, temp)
	owner.kill()
	must(t, os.Chmod(filepath.Join(owner.home, "snapshots"), 0o500))
	places := instructions.Locations{Workdir: dir, Owned: owned, TempDirs: []string{temp}}
	if found := places.RemoveStale(t.Context(), 0); len(found) != 2 {
		t.Errorf("removed %+v", found)
	}
	for _, dir := range []string{dir, temp} {
		if tree := snapshot(t, dir); len(tree) != 0 {
			t.Errorf("left: %v", tree)
		}
	}
}

// A home that could not be made in the workdir is in the folder for temporary files.
func TestStaleTemporaryHomeIsRemoved(t *testing.T) {
	t.Parallel()
	temp := tempDir(t)
	// The program makes a home where a run without a workdir would make it.
	owner := startOwning(t, temp, tempDir(t))
	owner.kill()
	must(t, os.Rename(filepath.Join(temp, parent), filepath.Join(temp, "bus-agent-0123456789abcdef")), os.Remove(filepath.Join(temp, ".codex")))
	ignore := filepath.Join(temp, "bus-agent-0123456789abcdef", ".gitignore")
	text := strings.Replace(read(t, ignore), "# made for it: .codex\n# made for it: .codex/bus\n", "# made for it: bus-agent-0123456789abcdef\n", 1)
	must(t, os.WriteFile(ignore, []byte(text), 0o644))
	places := instructions.Locations{Workdir: tempDir(t), Owned: owned, TempDirs: []string{temp}}
	if found := places.RemoveStale(t.Context(), owner.pid); len(found) != 1 || found[0].Err != nil || found[0].What != "private home" {
		t.Errorf("removed %+v", found)
	}
	if tree := snapshot(t, temp); len(tree) != 0 {
		t.Errorf("left: %v", tree)
	}
}

// Removing the home of a killed process keeps the session files of its CLI and nothing
// else.
func TestSessionsOfAStaleHomeAreKept(t *testing.T) {
	t.Parallel()
	for _, by := range []string{"next home", "sweep"} {
		t.Run(by, func(t *testing.T) {
			t.Parallel()
			dir, temp := tempDir(t), tempDir(t)
			owner := startOwning(t, dir, temp)
			outside := filepath.Join(temp, "outside")
			must(t, os.Mkdir(outside, 0o700), os.WriteFile(filepath.Join(outside, "x.jsonl"), nil, 0o600))
			write(t, owner.home, map[string]string{"state/a.jsonl": "one", "state/days/01/b.jsonl": "two", "state/secret": "no", "other/c.jsonl": "no"})
			must(t, os.Symlink(outside, filepath.Join(owner.home, "state", "days", "away")))
			owner.kill()
			if by == "sweep" {
				places := instructions.Locations{Workdir: dir, Owned: owned}
				if found := places.RemoveStale(t.Context(), 0); len(found) != 1 || found[0].Err != nil {
					t.Errorf("removed %+v", found)
				}
			} else {
				newHome(t, open(t, dir, false))
			}
			if exists(filepath.Join(owner.home, "state")) || !exists(filepath.Join(outside, "x.jsonl")) {
				t.Error("the home still exists, or what is outside does not")
			}
			kept := filepath.Join(dir, parent, "sessions")
			tree := snapshot(t, kept)
			if read(t, filepath.Join(kept, "said/a.jsonl")) != "one" || read(t, filepath.Join(kept, "said/days/01/b.jsonl")) != "two" {
				t.Errorf("kept: %v", tree)
			}
			for _, name := range []string{"said/secret", "said/c.jsonl", "said/days/away"} {
				if exists(filepath.Join(kept, name)) {
					t.Errorf("%s was kept", name)
				}
			}
		})
	}
}

// An agent can take the place of kept files, but the stale home is removed, and its other
// files are kept.
func TestTakenPlacesOfKeptFiles(t *testing.T) {
	t.Parallel()
	if !testuser.Ordinary(t) { // who can make folders read-only
		return
	}
	for name, take := range map[string]func(dir string) error{
		"by a folder": func(dir string) error { return os.MkdirAll(dir+"/sessions/said/a.jsonl/x", 0o700) },
		"by the file of a folder": func(dir string) error {
			return errors.Join(os.MkdirAll(dir+"/sessions/said", 0o700), os.WriteFile(dir+"/sessions/said/days", nil, 0o600))
		},
		"by a link": func(dir string) error {
			return errors.Join(os.MkdirAll(dir+"/sessions/said", 0o700), os.Symlink(os.TempDir(), dir+"/sessions/said/days"))
		},
		"by a folder without rights": func(dir string) error {
			return errors.Join(os.MkdirAll(dir+"/sessions/said", 0o700), os.Chmod(dir+"/sessions/said", 0o500))
		},
		"of the .gitignore": func(dir string) error { return os.MkdirAll(dir+"/sessions/.gitignore", 0o700) },
		"of the kept ones": func(dir string) error {
			return errors.Join(os.RemoveAll(dir+"/sessions"), os.Symlink(os.TempDir(), dir+"/sessions"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, temp := tempDir(t), tempDir(t)
			owner := startOwning(t, dir, temp)
			write(t, owner.home, map[string]string{"state/a.jsonl": "one", "state/b.jsonl": "two", "state/days/01/c.jsonl": "three"})
			must(t, os.Remove(filepath.Join(dir, parent, ".gitignore")), take(filepath.Join(dir, parent)), os.Chmod(filepath.Join(owner.home, "state"), 0o500))
			owner.kill()
			places := instructions.Locations{Workdir: dir, Owned: owned}
			if found := places.RemoveStale(t.Context(), 0); len(found) != 1 || found[0].Err != nil || exists(owner.home) {
				t.Errorf("removed %+v", found)
			}
			kept := filepath.Join(dir, parent, "sessions/said/b.jsonl")
			if name != "of the kept ones" && read(t, kept) != "two" {
				t.Errorf("%s is not kept", kept)
			}
		})
	}
}

// An agent can write in its home, but cannot redirect the kept files.
func TestKeptFilesStayInTheParent(t *testing.T) {
	t.Parallel()
	for _, said := range []string{
		`{"tree":"..","kept":".","patterns":["*"]}`, `{"tree":"state","kept":"../..","patterns":["*"]}`,
		`{"tree":"state","kept":".","patterns":["../*"]}`, `{"tree":"/etc","kept":".","patterns":["*"]}`, `[`, ``,
		`{"tree":"link","kept":".","patterns":["*"]}`, `{"tree":"state","kept":".","patterns":["[","x"]}`,
	} {
		dir, temp := tempDir(t), tempDir(t)
		owner := startOwning(t, dir, temp)
		write(t, dir, map[string]string{"mine": "mine"})
		write(t, owner.home, map[string]string{"state/a": "one", ".bus-agent-salvage": said})
		must(t, os.Symlink(dir, filepath.Join(owner.home, "link")))
		owner.kill()
		places := instructions.Locations{Workdir: dir, Owned: owned}
		if found := places.RemoveStale(t.Context(), 0); len(found) != 1 || found[0].Err != nil {
			t.Errorf("%s: removed %+v", said, found)
		}
		if tree := snapshot(t, dir); len(tree) != 1 || read(t, filepath.Join(dir, "mine")) != "mine" {
			t.Errorf("%s: left %v", said, tree)
		}
	}
}

func TestNextHomeRemovesAStaleOne(t *testing.T) {
	t.Parallel()
	dir, temp := tempDir(t), tempDir(t)
	live, dead := startOwning(t, dir, temp), startOwning(t, dir, temp)
	dead.kill()
	planted := filepath.Join(dir, parent, "0123456789abcdef")
	must(t, os.MkdirAll(planted, 0o700))
	h := newHome(t, open(t, dir, false))
	for name, want := range map[string]bool{dead.home + "/snapshots": false, live.home + "/snapshots": true, planted: true, h.Path(): true} {
		if exists(name) != want {
			t.Errorf("%s exists: %v", name, !want)
		}
	}
}

// A login that a CLI has replaced is kept for the user, even after the process that
// kept it has ended.
func TestHomeWithExceptionsIsNotStale(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	h := newHome(t, open(t, dir, false))
	must(t, h.WriteFile("auth.json", []byte("login"), 0o600), h.Remove("auth.json"))
	if exists(filepath.Join(h.Path(), claimName)) {
		t.Error("the home still says whose it is, so it goes with its owner")
	}
}

// Directories that a home and an addition share are removed with the last of them.
func TestDirectoryOfAHomeAndAnAdditionIsRemoved(t *testing.T) {
	t.Parallel()
	const home = ".gemini/bus"
	for name, test := range map[string]struct {
		files  map[string]string
		before func(*instructions.Workspace) // another run
	}{
		"made by this run":    {},
		"made by another run": {before: func(w *instructions.Workspace) { must(t, keepIn(w, home)) }},
		"there before":        {files: map[string]string{".gemini/": ""}},
	} {
		for _, first := range []string{"home", "addition"} {
			t.Run(name+", first goes the "+first, func(t *testing.T) {
				t.Parallel()
				dir := tempDir(t)
				write(t, dir, test.files)
				before := snapshot(t, dir)
				if test.before != nil {
					test.before(open(t, dir, false))
				}
				w := open(t, dir, false)
				h, err := w.NewHome(home)
				must(t, err)
				ignore := instructions.Block{Path: ".gemini/notes", Name: "x", Comment: instructions.CommentHash, Text: "x\n"}
				must(t, w.AddToJSON(list), w.AddBlock(ignore))
				if first == "home" {
					must(t, h.Remove())
				}
				must(t, w.RemoveFromJSON(list), w.RemoveBlock(ignore), h.Remove())
				_, err = instructions.Clean(t.Context(), dir, owned)
				must(t, err)
				if got := snapshot(t, dir); len(got) != len(before) {
					t.Errorf("before %v, after %v", before, got)
				}
			})
		}
	}
}

// keepIn makes a home in which a file is kept.
func keepIn(w *instructions.Workspace, parent string) error {
	h, err := w.NewHome(parent)
	if err != nil {
		return err
	}
	if err := h.WriteFile("s", nil, 0o600); err != nil {
		return err
	}
	if err := h.Keep("s", "s"); err != nil {
		return err
	}
	return h.Remove()
}
