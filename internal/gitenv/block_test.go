package gitenv

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Git waits for none of these FIFOs, since they are refused wherever they are, with trust
// too. What git does not open is accepted.
func TestHostileFilesThatBlockGit(t *testing.T) {
	t.Parallel()
	const tools = `set -e
put() { printf '[%s]\n\t%s = %s\n' "$1" "$2" "$3" >>.git/config; }
ignore() { put core excludesFile "$1"; }
`
	for name, c := range map[string]struct {
		prepare string
		want    string // in the error; "" if it is accepted
		trusted string // the same with trust; "-" if it is accepted
	}{
		"an ignore file next to the workdir": {prepare: "mkfifo other/.gitignore", want: "other/.gitignore is not a regular file"},
		"attributes next to the workdir":     {prepare: "mkfifo other/.gitattributes", want: "other/.gitattributes is"},
		"a linked ignore file":               {prepare: "mkfifo f2 && ln -s ../f2 other/.gitignore", want: "other/.gitignore is"},
		"a .git next to the workdir":         {prepare: "mkfifo other/.git", want: "other/.git is"},
		"submodules of a submodule":          {prepare: "mkdir other/s && cp -a .git other/s && mkfifo other/s/.gitmodules", want: "other/s/.gitmodules is"},
		"an object":                          {prepare: "mkdir .git/objects/aa && mkfifo .git/objects/aa/bb", want: ".git/objects/aa/bb is"},
		"an object by a link":                {prepare: `mkfifo f2 && mkdir .git/objects/aa && ln -s "$PWD/f2" .git/objects/aa/bb`, want: ".git/objects/aa/bb is"},
		"an object by a linked folder":       {prepare: `mkdir aa && mkfifo aa/bb && ln -s "$PWD/aa" .git/objects/aa`, want: "aa/bb is"},
		"an alternate":                       {prepare: "mkdir -p alt/aa && mkfifo alt/aa/bb && echo ../../alt >.git/objects/info/alternates", want: "alt/aa/bb is"},
		"an alternate's alternate, quoted":   {prepare: `mkdir -p alt/info b/aa && mkfifo b/aa/bb && printf '#\n"../../a\\154t"\n' >.git/objects/info/alternates && echo ../b >alt/info/alternates`, want: "b/aa/bb is"},
		"an alternate with a NUL":            {prepare: "mkdir -p alt/aa && mkfifo alt/aa/bb && printf '../../alt\\0x' >.git/objects/info/alternates", want: "alt/aa/bb is"},
		"an alternate, quoted NUL":           {prepare: `mkdir -p alt/aa && mkfifo alt/aa/bb && printf '"../../alt\\000x"\n' >.git/objects/info/alternates`, want: "alt/aa/bb is"},
		"a bisection":                        {prepare: "mkfifo .git/BISECT_START", want: ".git/BISECT_START is"},
		"a worktree's":                       {prepare: "mkdir -p .git/worktrees/w && mkfifo .git/worktrees/w/gitdir", want: ".git/worktrees/w/gitdir is"},
		"a bare repository's":                {prepare: "cp -a .git bare && mkfifo bare/packed-refs", want: "bare/packed-refs is"},
		"a .git file's":                      {prepare: "mv .git ../g && echo gitdir: ../g >.git && mkfifo ../g/MERGE_HEAD", want: "g/MERGE_HEAD is"},
		"a configuration":                    {prepare: "rm .git/config && mkfifo .git/config", want: ".git/config is"},
		"an include":                         {prepare: "mkfifo f2 && put include path ../f2", want: "f2 is", trusted: "f2"},
		"a named file":                       {prepare: "mkfifo f2 && ignore f2", want: "f2, which "},
		"a named file, a comment":            {prepare: "mkfifo f2 && ignore 'f2 ; c'", want: "f2, which "},
		"a named file, quotes":               {prepare: `mkfifo f2 && ignore 'f""2'`, want: "f2, which "},
		"a named file, two lines":            {prepare: `mkfifo f2 && printf '[core]\r\nexcludesFile=f\\\r\n2\r\n' >.git/config`, want: "f2, which "},
		"a named file, a section with =":     {prepare: `mkfifo f2 && printf '[core]\n\texcludesFile = f2\n' >e && printf '[includeIf "onbranch:*=*"] path=../e' >>.git/config`, want: "f2, which "},
		"a named file, an include":           {prepare: `mkfifo f2 && printf '[core]\n\texcludesFile = f2\n' >e && put include path ../e`, want: "f2, which "},
		"a named file, optional":             {prepare: "mkfifo f2 && ignore ':(optional)f2'", want: "f2, which "},
		"a named file in the home":           {prepare: "mkfifo ~/f2 && ignore '~/f2'", want: "home/f2, which "},
		"a named file of a submodule":        {prepare: "mkdir s .git/modules && cp -a .git ../s && mv ../s .git/modules && printf '[core]\n\tworktree = ../../../s\n\texcludesFile = ../f2\n' >>.git/modules/s/config && echo gitdir: ../.git/modules/s >s/.git && mkfifo f2", want: "f2, which "},
		"a named file of a linked worktree":  {prepare: `mkdir -p w .git/worktrees/w && echo ../.. >.git/worktrees/w/commondir && cp .git/HEAD .git/worktrees/w && echo "gitdir: $PWD/.git/worktrees/w" >w/.git && mkfifo w/f2 && ignore f2`, want: "w/f2, which "},
		"a file of another user":             {prepare: "ignore '~root/f2'", want: "core.excludesfile names a file that cannot be found out", trusted: "-"},
		"a file of git's installation":       {prepare: "ignore '%(prefix)/f2'", want: "core.excludesfile names a file that cannot be found out", trusted: "-"},

		"a FIFO that git does not open": {prepare: "mkfifo other/fifo"},
		"the null device":               {prepare: "ignore /dev/null; ln -s /dev/null .git/info/x; ln -s /dev/null other/.gitignore"},
		"shared folders":                {prepare: `mkdir ../again && mv .git/objects .git/refs ../again && ln -s "$PWD/../again/objects" "$PWD/../again/refs" .git`},
		"folders":                       {prepare: "mkdir other/.gitignore .git/x; ln -s . .git/loop; ln -s nowhere .git/none"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repo, home := empty(t)
			if out := shell(t, repo, plain(home), tools+"mkdir sub other; touch f;"+c.prepare); out != "" {
				t.Fatal(out)
			}
			for trusted, want := range map[bool]string{false: c.want, true: c.trusted} {
				if want == "" {
					want = c.want
				}
				_, err := Neutralize(t.Context(), Query{Workdir: filepath.Join(repo, "sub"), Below: []string{repo}, Environ: plain(home), Trusted: trusted})
				switch {
				case want == "" || want == "-":
					if err != nil {
						t.Errorf("trusted %t: %v", trusted, err)
					}
				case err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, ErrBlocks) && !errors.Is(err, ErrUnknown):
					t.Errorf("trusted %t: %v, want %q", trusted, err, want)
				}
			}
		})
	}
}

// A configuration that a file includes many times is searched once.
func TestIncludedAgain(t *testing.T) {
	t.Parallel()
	repo, _ := empty(t)
	write(t, repo+"/.git/config", strings.Repeat("[include]\n\tpath = x\n", 20))
	write(t, repo+"/.git/x", "[include]\n\tpath = config\n")
	f := newFinder(t)
	c, err := f.config(repo+"/.git/config", 0)
	if err != nil {
		t.Fatal(err)
	}
	if all, err := f.flat([]*configuration{c}); err != nil || len(all) != 3 || f.files != 2 {
		t.Errorf("%d configurations of %d files, %v", len(all), f.files, err)
	}
}

// A commondir that is too large to read is refused: git reads all of it.
func TestCommondirThatCannotBeRead(t *testing.T) {
	t.Parallel()
	repo, home := empty(t)
	write(t, repo+"/b/HEAD", "ref: refs/heads/main\n")
	write(t, repo+"/b/commondir", "../.git\x00"+strings.Repeat("x", maxFile))
	_, err := Neutralize(t.Context(), Query{Workdir: repo, Below: []string{repo}, Environ: plain(home)})
	if err == nil || !strings.Contains(err.Error(), "b/commondir: ") {
		t.Error(err)
	}
}

func TestUnfinishedRebase(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"exec make\n": 1, "pick 1 a\n  x make\n": 1, "pick 1 exec\n# exec make\nfixup 2 x\n": 0, strings.Repeat("#\n", maxFile): 1,
	} {
		repo, home := empty(t)
		write(t, repo+"/.git/rebase-merge/git-rebase-todo", text)
		if r := neutralize(t, repo, plain(home)); len(r.Commands) != want {
			t.Errorf("%.40q: %q, want %d", text, r.Commands, want)
		}
	}
}

func TestAround(t *testing.T) {
	t.Parallel()
	repo, home := repository(t)
	shell(t, repo, plain(home), "git worktree add -q ../w && printf 'gitdir: %s\\0x' \"$PWD/.git/worktrees/w\" >../w/.git && printf '../..\\0x' >.git/worktrees/w/commondir && mkdir -p ../w/n/d && git -C ../w/n init -q && ln -s w ../link && mkdir -p ../e/.git/x ../e/d ~/p/d && git init -q ~ && git clone -q --bare . ../b && mkdir -p ../h && ln -s . ../h/self && git init -q ../h")
	at := func(names ...string) (paths []string) {
		for _, name := range names {
			paths = append(paths, filepath.Join(filepath.Dir(repo), name))
		}
		return paths
	}
	for dir, want := range map[string][]string{
		"repo": at("repo"), "w": at("w", "repo"), "w/n/d": at("w", "repo"), "link/n": at("w", "repo"), "e/d": at("e/d"),
		"home": at("home"), "home/p/d": at("home/p/d"), "b/refs/heads": at("b"), ".": at("."), "missing/x": at("missing/x"),
	} {
		if got := Around(at(dir)[0], home); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", dir, got, want)
		}
	}
	for home, want := range map[string]bool{at("h")[0]: true, at("h/self")[0]: false, ".": false, "": false, at("home")[0]: false} {
		if got := IsHomeOrRoot(at("h")[0], home); got != want {
			t.Errorf("%q: %t, want %t", home, got, want)
		}
	}
}
