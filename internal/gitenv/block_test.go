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
	const object = "o=$(git rev-parse HEAD); o=${o%${o#??}}/${o#??}; "
	const excludes = `printf '[core]\n\texcludesFile = %s\n' `
	for name, c := range map[string]struct {
		prepare string
		want    string // in the error; "" if it is accepted
		trusted string // the same with trust; "-" if it is accepted
	}{
		"an ignore file next to the workdir": {prepare: "mkfifo other/.gitignore", want: "other/.gitignore is not a regular file"},
		"attributes next to the workdir":     {prepare: "mkfifo other/.gitattributes", want: "other/.gitattributes is"},
		"a linked ignore file":               {prepare: "mkfifo f2 && ln -s ../f2 other/.gitignore", want: "other/.gitignore is"},
		"a .git next to the workdir":         {prepare: "mkfifo other/.git", want: "other/.git is"},
		"submodules of a submodule":          {prepare: "git clone -q . other/s && mkfifo other/s/.gitmodules", want: "other/s/.gitmodules is"},
		"an object":                          {prepare: object + "mkfifo .git/objects/x && mv .git/objects/x .git/objects/$o", want: ".git/objects/"},
		"an object by a link":                {prepare: "mkfifo f2 && mkdir -p .git/objects/aa && ln -s $PWD/f2 .git/objects/aa/bb", want: ".git/objects/aa/bb is"},
		"an object by a linked folder":       {prepare: "mkdir aa && mkfifo aa/bb && ln -s $PWD/aa .git/objects/aa", want: "aa/bb is"},
		"an alternate":                       {prepare: "mkdir -p alt/aa && mkfifo alt/aa/bb && echo ../../alt >.git/objects/info/alternates", want: "alt/aa/bb is"},
		"an alternate's alternate, quoted":   {prepare: `mkdir -p alt/info b/aa && mkfifo b/aa/bb && printf '#\n"../../a\\154t"\n' >.git/objects/info/alternates && echo ../b >alt/info/alternates`, want: "b/aa/bb is"},
		"an alternate with a NUL":            {prepare: "mkdir -p alt/aa && mkfifo alt/aa/bb && printf '../../alt\\0x' >.git/objects/info/alternates", want: "alt/aa/bb is"},
		"an alternate, quoted NUL":           {prepare: `mkdir -p alt/aa && mkfifo alt/aa/bb && printf '"../../alt\\000x"\n' >.git/objects/info/alternates`, want: "alt/aa/bb is"},
		"a bisection":                        {prepare: "mkfifo .git/BISECT_START", want: ".git/BISECT_START is"},
		"a worktree's":                       {prepare: "git worktree add -q ../w && rm .git/worktrees/w/gitdir && mkfifo .git/worktrees/w/gitdir", want: ".git/worktrees/w/gitdir is"},
		"a bare repository's":                {prepare: "git clone -q --bare . bare && rm -f bare/packed-refs && mkfifo bare/packed-refs", want: "bare/packed-refs is"},
		"a .git file's":                      {prepare: "mv .git ../g && echo gitdir: ../g >.git && mkfifo ../g/MERGE_HEAD", want: "g/MERGE_HEAD is"},
		"a configuration":                    {prepare: "rm .git/config && mkfifo .git/config", want: ".git/config is"},
		"an include":                         {prepare: "mkfifo f2 && git config include.path ../f2", want: "f2 is", trusted: "f2"},
		"a named file":                       {prepare: "mkfifo f2 && git config core.excludesFile f2", want: "f2, which "},
		"a named file, a comment":            {prepare: "mkfifo f2 && " + excludes + "'f2 ; c' >>.git/config", want: "f2, which "},
		"a named file, quotes":               {prepare: "mkfifo f2 && " + excludes + `'f""2' >>.git/config`, want: "f2, which "},
		"a named file, two lines":            {prepare: "mkfifo f2 && " + excludes + `'f\' 2 >>.git/config && printf '[core]\r\nexcludesFile=f\\\r\n2\r\n' >.git/config`, want: "f2, which "},
		"a named file, a section with =":     {prepare: "mkfifo f2 && " + excludes + "f2 >e && printf '[includeIf \"onbranch:*=*\"] path=../e' >>.git/config", want: "f2, which "},
		"a named file, an include":           {prepare: "mkfifo f2 && " + excludes + "f2 >e && git config include.path ../e", want: "f2, which "},
		"a named file, optional":             {prepare: "mkfifo f2 && git config core.excludesFile ':(optional)f2'", want: "f2, which "},
		"a named file in the home":           {prepare: "mkfifo ~/f2 && git config core.excludesFile '~/f2'", want: "home/f2, which "},
		"a named file of a submodule":        {prepare: "git clone -q . s && mkdir .git/modules && mv s/.git .git/modules/s && git -C .git/modules/s config core.worktree ../../../s && echo gitdir: ../.git/modules/s >s/.git && mkfifo f2 && git -C s config core.excludesFile ../f2", want: "f2, which "},
		"a named file of a linked worktree":  {prepare: "git worktree add -q w && mkfifo w/f2 && git config core.excludesFile f2", want: "w/f2, which "},
		"a file of another user":             {prepare: "git config core.excludesFile '~root/f2'", want: "core.excludesfile names a file that cannot be found out", trusted: "-"},
		"a file of git's installation":       {prepare: "git config core.excludesFile '%(prefix)/f2'", want: "core.excludesfile names a file that cannot be found out", trusted: "-"},

		"a FIFO that git does not open": {prepare: "mkfifo other/fifo"},
		"the null device":               {prepare: "git config core.excludesFile /dev/null; ln -s /dev/null .git/info/x; ln -s /dev/null other/.gitignore"},
		"shared folders":                {prepare: "git clone -q . ../again && rm -rf .git/objects .git/refs && ln -s $PWD/../again/.git/objects $PWD/../again/.git/refs .git"},
		"folders":                       {prepare: "mkdir other/.gitignore .git/x; ln -s . .git/loop; ln -s nowhere .git/none"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repo, home := repository(t)
			if out := shell(t, repo, plain(home), "set -e; mkdir sub other; touch f;"+c.prepare); strings.Contains(out, "fatal") {
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

// A repository that includes a file many times is checked in bounded time.
func TestIncludedAgain(t *testing.T) {
	t.Parallel()
	repo, home := repository(t)
	write(t, repo+"/.git/config", strings.Repeat("[include]\n\tpath = x\n", 20_000))
	write(t, repo+"/.git/x", "[include]\n\tpath = config\n"+strings.Repeat("[a]\n\tb = c\n", 20_000))
	if _, err := Neutralize(t.Context(), Query{Workdir: repo, Below: []string{repo}, Environ: plain(home)}); err != nil {
		t.Error(err)
	}
}

// A commondir that is too large to read is refused: git reads all of it.
func TestCommondirThatCannotBeRead(t *testing.T) {
	t.Parallel()
	repo, home := repository(t)
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
		repo, home := repository(t)
		write(t, repo+"/.git/rebase-merge/git-rebase-todo", text)
		if r := neutralize(t, repo, plain(home)); len(r.Commands) != want {
			t.Errorf("%.40q: %q, want %d", text, r.Commands, want)
		}
	}
}

func TestAround(t *testing.T) {
	t.Parallel()
	repo, home := repository(t)
	shell(t, repo, plain(home), "git worktree add -q ../w && printf 'gitdir: %s\\0x' $PWD/.git/worktrees/w >../w/.git && printf '../..\\0x' >.git/worktrees/w/commondir && mkdir -p ../w/n/d && git -C ../w/n init -q && ln -s w ../link && mkdir -p ../e/.git/x ../e/d ~/p/d && git init -q ~ && git clone -q --bare . ../b && mkdir -p ../h && ln -s . ../h/self && git init -q ../h")
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
