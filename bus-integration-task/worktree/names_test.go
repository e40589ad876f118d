package worktree

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var branchNames = map[string]bool{
	"main": true, "work/codex-version": true, "a.b": true, "ärger": true, "a@b": true, "a-": true,
	"": false, "-x": false, "--upload-pack=x": false, "HEAD": false, "head": false, "@": false, "refs/heads/x": false,
	"a..b": false, "../x": false, "a/../b": false, ".a": false, "a/.b": false, "a.lock": false, "a.LOCK": false, "a.lock/b": false,
	"a//b": false, "/a": false, "a/": false, "a.": false, "a@{b": false, "a b": false, "a~b": false, "a^b": false, "a:b": false,
	"a?b": false, "a*b": false, "a[b": false, `a\b`: false, "a\nb": false, "a\x00b": false, "a\x7fb": false, "a\x1b[31mb": false,
	"a\u202eb": false, "a\xffb": false, strings.Repeat("a", 201): false,
}

func TestBranchNames(t *testing.T) {
	t.Parallel()
	b := newBench(t, "")
	for name, want := range branchNames {
		err := CheckBranch(name)
		if (err == nil) != want || err != nil && !errors.Is(err, ErrName) {
			t.Errorf("%q: %v", name, err)
		}
		if strings.Contains(name, "\x00") {
			continue
		}
		// What git refuses is refused; what is allowed git allows.
		if _, e := b.tryGit(b.primary, "check-ref-format", "refs/heads/"+name); err == nil && e != nil {
			t.Errorf("git refuses %q", name)
		}
	}
}

func FuzzCheckBranch(f *testing.F) {
	for name := range branchNames {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if CheckBranch(name) == nil && (name[0] == '-' || strings.Contains(name, "..") || strings.ContainsAny(name, " ~^:?*[\\\x7f\n")) {
			t.Errorf("%q is allowed", name)
		}
	})
}

func TestHostileOptionsAreRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t, "")
	r := b.open()
	planted := *r
	planted.program = filepath.Join(b.root, "bin", "git")
	b.write(b.root, "bin/git", "#!/bin/sh\n")
	if w, err := planted.Add(t.Context(), Options{Root: b.root}); !errors.Is(err, ErrName) {
		t.Errorf("git in the folder of worktrees: %v, %v", w, err)
	}
	os.RemoveAll(b.root)
	for name, o := range map[string]Options{
		"branch":          {Root: b.root, Branch: "--force", CreateBranch: true},
		"base branch":     {Root: b.root, BaseBranch: "a..b"},
		"worktree ID":     {Root: b.root, WorktreeID: "../../x", Reuse: true},
		"relative root":   {Root: "worktrees"},
		"unclean root":    {Root: b.root + "/../x"},
		"root in primary": {Root: filepath.Join(b.primary, "x")},
		"superproject":    {Root: b.root, Superproject: b.home},
	} {
		if w, err := r.Add(t.Context(), o); !errors.Is(err, ErrName) {
			t.Errorf("%s: %v, %v", name, w, err)
		}
	}
	for name, o := range map[string]Options{
		"no branch":   {Root: b.root, Branch: "absent"},
		"no base":     {Root: b.root, BaseBranch: "absent"},
		"branch is":   {Root: b.root, Branch: "main", CreateBranch: true},
		"ref is file": {Root: b.root, Branch: "main/x", CreateBranch: true},
	} {
		if w, err := r.Add(t.Context(), o); !errors.Is(err, ErrBranch) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, %v", name, w, err)
		}
	}
	os.RemoveAll(filepath.Join(b.primary, "x"))
	b.clean()
}

func TestHostilePrimariesAreRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t, "module")
	outside := newBench(t, "")
	os.Symlink(outside.primary, filepath.Join(b.workspace, "link"))
	os.Mkdir(filepath.Join(b.workspace, "file"), 0o755)
	b.write(b.workspace, "file/.git", "gitdir: "+outside.primary+"/.git\n")
	os.Mkdir(filepath.Join(b.workspace, "gitlink"), 0o755)
	os.Symlink(outside.primary+"/.git", filepath.Join(b.workspace, "gitlink/.git"))
	os.Mkdir(filepath.Join(b.workspace, "plain"), 0o755)
	for name, kind := range map[string]error{
		outside.primary: ErrName, b.workspace + "/link": ErrName, b.workspace + "/file": ErrName, b.workspace + "/gitlink": ErrUnsupported,
		b.workspace + "/plain": ErrUnsupported, b.workspace + "/absent": ErrName, "module": ErrName, b.workspace + "/x/../module": ErrName,
	} {
		if _, err := Open(t.Context(), name, Config{Workspace: b.workspace, State: b.state}); !errors.Is(err, kind) {
			t.Errorf("%s: %v", name, err)
		}
	}
	bin := filepath.Join(b.workspace, "bin")
	b.write(bin, "git", "#!/bin/sh\n")
	os.Chmod(filepath.Join(bin, "git"), 0o755)
	state := filepath.Join(b.state, "bin")
	b.write(state, "git", "#!/bin/sh\n")
	os.Chmod(filepath.Join(state, "git"), 0o755)
	for _, path := range []string{"", ".", bin, "bin:" + bin, state} {
		if _, err := Open(t.Context(), b.primary, Config{Workspace: b.workspace, State: b.state, Path: path + ":/nonexistent"}); !errors.Is(err, ErrGit) {
			t.Errorf("PATH %q: %v", path, err)
		}
	}
}

// A .gitmodules can name a folder that is not a submodule any more.
func TestStaleModuleIsNotLinked(t *testing.T) {
	t.Parallel()
	b := newBench(t, "")
	b.write(b.workspace, "docs/x", "x\n")
	b.write(b.workspace, ".gitmodules", "[submodule \"docs\"]\n\tpath = docs\n\turl = ./\n")
	b.git(b.workspace, "add", ".")
	b.git(b.workspace, "commit", "-qm", "stale")
	w := b.add(b.open(), Options{})
	if b.read(w.Path(), "docs/x") != "x\n" || len(w.Links()) > 0 {
		t.Error(w.Links())
	}
	if changes, err := w.Changes(t.Context(), 0); err != nil || changes.Total > 0 {
		t.Error(changes, err)
	}
}

// A module of a superproject gets links to the others next to it; the superproject gets
// them in the place of the empty folders of its submodules.
func TestDependencyLinks(t *testing.T) {
	t.Parallel()
	b := newBench(t, "")
	modules := ""
	for _, name := range []string{"bus-dev", "libs/bus-x", "bus-y", "absent"} {
		modules += "[submodule \"" + name + "\"]\n\tpath = " + name + "\n\turl = ./\n"
		b.git(b.workspace, "update-index", "--add", "--cacheinfo", "160000,"+b.git(b.workspace, "rev-parse", "HEAD")+","+name)
		if name != "absent" {
			b.git(b.workspace, "clone", "-q", ".", name)
		}
	}
	b.write(b.workspace, ".gitmodules", modules)
	b.git(b.workspace, "add", ".gitmodules")
	b.git(b.workspace, "commit", "-qm", "modules")

	super := b.open()
	w := b.add(super, Options{})
	if target, err := os.Readlink(filepath.Join(w.Path(), "libs/bus-x")); err != nil || target != filepath.Join(b.workspace, "libs/bus-x") {
		t.Error(target, err)
	}
	if changes, err := w.Changes(t.Context(), 0); err != nil || changes.Total != 0 {
		t.Error(changes, err)
	}
	b.write(w.Path(), "README", "two\n")
	commit := b.commit(w)
	if got := b.git(b.workspace, "diff-tree", "-r", "--name-only", "--no-commit-id", commit); got != "README" {
		t.Errorf("committed: %q", got)
	}
	if moved, err := super.Promote(t.Context(), "main", commit, nil); err != nil || !moved {
		t.Error(moved, err)
	}
	// What a task puts in the place of a submodule would be lost.
	os.Remove(filepath.Join(w.Path(), "bus-y"))
	b.write(w.Path(), "bus-y/file", "lost\n")
	if _, err := w.Changes(t.Context(), 0); !errors.Is(err, ErrContent) {
		t.Error(err)
	}
	if err := w.Remove(t.Context(), true); err != nil {
		t.Error(err)
	}

	r, err := Open(t.Context(), filepath.Join(b.workspace, "bus-dev"), Config{Workspace: b.workspace, State: b.state})
	if err != nil {
		t.Fatal(err)
	}
	w, err = r.Add(t.Context(), Options{Root: b.root})
	if err != nil {
		t.Fatal(err)
	}
	if got := b.read(w.Path(), "../libs/bus-x/README"); got != "one\n" {
		t.Error(got)
	}
	if links := w.Links(); len(links) != 2 {
		t.Error(links)
	}
	if err := w.Remove(t.Context(), true); err != nil || b.read(b.workspace, "libs/bus-x/README") != "one\n" {
		t.Error(err)
	}
	for _, hostile := range []string{"../outside", "/etc", "a/../../b", ".git/hooks", "x/.GIT/y", "-x", "a//b", "a\\tb", "."} {
		b.write(b.workspace, ".gitmodules", "[submodule \"x\"]\n\tpath = \""+hostile+"\"\n")
		if _, err := r.Add(t.Context(), Options{Root: b.root}); !errors.Is(err, ErrName) {
			t.Errorf("%q: %v", hostile, err)
		}
	}
	os.Symlink("/etc", filepath.Join(b.workspace, "etc"))
	b.write(b.workspace, ".gitmodules", "[submodule \"x\"]\n\tpath = etc\n")
	if _, err := r.Add(t.Context(), Options{Root: b.root}); !errors.Is(err, ErrName) {
		t.Error(err)
	}
	if entries, _ := os.ReadDir(b.root); len(entries) > 0 {
		t.Error(entries)
	}
	if !slices.Equal(strings.Fields(b.git(filepath.Join(b.workspace, "bus-dev"), "branch", "--format=%(refname:short)")), []string{"main"}) {
		t.Error("branches are left")
	}
}
