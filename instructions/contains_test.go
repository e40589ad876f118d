package instructions_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/instructions"
	"github.com/busdk/bus-agent/internal/testuser"
	"github.com/busdk/bus-agent/session/sessiontest"
)

func TestContains(t *testing.T) {
	t.Parallel()
	g := sessiontest.NewGround(t)
	for _, p := range g.Paths {
		if got := instructions.Contains(g.Workdir, p.Path); got != p.Inside {
			t.Errorf("%s: %q is inside: %v, want %v", p.Name, p.Path, got, p.Inside)
		}
		if filepath.IsAbs(p.Path) { // every path of the folder gives the same answer
			for _, dir := range []string{g.Workdir + "/../work/", filepath.Join(g.Outside, "back")} {
				if got := instructions.Contains(dir, p.Path); got != p.Inside {
					t.Errorf("%s: %q is inside %s: %v, want %v", p.Name, p.Path, dir, got, p.Inside)
				}
			}
		}
	}
}

// TestTouches checks whether a folder controls the target of a path.
func TestTouches(t *testing.T) {
	t.Parallel()
	g := sessiontest.NewGround(t)
	for _, p := range g.Paths {
		if p.Inside && !instructions.Touches(g.Workdir, p.Path) {
			t.Errorf("%s: %q is inside, but does not touch", p.Name, p.Path)
		}
	}
	for name, want := range map[string]bool{
		g.Outside: false, g.Outside + "/file": false, g.Outside + "/new/newer": false, "/": false, g.Workdir + "-too/file": false, g.Home: false,
		g.Outside + "/back": true, g.Outside + "/back/out/file": true, g.Workdir: true, g.Workdir + "/out": true, g.Workdir + "/out/file": true,
		g.Workdir + "/../outside/file": true, g.Workdir + "/root/etc": true, g.Workdir + "/new": true, "": true, "x\x00": true,
	} {
		if got := instructions.Touches(g.Workdir, name); got != want {
			t.Errorf("%q touches: %v, want %v", name, got, want)
		}
	}
	if !instructions.Touches(filepath.Join(g.Workdir, "new"), g.Outside) {
		t.Error("an unreadable file is not touched")
	}
}

func TestContainsNeedsADirectory(t *testing.T) {
	t.Parallel()
	g := sessiontest.NewGround(t)
	for _, dir := range []string{"", ".", "work", filepath.Join(g.Workdir, "file"), filepath.Join(g.Workdir, "new"), filepath.Join(g.Workdir, "fifo"), g.Workdir + "\x00"} {
		if instructions.Contains(dir, filepath.Join(g.Workdir, "file")) || instructions.Contains(dir, "file") {
			t.Errorf("%q contains a file", dir)
		}
	}
}

func TestContainsFailsWithoutPermission(t *testing.T) {
	t.Parallel()
	if !testuser.Ordinary(t) {
		return
	}
	dir := tempDir(t)
	write(t, dir, map[string]string{"locked/file": ""})
	must(t, os.Chmod(filepath.Join(dir, "locked"), 0))
	t.Cleanup(func() { os.Chmod(filepath.Join(dir, "locked"), 0o700) })
	if instructions.Contains(dir, "locked/file") {
		t.Error("a file that may not be looked at is inside")
	}
}

// TestWithin uses paths without links.
func TestWithin(t *testing.T) {
	t.Parallel()
	g := sessiontest.NewGround(t)
	for name, want := range map[string]string{
		g.Workdir: ".", ".": ".", "in/x/new": "sub/x/new", "in-dangling": "sub/new", "git/config": ".git/config", "out/back/file": "file",
		"deep/../../../work/x": "", "deep/../z": "sub/x/z z", "new/../newer": "newer", "out/file": "",
	} {
		if got := strings.Join(instructions.Within(g.Workdir, name), " "); got != want {
			t.Errorf("%s leads to %q, want %q", name, got, want)
		}
	}
}

// FuzzContains compares with filepath.EvalSymlinks for names that exist.
func FuzzContains(f *testing.F) {
	g := sessiontest.NewGround(f)
	for _, p := range g.Paths {
		f.Add(p.Path)
	}
	f.Add("out/../work/in/../../outside/back/up/work/./deep/..")
	f.Fuzz(func(t *testing.T, name string) {
		inside := instructions.Contains(g.Workdir, name)
		full := name
		if !filepath.IsAbs(full) {
			full = g.Workdir + "/" + name
		}
		if strings.HasPrefix(full, "/proc") || strings.HasPrefix(full, "/dev") || strings.Contains(name, "root") || strings.Contains(name, "proc") {
			return // these differ for each process
		}
		physical, err := filepath.EvalSymlinks(full)
		if err != nil {
			return
		}
		really := physical == g.Workdir || strings.HasPrefix(physical, g.Workdir+"/")
		if inside && !really {
			t.Fatalf("%q is inside, but leads to %q", name, physical)
		}
		if !inside && really && name != "" && !strings.Contains(name, "..") && len(name) <= 4096 {
			t.Fatalf("%q leads to %q, but is not inside", name, physical)
		}
	})
}
