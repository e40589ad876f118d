package worktree

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A plant makes plain git run $P. The configuration is written to the primary's
// .git/config, to its config.worktree, to a file that it includes, or to a fake
// repository in place of the worktree's .git.
type plant struct {
	key, value string // "$P" by default
	attributes string // for README, in .gitattributes of primary and worktree
	prepare    string // shell, in the primary
	fire       string // shell, in the worktree or, with primary, there
	primary    bool
}

const changed = "echo changed >>README; "

var plants = map[string]plant{
	"fsmonitor":           {key: "core.fsmonitor", fire: "git status"},
	"hooks path":          {key: "core.hooksPath", value: "$D", prepare: "for h in pre-commit post-checkout reference-transaction post-index-change; do cp $P $D/$h; done", fire: "git commit --allow-empty -qm x"},
	"hooks":               {prepare: "for h in pre-commit post-checkout reference-transaction post-index-change post-merge; do cp $P .git/hooks/$h; done", fire: "git commit --allow-empty -qm x"},
	"clean filter":        {key: "filter.x.clean", attributes: "filter=x", fire: changed + "git add README"},
	"required filter":     {key: "filter.x.clean", attributes: "filter=x", prepare: "git config filter.x.smudge cat; git config filter.x.required true", fire: changed + "git add README"},
	"smudge filter":       {key: "filter.x.smudge", attributes: "filter=x", fire: "rm README; git checkout -- README"},
	"process filter":      {key: "filter.x.process", attributes: "filter=x", fire: changed + "git add README"},
	"external diff":       {key: "diff.external", fire: changed + "git diff"},
	"diff driver":         {key: "diff.x.command", attributes: "diff=x", fire: changed + "git diff"},
	"textconv":            {key: "diff.x.textconv", attributes: "diff=x", fire: changed + "git diff"},
	"merge driver":        {key: "merge.x.driver", attributes: "merge=x", fire: "git checkout -q -b a; echo a >README; git commit -qam a; git checkout -q -b b HEAD~1; echo b >README; git commit -qam b; git merge a"},
	"info attributes":     {key: "filter.x.clean", prepare: "echo 'README filter=x' >.git/info/attributes", fire: changed + "git add README"},
	"attributes file":     {key: "filter.x.clean", prepare: "echo 'README filter=x' >$D/a; git config core.attributesFile $D/a", fire: changed + "git add README"},
	"pager":               {key: "core.pager", fire: "git grep -O one"},
	"editor":              {key: "core.editor", fire: "git commit --allow-empty"},
	"alias":               {key: "alias.x", value: "!$P", fire: "git x"},
	"signing program":     {key: "gpg.program", prepare: "git config commit.gpgSign true", fire: "git commit --allow-empty -qm x"},
	"credential helper":   {key: "credential.helper", value: "!$P", fire: "printf 'protocol=https\nhost=h.invalid\n\n' | git credential fill"},
	"ssh command":         {key: "core.sshCommand", fire: "git ls-remote ssh://h.invalid/x"},
	"upload pack":         {key: "remote.x.uploadpack", value: "$P </dev/null #", prepare: "git remote add x .", fire: "git fetch x"},
	"alternates command":  {key: "core.alternateRefsCommand", prepare: "git clone -q . .git/other; echo $PWD/.git/other/.git/objects >.git/objects/info/alternates", fire: "git rev-list --alternate-refs"},
	"submodule update":    {key: "submodule.s.update", value: "!$P", primary: true, prepare: "git clone -q . s; git -C s commit -q --allow-empty -m s; git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),s; printf '[submodule \"s\"]\n\tpath = s\n\turl = ./\n' >.gitmodules; git config submodule.s.url .; git config submodule.s.active true; git add .gitmodules; git commit -qm s", fire: "git submodule update"},
	"submodule monitor":   {primary: true, prepare: "git clone -q . s; git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),s; git commit -qm s; git -C s config core.fsmonitor $P", fire: "git status"},
	"included if":         {prepare: "printf '[core]\n\tfsmonitor = %s\n' $P >$D/c; git config includeIf.gitdir:**.path $D/c", fire: "git status"},
	"included":            {prepare: "printf '[core]\n\tfsmonitor = %s\n' $P >$D/c; git config include.path $D/c", fire: "git status"},
	"worktree's config":   {prepare: "git config extensions.worktreeConfig true; git config --worktree core.fsmonitor $P", fire: "git status", primary: true},
	"partial clone":       {prepare: "git config core.repositoryFormatVersion 1; git config extensions.partialClone x; git config remote.x.promisor true; git config remote.x.url ext::$P; git config protocol.ext.allow always", fire: "git cat-file -p 1234567890123456789012345678901234567890"},
	"promisor remote":     {prepare: "git config remote.x.promisor true; git config remote.x.url ext::$P; git config protocol.ext.allow always", fire: "git cat-file -p 1234567890123456789012345678901234567890"},
	"trailer command":     {key: "trailer.sign.command", fire: "git commit --allow-empty -qm x --trailer sign=x"},
	"automatic gc":        {key: "gc.autoPackLimit", value: "1", prepare: "cp $P .git/hooks/pre-auto-gc; for i in 1 2 3; do git commit -q --allow-empty -m $i; git -c gc.auto=0 repack -q; done", fire: "git gc --auto"},
	"maintenance":         {key: "gc.autoPackLimit", value: "1", prepare: "cp $P .git/hooks/pre-auto-gc; for i in 1 2 3; do git commit -q --allow-empty -m $i; git -c gc.auto=0 repack -q; done", fire: "git commit -q --allow-empty -m x"},
	"include in worktree": {prepare: "git config extensions.worktreeConfig true; printf '[core]\n\tfsmonitor = %s\n' $P >$D/c; git config --worktree include.path $D/c", fire: "git status", primary: true},
	"fake repository":     {fire: "rm -rf .git; git init -q .; git config core.fsmonitor $P; git status"},
	"fake .git file":      {fire: "rm -rf .git; git init -q ../fake; echo 'gitdir: ../fake/.git' >.git; git -C ../fake config core.fsmonitor $P; git status"},
	"fake .git link":      {fire: "rm -rf .git; git init -q ../fake; ln -s ../fake/.git .git; git -C ../fake config core.fsmonitor $P; git status"},
	"fake hooks":          {fire: "rm -rf .git; git init -q .; for h in pre-commit reference-transaction; do cp $P .git/hooks/$h; done; git commit --allow-empty -qm x"},
	"worktree of another": {fire: "rm -rf .git; git init -q .; git config core.worktree /; git config core.fsmonitor $P; git status"},
}

// arena plants p and returns the bench, and a shell for it.
func (p plant) arena(t *testing.T) (b *bench, fired func() bool, shell func(dir, script string) string) {
	b = newBench(t, "")
	program, folder := filepath.Join(b.dir, "program"), filepath.Join(b.dir, "planted")
	mark := filepath.Join(b.dir, "fired")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	shell = func(dir, script string) string {
		cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", script)
		cmd.Dir = dir
		cmd.Env = append(b.environ(), "P="+program, "D="+folder)
		out, _ := cmd.CombinedOutput() // many commands fail after what they run
		return string(out)
	}
	// A shell writes it: a child that is being started would keep it open for writing.
	shell(b.dir, fmt.Sprintf("printf '#!/bin/sh\\n: >%s\\n' >program; chmod +x program", mark))
	if p.attributes != "" {
		b.write(b.primary, ".gitattributes", "README "+p.attributes+"\n")
		b.git(b.primary, "add", ".")
		b.git(b.primary, "commit", "-qm", "attributes")
	}
	if p.prepare != "" {
		shell(b.primary, p.prepare)
	}
	if p.key != "" {
		value := p.value
		if value == "" {
			value = "$P"
		}
		value = strings.NewReplacer("$P", program, "$D", folder).Replace(value)
		shell(b.primary, "git config "+p.key+" '"+value+"'")
	}
	return b, func() bool { _, err := os.Lstat(mark); os.Remove(mark); return err == nil }, shell
}

// TestNothingPlantedRuns sees each plant run with plain git, and then not with any
// operation of the package.
func TestNothingPlantedRuns(t *testing.T) {
	t.Parallel()
	for name, p := range plants {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			control, fired, shell := p.arena(t)
			where := control.primary
			if !p.primary {
				where = filepath.Join(control.root, "checkout")
				os.Mkdir(control.root, 0o755)
				// A filter that does not do its work can end git.
				shell(control.primary, "git -c filter.x.process= -c filter.x.required=false worktree add -q "+where)
			}
			fired()
			if out := shell(where, p.fire); !fired() {
				t.Fatalf("plain git does not run it:\n%s", out)
			}

			b, fired, shell := p.arena(t)
			r, err := Open(t.Context(), b.primary, Config{Workspace: b.workspace, State: b.state})
			if name == "partial clone" {
				if err == nil {
					t.Error("a partial clone is opened")
				}
				if fired() {
					t.Error("it ran")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			fired()
			check := func(operation string) {
				t.Helper()
				if fired() {
					t.Errorf("%s ran it", operation)
				}
			}
			w := b.add(r, Options{})
			check("Add")
			if strings.HasPrefix(name, "fake") || strings.HasPrefix(name, "worktree of") {
				shell(w.Path(), p.fire)
				if !fired() {
					t.Error("the task did not run it")
				}
			}
			b.write(w.Path(), "README", "two\n")
			b.write(w.Path(), "new", "new\n")
			if _, err := w.Changes(t.Context(), 1<<20); err != nil {
				t.Error(err)
			}
			check("Changes")
			commit := b.commit(w)
			check("Commit")
			b.undo(r, w, map[string]string{"README": "tw", "new": "n"})
			check("undo")
			j := b.killed(r, w)
			b.put(map[string]string{"README": "tw", "new": "n"})
			if ok, err := r.Contains(t.Context(), "main", commit); err != nil || !ok || b.read(b.primary, "README") != "two\n" {
				t.Error(ok, err)
			}
			check("Contains of a killed promotion")
			if diff, err := r.DiffCommits(t.Context(), j.Old, j.New, 1<<20); err != nil || !strings.Contains(diff.Text, "+two") {
				t.Error(diff, err)
			}
			check("DiffCommits")
			second := b.work(r, func(dir string) { b.write(dir, "README", "three\n") })
			behind := b.work(r, func(dir string) { b.write(dir, "behind", "") })
			conflicting := b.work(r, func(dir string) { b.write(dir, "README", "four\n") })
			if done, err := second.Promote(t.Context(), true, nil); err != nil || !done.Moved || done.RebasedFrom != "" {
				t.Error(done, err)
			}
			check("Promote")
			if done, err := behind.Promote(t.Context(), true, nil); err != nil || done.RebasedFrom == "" {
				t.Error(done, err)
			}
			if _, err := conflicting.Promote(t.Context(), true, nil); !errors.Is(err, ErrConflict) {
				t.Error(err)
			}
			check("rebase")
			if ok, err := r.Contains(t.Context(), "main", commit); err != nil || !ok {
				t.Error(ok, err)
			}
			check("Contains")
			if err := w.Remove(t.Context(), true); err != nil {
				t.Error(err)
			}
			check("Remove")
			stale := b.add(r, Options{})
			stale.Close()
			if removed, err := r.Prune(t.Context(), func(Stale) bool { return true }); err != nil || len(removed) != 1 {
				t.Error(removed, err)
			}
			check("Prune")
			if b.read(b.primary, "README") != "three\n" || b.read(b.primary, "new") != "new\n" {
				t.Error("the primary has not followed")
			}
		})
	}
}

// Content of the repository that makes plain git see other commits or another checkout
// does not reach the package.
func TestForgedHistoryIsNotBelieved(t *testing.T) {
	t.Parallel()
	for name, forge := range map[string]func(b *bench, tip, commit string){
		"commit graph": func(b *bench, tip, commit string) { b.forgeGraph(tip, commit) },
		"replaced commit": func(b *bench, tip, commit string) {
			b.git(b.primary, "replace", commit, b.git(b.primary, "commit-tree", "-p", tip, "-m", "x", commit+"^{tree}"))
		},
		"graft": func(b *bench, tip, commit string) { b.write(b.primary, ".git/info/grafts", commit+" "+tip+"\n") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, "")
			r := b.open()
			w := b.work(r, func(dir string) { b.write(dir, "new", "x") })
			first := w.Head()
			b.write(w.Path(), "new", "y") // git does not use the graph for the commits that it is given
			b.commit(w)
			b.git(b.primary, "commit", "-q", "--allow-empty", "-m", "mine")
			tip := b.git(b.primary, "rev-parse", "main")
			forge(b, tip, first)
			if _, err := b.tryGit(b.primary, "merge-base", "--is-ancestor", tip, w.Head()); err != nil {
				t.Fatalf("plain git does not believe it: %v", err)
			}
			if moved, err := r.Promote(t.Context(), "main", w.Head(), nil); !errors.Is(err, ErrDiverged) || moved {
				t.Error(moved, err)
			}
			if got := b.git(b.primary, "rev-parse", "main"); got != tip {
				t.Errorf("main is %s", got)
			}
		})
	}
}

// forgeGraph writes a commit graph in which tip is the parent of commit.
func (b *bench) forgeGraph(tip, commit string) {
	b.t.Helper()
	b.git(b.primary, "-c", "commitGraph.generationVersion=1", "commit-graph", "write", "--reachable")
	name := filepath.Join(b.primary, ".git/objects/info/commit-graph")
	graph := []byte(b.read(b.primary, ".git/objects/info/commit-graph"))
	chunk := func(id string) []byte {
		at := bytes.Index(graph, []byte(id))
		return graph[binary.BigEndian.Uint64(graph[at+4:]):]
	}
	position := func(hash string) int {
		raw, err := hex.DecodeString(hash)
		if err != nil {
			b.t.Fatal(err)
		}
		return bytes.Index(chunk("OIDL"), raw) / len(raw)
	}
	entry := chunk("CDAT")[position(commit)*36:]
	binary.BigEndian.PutUint32(entry[20:], uint32(position(tip)))
	binary.BigEndian.PutUint32(entry[28:], 9<<2) // its generation, and no bits of its time
	if err := os.Chmod(name, 0o644); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(name, graph, 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// A task that lets the repository borrow its objects, in whatever way, gets no commit: it
// would be lost with them. Each row is the name of objects/info/alternates, and of another
// one that leads on; $W is the worktree.
func TestBorrowedObjectsAreRefused(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ first, second string }{
		"worktree":             {"$W/objects", ""},
		"quoted":               {`"$W/objects"`, ""},
		"relative":             {"../../../worktrees/../$R/objects", ""},
		"chain in workspace":   {"$S/x/objects", "$W/objects"},
		"chain by comment":     {"#x\n\n$S/x/objects", "$W/objects"},
		"outside":              {"$D/home/objects", ""},
		"link in workspace":    {"$S/link", ""},
		"chain to the outside": {"$S/x/objects", "$D/home/objects"},
		"loop":                 {"$S/x/objects", "$S/x/objects"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, "")
			r := b.open()
			w := b.add(r, Options{})
			b.write(w.Path(), "new", "borrowed\n")
			rel, err := filepath.Rel(b.dir, w.Path())
			if err != nil {
				t.Fatal(err)
			}
			expand := strings.NewReplacer("$W", w.Path(), "$R", rel, "$S", b.workspace, "$D", b.dir).Replace
			for _, dir := range []string{w.Path(), b.workspace + "/x", b.home} {
				if err := os.MkdirAll(dir+"/objects/info", 0o755); err != nil {
					t.Fatal(err)
				}
			}
			os.Symlink(w.Path()+"/objects", b.workspace+"/link")
			if row.second != "" {
				b.write(b.workspace, "x/objects/info/alternates", expand(row.second)+"\n")
			}
			b.write(b.primary, ".git/objects/info/alternates", expand(row.first)+"\n")
			if name != "loop" {
				// Plain git does not store what it finds there.
				target := w.Path()
				if strings.Contains(row.first+row.second, "$D") {
					target = b.home
				}
				hash := b.git(target, "hash-object", "--no-filters", w.Path()+"/new")
				cmd := exec.Command("git", "hash-object", "-w", "--no-filters", w.Path()+"/new")
				cmd.Dir, cmd.Env = b.primary, append(b.environ(), "GIT_OBJECT_DIRECTORY="+target+"/objects")
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("%v %s", err, out)
				}
				b.git(b.primary, "hash-object", "-w", "--no-filters", w.Path()+"/new")
				if exists(filepath.Join(b.primary, ".git/objects", hash[:2], hash[2:])) {
					t.Fatal("plain git stores it")
				}
			}
			if commit, err := w.Commit(t.Context(), "", "work", Identity{}); !errors.Is(err, ErrUnsupported) {
				t.Error(commit, err)
			}
			if b.git(b.primary, "rev-parse", w.Branch()) != w.Base() {
				t.Error("the branch has moved")
			}
		})
	}
}

// Configuration that moves the checkout, or that is of an unknown kind.
func TestConfigurationOfTheCheckout(t *testing.T) {
	t.Parallel()
	b := newBench(t, "")
	elsewhere := filepath.Join(b.dir, "elsewhere")
	if err := os.Mkdir(elsewhere, 0o755); err != nil {
		t.Fatal(err)
	}
	b.git(b.primary, "config", "core.worktree", elsewhere)
	b.git(b.primary, "checkout", "-f", "main")
	if b.read(elsewhere, "README") != "one\n" {
		t.Fatal("plain git does not follow core.worktree")
	}
	r := b.open()
	w := b.work(r, func(dir string) { b.write(dir, "README", "two\n") })
	if _, err := w.Promote(t.Context(), false, nil); err != nil {
		t.Error(err)
	}
	if b.read(b.primary, "README") != "two\n" || b.read(elsewhere, "README") != "one\n" {
		t.Error("the other folder was written")
	}
	config := b.read(b.primary, ".git/config")
	for _, extension := range []string{"refStorage = reftable", "partialClone = x", "compatObjectFormat = sha256", "unknown = 1"} {
		b.write(b.primary, ".git/config", config+"[extensions]\n\t"+extension+"\n")
		if _, err := Open(t.Context(), b.primary, Config{Workspace: b.workspace, State: b.state}); !errors.Is(err, ErrUnsupported) {
			t.Errorf("%s: %v", extension, err)
		}
	}
}
