package sessiontest

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/unix"
	"github.com/busdk/bus-agent/session/engine"
)

// A Ground is a set of folders with misleading paths of every kind: links and
// names that lead elsewhere than they seem to. [NewGround] makes one.
type Ground struct {
	Workdir string // a repository, absolute and without links
	Added   string // a folder that is added to the workdir
	Outside string // a folder that is neither
	Home    string // of the user
	Paths   []HostilePath
}

// A HostilePath is what an agent can name as the file it is to change.
type HostilePath struct {
	Name string // of the case
	Path string // as the agent writes it; a relative one is relative to the workdir
	// Inside reports that the path leads to the workdir or into it.
	Inside bool
	// Accepted reports that write access permits changing the file, so that an
	// engine accepts the change without asking. Every other change is an
	// approval request.
	Accepted bool
}

// NewGround makes a ground in a temporary folder of t.
func NewGround(t testing.TB) *Ground {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	g := &Ground{
		Workdir: filepath.Join(base, "work"), Added: filepath.Join(base, "added"),
		Outside: filepath.Join(base, "outside"), Home: filepath.Join(base, "home"),
	}
	g.build(t, base)
	g.Paths = g.paths(base)
	return g
}

// Start returns the start of a session on the ground. The settings of an imagined
// agent are protected: .agent and .servers.json.
func (g *Ground) Start(access agent.Access) engine.Start {
	return engine.Start{
		Workdir: g.Workdir, Protected: []string{".agent", ".servers.json"},
		AddDirs: []string{g.Added}, Access: access,
	}
}

// Check checks an engine, opened with write access by [Ground.Start], with every
// path of the ground. isAccepted reports whether the engine accepts the agent's
// request to change a file without asking.
func (g *Ground) Check(t testing.TB, isAccepted func(path string) bool) {
	t.Helper()
	for _, p := range g.Paths {
		if got := isAccepted(p.Path); got != p.Accepted {
			t.Errorf("%s: %q is accepted unasked: %v, want %v", p.Name, p.Path, got, p.Accepted)
		}
	}
}

// groundFiles are the files of a ground, groundLinks its links.
var (
	groundFiles = []string{
		"work/.git/HEAD", "work/.git/config", "work/.git/hooks/x", "work/file", "work/sub/x/y/file", "work/Straße", "work/~/x",
		"work-too/file", "added/file", "added/.git/config", "outside/file", "outside/dir/file", "outside/hard",
		"work/bare/HEAD", "work/bare/config", "work/bare/objects/x", "work/bare/refs/x", "home/.agent/MEMORY.md", "home/.bashrc",
	}
	groundLinks = map[string]string{
		"work/in":           "sub",
		"work/deep":         "sub/x/y",
		"work/out":          "../outside",
		"work/out-file":     "../outside/file",
		"work/out-dir":      "../outside/dir",
		"work/out-dangling": "../outside/new",
		"work/in-dangling":  "sub/new",
		"work/chain":        "chain-2",
		"work/chain-2":      "chain-3",
		"work/chain-3":      "../outside",
		"work/up":           "..",
		"work/root":         "/",
		"work/loop":         "loop",
		"work/proc":         "/proc/self/cwd",
		"work/proc-root":    "/proc/self/root",
		"work/fd":           "/dev/fd/0",
		"work/git":          ".git",
		"work/sub/config":   "../.git/config",
		"back":              "work",
		"outside/back":      "../work",
	}
)

func (g *Ground) build(t testing.TB, base string) {
	t.Helper()
	ok := func(err error) {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
	}
	for _, name := range groundFiles {
		name = filepath.Join(base, filepath.FromSlash(name))
		ok(os.MkdirAll(filepath.Dir(name), 0o755))
		ok(os.WriteFile(name, []byte("theirs\n"), 0o644))
	}
	ok(os.WriteFile(filepath.Join(g.Workdir, ".git", "HEAD"), []byte("ref: refs/heads/main\n"), 0o644))
	for name, target := range groundLinks {
		ok(os.Symlink(filepath.FromSlash(target), filepath.Join(base, filepath.FromSlash(name))))
	}
	ok(os.Link(filepath.Join(g.Outside, "hard"), filepath.Join(g.Workdir, "hard")))
	ok(os.Symlink(g.Outside, filepath.Join(g.Workdir, "out-absolute")))
	ok(os.Symlink(filepath.Join(g.Workdir, "sub"), filepath.Join(g.Workdir, "in-absolute")))
	ok(unix.Mkfifo(filepath.Join(g.Workdir, "fifo"), 0o644))
	ok(os.Symlink("fifo/x", filepath.Join(g.Workdir, "below-fifo")))
}

func (g *Ground) paths(base string) []HostilePath {
	yes := func(name, path string) HostilePath { return HostilePath{name, path, true, true} }
	inside := func(name, path string) HostilePath { return HostilePath{name, path, true, false} }
	no := func(name, path string) HostilePath { return HostilePath{name, path, false, false} }
	work, long := g.Workdir+"/", strings.Repeat("x", 256)
	paths := []HostilePath{
		yes("a file", work+"file"),
		yes("a file below", work+"sub/x/y/file"),
		yes("a new file", work+"new"),
		yes("a new file in new folders", work+"new/newer/newest"),
		yes("a relative name", "file"),
		yes("a relative name of a new file", "./new/file"),
		yes("dots that stay inside", work+"sub/../file"),
		yes("dots out and back", work+"../work/file"),
		yes("slashes", g.Workdir+"//sub///x/./y//file"),
		yes("a link to a folder inside", work+"in/x/new"),
		yes("an absolute link inside", work+"in-absolute/new"),
		yes("a dangling link inside", work+"in-dangling"),
		yes("a link to the workdir", base+"/back/file"),
		yes("a link outside that leads back in", g.Outside+"/back/file"),
		yes("out by a link and back in", work+"out/back/file"),
		yes("a name that begins with dots", work+"..file"),
		yes("a percent sign", work+"100%"),
		yes("a dollar sign", work+"$lib/file"),
		yes("a name that begins like Git's", work+".gitignore"),
		yes("a name with a newline", work+"a\nb"),
		yes("a name in another script", work+"Straße"),
		yes("the other form of a letter", work+"Strae\u0308"),

		no("a file outside", g.Outside+"/file"),
		no("a new file outside", g.Outside+"/new"),
		no("the user's memory of an agent", g.Home+"/.agent/MEMORY.md"),
		no("what the user's shell runs", g.Home+"/.bashrc"),
		no("a folder whose name begins the same", base+"/work-too/file"),
		no("a new folder whose name begins the same", base+"/work2/file"),
		no("the folder above", base),
		no("the root", "/"),
		no("a system file", "/etc/passwd"),
		no("the temporary folder", "/tmp/bus-agent-hostile"),
		no("dots", work+"../outside/file"),
		no("relative dots", "../outside/file"),
		no("many dots", "../../../../../../../../../../../../../../../../../../etc/passwd"),
		no("dots after a folder", work+"sub/../../outside/file"),
		no("dots after what does not exist", work+"new/../../outside/file"),
		no("a link out", work+"out/file"),
		no("a relative link out", "out/file"),
		no("a new file behind a link out", work+"out/new/newer"),
		no("an absolute link out", work+"out-absolute/file"),
		no("a link to a file outside", work+"out-file"),
		no("a dangling link out", work+"out-dangling"),
		no("a chain of links out", work+"chain/file"),
		no("a link to the folder above", work+"up/outside/file"),
		no("a link to the root", work+"root/etc/passwd"),
		no("dots after a link, inside only for who cleans first", work+"out-dir/../file"),
		no("dots after a link, inside only for who follows first", work+"deep/../../../file"),
		no("a link to itself", work+"loop"),
		no("below a link to itself", work+"loop/file"),
		no("below a file", work+"file/x"),
		no("below a FIFO", work+"below-fifo"),
		no("a NUL", work+"file\x00"),
		no("a name that is too long", work+long),
		no("a name that is too long below what does not exist", work+"new/"+long),
		no("a path that is too long", work+strings.Repeat("x/", 2100)),
		no("an empty name", ""),

		inside("a name of three dots", work+".../file"),
		inside("a hard link to a file outside", work+"hard"),
		inside("a file of a folder that Git takes for a repository", work+"bare/config"),
		inside("a hook in a folder that Git takes for a repository", work+"bare/hooks/pre-commit"),
		inside("what makes a folder a repository", work+"sub/HEAD"),
		inside("the same in another case", work+"sub/head"),
		inside("the settings of an agent", work+".agent/settings.json"),
		inside("the settings of an agent below", work+"sub/.AGENT/hooks/x"),
		inside("what lists servers for an agent", work+".servers.json"),
		inside("a new folder of Git", work+"sub/x/.Git/config"),
		inside("the workdir itself", g.Workdir),
		inside("the workdir by a dot", "."),
		inside("the FIFO", work+"fifo"),
		inside("Git's configuration", work+".git/config"),
		inside("a hook of Git's", work+".git/hooks/pre-commit"),
		inside("the folder of Git", work+".git"),
		inside("Git's configuration in capitals", work+".GIT/config"),
		inside("Git's configuration behind a link", work+"git/config"),
		inside("a link to Git's configuration", work+"sub/config"),
		inside("Git's configuration by dots", work+"sub/../.git/config"),
		inside("Git's configuration below", work+"sub/.git/config"),
		inside("Git's configuration with a dot behind", work+".git./config"),
		inside("Git's configuration with a space behind", work+".git /config"),
		inside("Git's configuration in the short form of Windows", work+"git~1/config"),
		inside("Git's configuration with a letter that shows nothing", work+".g\u200cit/config"),
		inside("a tilde", "~/x"),
		inside("a tilde with a name", "~root/.bashrc"),
		inside("a file URI", "file://"+g.Outside+"/file"),
		inside("a file URI in capitals", "FILE:///etc/passwd"),
		inside("a URI of another kind", "https://example.com/x"),
		inside("backslashes", `..\outside\file`),
		inside("backslashes inside", `sub\file`),
		inside("a name of Windows", `C:\Windows\win.ini`),
		inside("a name of a Windows server", `\\server\share\file`),
		inside("a space behind", work+"file "),
		inside("a dot behind", work+"file."),
		inside("a space behind a folder", work+"sub /file"),
		inside("a space in front", " /etc/passwd"),
		inside("a variable", "$HOME/.bashrc"),
		inside("a variable in braces", "${HOME}/.bashrc"),
		inside("a variable of Windows", "%USERPROFILE%/x"),
		inside("a newline behind", work+"file\n"),
		inside("a percent escape", work+"%2e%2e/outside/file"),
		inside("escaped backslashes", work+"..%5Coutside"),
		inside("a file URI without slashes", "file:x"),

		{"a file in the added folder", g.Added + "/file", false, true},
		{"a new file in the added folder", g.Added + "/new/file", false, true},
		{"dots to the added folder", work + "../added/file", false, true},
		no("Git's configuration of the added folder", g.Added+"/.git/config"),
	}
	if runtime.GOOS == "linux" {
		paths = append(paths,
			no("the workdir of whichever process looks", "/proc/self/cwd/file"),
			no("a link to it", work+"proc/file"),
			no("the root of whichever process looks", "/proc/self/root"+work+"file"),
			no("a link to that root", work+"proc-root"+work+"file"),
			no("an open file", "/dev/fd/0"),
			no("a link to an open file", work+"fd"),
			no("the environment", "/proc/self/environ"),
		)
	}
	return paths
}
