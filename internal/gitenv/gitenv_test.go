package gitenv

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/busdk/bus-agent/internal/testneed"
	"github.com/busdk/bus-agent/internal/tree"
)

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func neutralize(t *testing.T, repo string, environ []string) Result {
	t.Helper()
	r, err := Neutralize(t.Context(), Query{Workdir: repo, Below: []string{repo}, Environ: environ})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Wherever a repository below, above or next to it keeps its configuration and hooks,
// git run in it runs nothing.
func TestHostileConfigurationIsFoundInEveryPlace(t *testing.T) {
	t.Parallel()
	const tools = `
evil() { printf '[core]\n\tfsmonitor = program\n' >>"$1"; }
worktree() { printf '[core]\n\tworktree = %s\n' "$2" >>"$1"; }
include() { printf '[include]\n\tpath = %s\n' "$1" >>.git/config; }
clone() { cp -a .git ../clone && mkdir -p "${1%/*}" && mv ../clone "$1"; }
`
	const bareInTwo = "mkdir b && cp .git/HEAD b && cp -a .git evil && evil evil/config && "
	for name, c := range map[string]struct {
		prepare string
		at      string // workdir
		fire    string // "git status" by default
	}{
		"the configuration":          {"evil .git/config", ".", ""},
		"from a folder":              {"mkdir d && evil .git/config", "d", ""},
		"an include":                 {`evil "$D/evil" && include "$D/evil"`, ".", ""},
		"a relative include":         {"evil evil && include ../evil", ".", ""},
		"an include of home":         {`evil "$HOME/evil" && include '~/evil'`, ".", ""},
		"an include below a link":    {`evil evil && mkdir "$D/g" && mv .git/config "$D/g/config" && ln -s "$D/g/config" .git/config && ln -s "$PWD/evil" "$D/evil" && include ../evil && cp evil .git/evil && cp evil .git/../../evil && cp evil "$D/../evil"`, ".", ""},
		"a conditional include":      {`evil evil && printf '[includeIf "onbranch:main"]\n\tpath = ../evil\n' >>.git/config`, ".", ""},
		"an include in an include":   {"evil evil2 && printf '[include]\n\tpath=evil2\n' >evil && include ../evil", ".", ""},
		"the worktree's":             {"printf '[extensions]\n\tworktreeConfig = true\n' >>.git/config && evil .git/config.worktree", ".", ""},
		"a linked worktree":          {"git worktree add -q ../w -b w && evil .git/config", "../w", ""},
		"a linked worktree's own":    {"git worktree add -q ../w -b w && git config extensions.worktreeConfig true && evil .git/worktrees/w/config.worktree", "../w", ""},
		"a .git file outside":        {`mv .git ../elsewhere && echo "gitdir: $PWD/../elsewhere" >.git && evil ../elsewhere/config`, ".", ""},
		"a .git that is a link":      {"mv .git ../elsewhere && ln -s ../elsewhere .git && evil ../elsewhere/config", ".", ""},
		"a configuration by link":    {"evil .git/config && mv .git/config ../config && ln -s ../../config .git/config", ".", ""},
		"a repository below":         {"clone a/b/c/.git && evil a/b/c/.git/config", ".", "cd a/b/c; git status"},
		"a gitlink":                  {"clone s/.git && git add s && evil s/.git/config", ".", ""},
		"a submodule":                {"clone .git/modules/s && mkdir s && echo gitdir: ../.git/modules/s >s/.git && worktree .git/modules/s/config ../../../s && git add s && evil .git/modules/s/config", ".", ""},
		"a committed bare one":       {"cp -a .git bare && worktree bare/config .. && evil bare/config", ".", "cd bare; git status"},
		"a bare one within .git":     {"clone .git/bare && worktree .git/bare/config ../.. && evil .git/bare/config", ".", "cd .git/bare; git status"},
		"one within another's .git":  {"clone .git/s/.git && evil .git/s/.git/config", ".", "cd .git/s; git status"},
		"a filter without a name":    {"printf '[filter \"\"]\n\tclean = program\n' >>.git/config; echo 'f filter=' >.git/info/attributes", ".", "rm .git/index; git add f"},
		"a merge without a name":     {"printf '[merge \"\"]\n\tdriver = program\n' >>.git/config; echo 'f merge=' >.git/info/attributes", ".", "git merge b; git merge --abort"},
		"the workdir is bare":        {"cp -a .git bare && worktree bare/config .. && evil bare/config", "bare", ""},
		"commondir":                  {"mkdir fake && echo ref: refs/heads/main >fake/HEAD && echo ../.git >fake/commondir && evil .git/config", ".", "cd fake; GIT_WORK_TREE=.. git status"},
		"commondir with a NUL":       {bareInTwo + "printf '../evil\\0' >b/commondir", "b", "GIT_WORK_TREE=.. git status"},
		"a .git file with a NUL":     {"clone evil/.git && evil evil/.git/config && mkdir w && printf 'gitdir: ../evil/.git\\0x\\n' >w/.git", "w", ""},
		"hooks":                      {`cp "$P" .git/hooks/post-checkout`, ".", "git checkout -q -b other"},
		"hooks of a submodule":       {`clone s/.git && cp "$P" s/.git/hooks/post-checkout`, ".", "cd s; git checkout -q -b other"},
		"hooks by a link":            {`cp "$P" h; ln -sf "$PWD/h" .git/hooks/post-checkout`, ".", "git checkout -q -b other"},
		"relative hooks of the user": {`mkdir h; cp "$P" h/post-checkout; git config --global core.hooksPath h`, ".", "git checkout -q -b other"},
		"core.worktree":              {"clone s/.git && git add s && mkdir d && mv .git d/.git && worktree d/.git/config ../.. && evil s/.git/config", "d", ""},
		"GIT_DIR":                    {"mv .git ../gd && evil ../gd/config", ".", "GIT_DIR=../gd GIT_WORK_TREE=. git status"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repo, home := repository(t)
			dir := filepath.Dir(repo)
			if out := shell(t, repo, append(plain(home), "P="+dir+"/bin/program", "D="+dir+"/hooks"), "set -e;"+tools+c.prepare); strings.Contains(out, "fatal") || strings.Contains(out, "cannot") {
				t.Fatal(out)
			}
			at := filepath.Join(repo, c.at)
			environ := plain(home)
			if name == "GIT_DIR" {
				environ = append(environ, "GIT_DIR=../gd")
			}
			got, err := Neutralize(t.Context(), Query{Workdir: at, Below: []string{at}, Environ: environ})
			if err != nil {
				t.Fatal(err)
			}
			f := firing{fire: cmp.Or(c.fire, "git status")}
			if fired, out := f.run(t, at, append(environ, got.Env...)); fired != nil {
				t.Errorf("it is run in spite of %q:\n%s", got.Env, out)
			}
			f.fire = strings.ReplaceAll(f.fire, "other", "third")
			if fired, out := f.run(t, at, environ); fired == nil {
				t.Fatalf("plain git does not run it:\n%s", out)
			}
		})
	}
}

// What git-lfs configured in the repository alone is reported, so that the user can
// configure it for all.
func TestFiltersOfLFS(t *testing.T) {
	t.Parallel()
	const lfs = "[filter \"lfs\"]\n\tclean=git-lfs clean -- %f\n\tprocess=git-lfs filter-process\n"
	for name, c := range map[string]struct {
		repo, global string
		want         bool
	}{
		"in the repository alone": {lfs, "", true},
		"the user's too":          {lfs, lfs, false},
		"the user's are others":   {lfs, strings.ReplaceAll(lfs, "git-lfs", "/opt/git-lfs"), false},
		"another filter":          {strings.ReplaceAll(lfs, `"lfs"`, `"x"`), "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			home, work := t.TempDir(), t.TempDir()
			for _, dir := range []string{"objects", "refs"} {
				if err := os.MkdirAll(filepath.Join(work, ".git", dir), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			for name, text := range map[string]string{filepath.Join(work, ".git/HEAD"): "ref: refs/heads/main\n", filepath.Join(work, ".git/config"): c.repo, filepath.Join(home, ".gitconfig"): c.global} {
				if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			result, err := Neutralize(t.Context(), Query{Workdir: work, Below: []string{work}, Environ: []string{"HOME=" + home, "GIT_CONFIG_NOSYSTEM=1"}})
			if err != nil || result.LFS != c.want {
				t.Errorf("%t, %v, want %t", result.LFS, err, c.want)
			}
		})
	}
}

// What the user has configured stays in effect where the repository sets the same.
func TestUsersConfigurationStays(t *testing.T) {
	t.Parallel()
	testneed.Program(t, "git")
	for name, c := range map[string]struct {
		repo, global string
		environ      []string
		ask          string
		want         string
	}{
		"a name":                     {"[core]\n\tfsmonitor=/x", "[user]\n\tname=me", nil, "git config user.name", "me"},
		"the same driver":            {"[filter \"lfs\"]\n\tclean=evil\n\tprocess=evil\n\trequired=true", "[filter \"lfs\"]\n\tclean=good\n\tprocess=fine\n\trequired=true", nil, "git config filter.lfs.clean; git config filter.lfs.process; git config filter.lfs.required", "good\nfine\ntrue"},
		"a required setting too":     {"[filter \"x\"]\n\tclean=evil\n\trequired=true", "", nil, "git config filter.x.clean; git config filter.x.required", "\nfalse"},
		"helpers in their order":     {"[credential]\n\thelper=evil", "[credential]\n\thelper=\"!echo username=one;:\"\n\thelper=\"!echo password=two;:\"", nil, "printf 'protocol=https\nhost=h\n\n' | git credential fill", "protocol=https\nhost=h\nusername=one\npassword=two"},
		"a helper of one host":       {"[credential]\n\thelper=evil", "[credential \"https://h\"]\n\thelper=\"!echo username=one; echo password=two;:\"", nil, "printf 'protocol=https\nhost=h\n\n' | git credential fill", "protocol=https\nhost=h\nusername=one\npassword=two"},
		"by an include":              {"[core]\n\teditor=evil", "[include]\n\tpath=more", nil, "git config core.editor", "included"},
		"counted variables":          {"[core]\n\teditor=evil", "[core]\n\teditor=global", []string{"GIT_CONFIG_COUNT=2", "GIT_CONFIG_KEY_0=core.Editor", "GIT_CONFIG_VALUE_0=counted", "GIT_CONFIG_KEY_1=user.name", "GIT_CONFIG_VALUE_1=me"}, "git config core.editor; git config user.name", "counted\nme"},
		"parameters":                 {"[core]\n\teditor=evil", "", []string{`GIT_CONFIG_PARAMETERS='user.name=it'\''s me' 'core.editor'='p=q'`}, "git config core.editor; git config user.name", "p=q\nit's me"},
		"hooks of the user":          {"[core]\n\thooksPath=evil", "[core]\n\thooksPath=/mine", nil, "git config core.hooksPath", "/mine"},
		"the pager of the user":      {"[core]\n\tpager=evil", "[core]\n\tpager=less", nil, "git var GIT_PAGER", "less"},
		"what runs nothing":          {"[core]\n\tfsmonitor=true\n[pager]\n\tlog=false\n[remote \"o\"]\n\turl=x", "", nil, "git config core.fsmonitor; git config pager.log; git config remote.o.url", "true\nfalse\nx"},
		"a subsection with a quote=": {"[diff \"a'b=c\"]\n\ttextconv=evil", "", nil, `git config "diff.a'b=c.textconv"`, "cat"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repo, home := empty(t)
			write(t, home+"/.gitconfig", c.global)
			write(t, home+"/more", "[core]\n\teditor=included\n")
			text, err := os.ReadFile(repo + "/.git/config")
			if err != nil {
				t.Fatal(err)
			}
			write(t, repo+"/.git/config", string(text)+c.repo+"\n")
			environ := append(plain(home), c.environ...)
			// The last of two values counts for exec as for a shell.
			environ = slices.DeleteFunc(environ, func(s string) bool { return strings.HasPrefix(s, Parameters+"=") })
			got := neutralize(t, repo, append(plain(home), c.environ...))
			if len(got.Env) == 0 {
				environ = append(plain(home), c.environ...)
			}
			if out := strings.TrimRight(shell(t, repo, append(environ, got.Env...), c.ask), "\n"); out != c.want {
				t.Errorf("got %q, want %q; set are %q", out, c.want, got.Env)
			}
		})
	}
}

func TestOrdinaryRepositoryNeedsNothing(t *testing.T) {
	t.Parallel()
	repo, home := repository(t)
	shell(t, repo, plain(home), "git remote add origin https://h.invalid/x; git config branch.main.remote origin; git config user.name x; git config core.autocrlf input; git clone -q . sub")
	if got := neutralize(t, repo, plain(home)); len(got.Env) != 0 || got.String() != "" {
		t.Errorf("got %q", got)
	}
}

// What cannot be overridden, read or followed is an error that names the file.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		make func(t *testing.T, repo string)
		want string
	}{
		"an upload pack":         {config("[remote \"o\"]\n\tuploadpack = x\n"), ".git/config: remote.o.uploadpack"},
		"no configuration":       {config("[core\n"), ".git/config: it is not valid"},
		"a NUL":                  {config("[core]\n\tx = a\x00b\n"), ".git/config: it is not valid"},
		"an unknown expansion":   {config("[include]\n\tpath = ~other/x\n"), ".git/config: include.path"},
		"a prefix":               {config("[include]\n\tpath = %(prefix)/x\n"), ".git/config: include.path"},
		"an include of a device": {config("[include]\n\tpath = /dev/zero\n"), "/dev/zero is not a regular file"},
		"endless includes":       {config("[include]\n\tpath = ./../.git/./../.git/config\n[include]\n\tpath=a/../a/../config\n"), ""},
		"too large":              {config("#" + strings.Repeat("x", maxFile)), ".git/config: file is too large"},
		"too many keys":          {config("[alias]\n" + strings.Join(names(6000), "")), "bytes are needed"},
		"a FIFO": {func(t *testing.T, repo string) {
			os.Remove(repo + "/.git/config")
			if err := syscall.Mkfifo(repo+"/.git/config", 0o600); err != nil {
				t.Fatal(err)
			}
		}, ".git/config is not a regular file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repo, home := empty(t)
			c.make(t, repo)
			_, err := Neutralize(t.Context(), Query{Workdir: repo, Below: []string{repo}, Environ: plain(home)})
			if c.want == "" && err == nil {
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// Beyond the limit of the survey nothing is refused: what was found is overridden,
// and what git runs by itself in any case.
func TestBeyondTheLimit(t *testing.T) {
	t.Parallel()
	repo, home := empty(t)
	write(t, repo+"/.git/config", "[core]\n\tfsmonitor=evil\n[diff \"x\"]\n\ttextconv=evil\n")
	write(t, repo+"/a/b/.git/config", "[core]\n\thooksPath=evil\n[diff \"y\"]\n\ttextconv=evil\n")
	for limit, want := range map[int]string{
		tree.SurveyEntries: "core.fsmonitor=false diff.x.textconv=cat core.hookspath=/dev/null diff.y.textconv=cat",
		1:                  "core.fsmonitor=false diff.x.textconv=cat core.hookspath=/dev/null",
	} {
		s, err := tree.NewSurvey(t.Context(), limit, Names(), repo)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Neutralize(tree.WithSurvey(t.Context(), s), Query{Workdir: repo, Below: []string{repo}, Environ: plain(home)})
		if env := strings.ReplaceAll(strings.Join(got.Env, " "), "'", ""); err != nil || env != Parameters+"="+want || got.Partial != (limit == 1) {
			t.Errorf("limit %d: %q, partial %t, %v", limit, env, got.Partial, err)
		}
	}
}

// A folder with more files than are looked at may have hooks, so they do not run.
func TestManyHooks(t *testing.T) {
	t.Parallel()
	repo, home := empty(t)
	for i := range maxFiles + 1 {
		if err := os.Link(repo+"/.git/config", filepath.Join(repo, ".git/hooks", strconv.Itoa(i))); err != nil {
			t.Fatal(err)
		}
	}
	r := neutralize(t, repo, plain(home))
	if len(r.Left) != 1 || !strings.Contains(r.Left[0], "hooks: (more than 10000 files)") || !strings.Contains(strings.Join(r.Env, " "), "core.hookspath") {
		t.Errorf("got %q, %q", r.Left, r.Env)
	}
}

func names(n int) (lines []string) {
	for i := range n {
		lines = append(lines, fmt.Sprintf("\tk%d = !x\n", i))
	}
	return lines
}

func config(text string) func(*testing.T, string) {
	return func(t *testing.T, repo string) { write(t, repo+"/.git/config", text) }
}

func TestCanceled(t *testing.T) {
	t.Parallel()
	repo, home := empty(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Neutralize(ctx, Query{Workdir: repo, Below: []string{repo}, Environ: plain(home)}); err != context.Canceled {
		t.Error(err)
	}
}

// The parser reads what git reads.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"[a]\n\tb = c\n", "[a \"B.c\"]d\n", "[a.B]\nC=1", "[a]b=\"x ; y\" # z\n", "[a]\r\nb = c\\\r\n d\r\n", "\xef\xbb\xbf[a]b=c", "[a]b=\\t\\\"\\\\", "[a]b=c  d  ", "[a \"x\\\"y\"]b", "[a]b c", "[a]1=2", "[a] b = \"\n", "[a \"\\", "[a]\nb=x\\",
	} {
		f.Add(text)
	}
	testneed.Program(f, "git")
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text string) {
		entries, err := parse([]byte(text))
		if err != nil || len(text) > 4096 {
			return // stricter than git is safe
		}
		name := filepath.Join(dir, "config")
		write(t, name, text)
		cmd := exec.Command("git", "config", "--null", "--list", "--no-includes", "--file", name)
		cmd.Env = plain(dir)
		out, err := cmd.Output()
		if err != nil {
			return // git runs nothing then
		}
		var keys, want []string
		for _, e := range entries {
			keys = append(keys, e.key)
		}
		for item := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
			key, _, _ := strings.Cut(item, "\n")
			if key != "" {
				want = append(want, key)
			}
		}
		if !slices.Equal(keys, want) {
			t.Errorf("%q: got %q, git has %q", text, keys, want)
		}
	})
}

// Files that include each other by many names are read in bounded time.
func TestIncludesAreBounded(t *testing.T) {
	t.Parallel()
	repo, home := empty(t)
	write(t, repo+"/.git/config", "[include]\n\tpath = x\n")
	write(t, repo+"/.git/x", "#")
	for name, c := range map[string]struct {
		files, bytes int
		want         string
	}{
		"none too many":  {maxFiles - 2, maxBytes - 100, ""},
		"too many files": {maxFiles - 1, 0, "/x: more than 10000 files"},
		"too many bytes": {0, maxBytes - len("[include]\n\tpath = x\n"), "/x: more than 10000 files or 67108864 bytes of git configuration"},
	} {
		f := newFinder(t)
		f.files, f.bytes = c.files, c.bytes
		if _, err := f.config(repo+"/.git/config", 0); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	f := &finder{ctx: ctx, home: home, seen: make(map[string]bool)}
	if _, err := f.config(repo+"/.git/config", 0); err != context.Canceled {
		t.Error(err)
	}
}
