package engine_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session/engine"
	"github.com/busdk/bus-agent/session/sessiontest"
)

func TestHostilePathsOfEdits(t *testing.T) {
	t.Parallel()
	g := sessiontest.NewGround(t)
	start := g.Start(agent.AccessWrite)
	file := filepath.Join(g.Workdir, "file")
	g.Check(t, func(path string) bool {
		got := start.MayEdit(agent.AccessWrite, []string{path})
		if both := start.MayEdit(agent.AccessWrite, []string{file, path}); both != got {
			t.Errorf("%q with another file: %v", path, both)
		}
		if !start.MayEdit(agent.AccessFull, []string{path}) || start.MayEdit(agent.AccessRead, []string{path}) || start.MayEdit("", []string{path}) {
			t.Errorf("%q: full access does not include it, or less than write access does", path)
		}
		return got
	})
	if start.MayEdit(agent.AccessWrite, nil) {
		t.Error("a change of no file is included")
	}
}

// Places differ where names lead to different files, whatever the names are.
func TestPlaces(t *testing.T) {
	t.Parallel()
	g := sessiontest.NewGround(t)
	start := g.Start(agent.AccessWrite)
	link := filepath.Join(g.Outside, "link")
	lead := func(to string) string {
		t.Helper()
		_ = os.Remove(link)
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
		return start.Places([]string{link})
	}
	file, other := filepath.Join(g.Outside, "file"), filepath.Join(g.Outside, "other")
	places := map[string]string{
		"a link to a file": lead(file), "a link to another": lead(other), "both": start.Places([]string{file, other}),
		"a file of the workdir": start.Places([]string{"file"}),
	}
	seen := map[string]string{}
	for name, place := range places {
		if place == "" || seen[place] != "" {
			t.Errorf("%s and %s lead to %q", name, seen[place], place)
		}
		seen[place] = name
	}
	for name, same := range map[string][2][]string{
		"a link and its file": {{link}, {other}}, "an order": {{file, other}, {other, file, other}}, "a relative name": {{"file"}, {g.Workdir + "/x/../file"}},
	} {
		if a, b := start.Places(same[0]), start.Places(same[1]); a == "" || a != b {
			t.Errorf("%s: %q and %q", name, a, b)
		}
	}
	for _, names := range [][]string{nil, {""}, {file, ""}, {"~/file"}, {g.Outside}, {filepath.Join(g.Outside, "hard")}, {"/dev/fd/3"}, {"/dev/null"}, {"a\\b"}} {
		if place := start.Places(names); place != "" {
			t.Errorf("%q: %q", names, place)
		}
	}
}

// A protected name can be that of a file in a folder.
func TestProtectedPathsOfEdits(t *testing.T) {
	t.Parallel()
	start := engine.Start{Workdir: t.TempDir(), Access: agent.AccessWrite, Protected: []string{".agent/hooks", "settings.json"}}
	if err := os.MkdirAll(filepath.Join(start.Workdir, "sub", ".agent", "hooks"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join("sub", ".agent"), filepath.Join(start.Workdir, "other")); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{
		".agent/file": true, "hooks/new": true, ".agent/sub/hooks": true, ".vscode/settings": true, ".vscode/sub/mcp.json": true, "envrc": true,
		".agent/hooks": false, ".agent/hooks/new": false, "sub/.AGENT/Hooks/new": false, "other/hooks/new": false, "sub/settings.json": false,
		".envrc": false, "sub/.vscode/mcp.json": false, ".lsp.json": false, ".gastown/runtime.json": false,
	} {
		if got := start.MayEdit(agent.AccessWrite, []string{filepath.Join(start.Workdir, filepath.FromSlash(name))}); got != want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// A workdir that is a bare repository holds what Git runs.
func TestMayEditNothingOfABareRepository(t *testing.T) {
	t.Parallel()
	g := sessiontest.NewGround(t)
	start := g.Start(agent.AccessWrite)
	start.Workdir = filepath.Join(g.Workdir, "bare")
	for _, name := range []string{"config", "hooks/pre-commit", "new"} {
		if start.MayEdit(agent.AccessWrite, []string{name}) {
			t.Errorf("%s is included", name)
		}
	}
	if err := os.Remove(filepath.Join(start.Workdir, "HEAD")); err != nil {
		t.Fatal(err)
	}
	if !start.MayEdit(agent.AccessWrite, []string{"config"}) {
		t.Error("a folder without a repository is protected")
	}
}

// FuzzMayEdit: what is included leads inside, and to nothing that Git runs.
func FuzzMayEdit(f *testing.F) {
	g := sessiontest.NewGround(f)
	start := g.Start(agent.AccessWrite)
	for _, p := range g.Paths {
		f.Add(p.Path)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if !start.MayEdit(agent.AccessWrite, []string{name}) {
			return
		}
		if !filepath.IsAbs(name) {
			name = g.Workdir + "/" + name
		}
		dir := filepath.Dir(name)
		for {
			if physical, err := filepath.EvalSymlinks(dir); err == nil {
				dir = physical
				break
			}
			dir = filepath.Dir(dir)
		}
		isBelow := func(parent string) bool { return dir == parent || strings.HasPrefix(dir, parent+"/") }
		if !isBelow(g.Workdir) && !isBelow(g.Added) || isBelow(g.Workdir+"/.git") || isBelow(g.Workdir+"/bare") || isBelow(g.Added+"/.git") {
			t.Fatalf("%q is included, but leads into %q", name, dir)
		}
	})
}
