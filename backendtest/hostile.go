package backendtest

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/unix"
)

// The hostile rules attack a runtime from both sides: from the repository before
// the start, and from the agent while it runs. A runtime is attacked by being
// tested, so each attack is written once, here.
var hostileRules = []rule{
	{name: "hostile-files", test: hostileFiles,
		text: "A link, FIFO or directory that the repository puts where a file or folder is read or written is neither followed nor waited for: the run is refused, or nothing outside the repository is read or changed."},
	{name: "hostile-stale-home", test: hostileStaleHome,
		text: "Whatever an agent leaves in the folders it was given, its run ends with its own result, nothing outside them changes, a warning names what stays, and the next run works."},
	{name: "hostile-sessions", test: hostileSessions, spoken: true,
		applies: func(h *Harness) bool { return h.Runtime.Run.Options.Continue },
		text:    "The name of a kept session, which the repository can have chosen, does not become a flag of the CLI."},
	{name: "hostile-ids", test: hostileIDs,
		applies: func(h *Harness) bool { return h.Runtime.Run.Options.Resume },
		text:    "The ID of a session to resume, which an agent can have reported, does not become a flag or a path of the CLI."},
	{name: "hostile-folders", test: hostileFolders,
		text: "An agent that replaces the folders it was given by links changes nothing behind the links."},
	{name: "hostile-path", test: hostilePath,
		text: "An executable of the repository is refused with its path, and the agent's PATH has absolute directories outside the repository only, unless the workspace is trusted."},
	{name: "hostile-output", test: hostileOutput,
		text: "Errors, warnings and the fields of a result are single printable lines without a secret, in whatever form the agent prints it."},
}

// hostileTime bounds one hostile run. A run that nothing holds up takes a small
// part of it on any machine.
const hostileTime = time.Minute

// outsideText is in every file outside the repository.
const outsideText = "backendtest-outside-3e7a"

// outside makes a folder that hostile links point to.
func (w *world) outside() string {
	dir := filepath.Join(w.root, "outside")
	w.write(filepath.Join(dir, "file"), outsideText+"\n")
	w.write(filepath.Join(dir, "folder", "settings.json"), `{"planted":"`+outsideText+`"}`+"\n")
	return dir
}

// bounded runs f and gives up when it does not end in time.
func (w *world) bounded(what string, f func(ctx context.Context)) {
	done := make(chan struct{})
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	go func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil && p != errGiveUp {
				w.failf("%s: panic: %v", what, p)
			}
		}()
		f(ctx)
	}()
	select {
	case <-done:
	case <-time.After(hostileTime):
		w.fatalf("%s: the run has not ended within %v", what, hostileTime)
	}
}

// A plant is what a repository can put at a path.
type plant struct {
	name string
	make func(path, outside string) error
}

var plants = []plant{
	{"a link to a file outside", func(path, outside string) error { return os.Symlink(filepath.Join(outside, "file"), path) }},
	{"a link to a folder outside", func(path, outside string) error { return os.Symlink(filepath.Join(outside, "folder"), path) }},
	{"a link to a new file outside", func(path, outside string) error { return os.Symlink(filepath.Join(outside, "new"), path) }},
	{"a link to the environment", func(path, _ string) error { return os.Symlink("/proc/self/environ", path) }},
	{"a link to itself", func(path, _ string) error { return os.Symlink(filepath.Base(path), path) }},
	{"a FIFO", func(path, _ string) error { return unix.Mkfifo(path, 0o644) }},
	{"a directory", func(path, _ string) error { return os.Mkdir(path, 0o755) }},
}

// touched returns the paths below the workdir that a run may read or write.
func (w *world) touched() []string {
	paths := []string{"AGENTS.md", ".gitignore", ".gitattributes", ".git/HEAD", ".git/config", ".git/info/exclude"}
	add := func(name string) {
		for ; name != "."; name = filepath.Dir(name) {
			if !slices.Contains(paths, name) {
				paths = append(paths, name)
			}
		}
	}
	for _, o := range w.owned() {
		switch {
		case o.Home != "":
			add(filepath.FromSlash(o.Home) + "/sessions")
			add(filepath.FromSlash(o.Home) + "/.gitignore")
		case o.Block != nil:
			add(filepath.FromSlash(o.Block.Path))
		case o.JSON != nil:
			add(filepath.FromSlash(o.JSON.Path))
		}
	}
	return paths
}

func hostileFiles(w *world) {
	outside := w.outside()
	for _, name := range w.touched() {
		for _, p := range plants {
			what := p.name + " as " + name
			path := filepath.Join(w.work, name)
			w.must(os.RemoveAll(w.work))
			w.write(filepath.Join(w.work, ".git", "HEAD"), "ref: refs/heads/main\n")
			w.must(os.MkdirAll(filepath.Join(w.work, ".git", "objects"), 0o755))
			w.must(os.MkdirAll(filepath.Join(w.work, ".git", "refs"), 0o755))
			if name != "AGENTS.md" {
				w.write(filepath.Join(w.work, "AGENTS.md"), rootRule+"\n")
			}
			w.must(os.MkdirAll(filepath.Dir(path), 0o755))
			w.must(os.RemoveAll(path))
			w.must(p.make(path, outside))
			w.planted(what)
		}
		if len(w.problems) > 0 { // the same is wrong with most other paths
			return
		}
	}
}

// planted runs in the workdir as it is, without trust and with it.
func (w *world) planted(what string) {
	before := w.snapshot(w.root)
	for _, trust := range []bool{false, true} {
		w.bounded(what, func(ctx context.Context) {
			req := w.request()
			req.TrustWorkspace = trust
			o := w.runWith(ctx, req, agent.Output{}, w.answer("fine")...)
			if o.seen == nil && !errors.Is(o.err, agent.ErrUsage) {
				w.failf("%s: the run fails with %v", what, o.err)
			}
			if o.seen == nil {
				return
			}
			for _, text := range w.texts(o.seen, before) {
				if strings.Contains(text, outsideText) {
					w.failf("%s: the agent was given what is outside: %s", what, clip(text))
				}
			}
			for name, text := range o.seen.Files {
				if _, was := before[name]; !was && strings.Contains(string(text), secretValue) {
					w.failf("%s: the environment is in %s", what, w.rel(name))
				}
			}
		})
		inside := func(name string) bool { return strings.HasPrefix(name, w.work+"/") }
		if list := before.changes(w.snapshot(w.root), w.root, inside); len(list) > 0 {
			w.failf("%s: outside the repository: %s", what, strings.Join(list, ", "))
		}
	}
}

func hostileStaleHome(w *world) {
	outside := w.outside()
	before, home := w.snapshot(outside), w.snapshot(w.home)
	for _, kind := range spoilKinds() {
		w.bounded(kind, func(ctx context.Context) {
			o := w.runWith(ctx, w.request(), agent.Output{}, append([]Step{w.spoil(kind, outside)}, w.answer("fine")...)...)
			if o.seen == nil {
				w.fatalf("%s: the CLI was not started: %v", kind, o.err)
			}
			if w.Lines.Text != "" && (o.err != nil || strings.TrimSpace(o.result.Text) != "fine") {
				w.failf("%s: the run says %s, %v", kind, clip(o.result.Text), o.err)
			}
			for _, dir := range w.given(o.seen) {
				if _, err := os.Lstat(dir); err == nil && !strings.Contains(strings.Join(o.warnings, "\n"), filepath.Base(dir)) {
					w.failf("%s: %s was left without a warning: %q", kind, w.rel(dir), o.warnings)
				}
			}
		})
		w.bounded("the run after "+kind, func(ctx context.Context) {
			if o := w.runWith(ctx, w.request(), agent.Output{}, w.answer("fine")...); o.seen == nil {
				w.failf("after %s the next run was not started: %v", kind, o.err)
			}
		})
		for dir, was := range map[string]snapshot{outside: before, w.home: home} {
			if list := was.changes(w.snapshot(dir), w.root, nil); len(list) > 0 {
				w.failf("%s: %s", kind, strings.Join(list, ", "))
			}
		}
	}
}

// given returns the directories that an agent was given for itself.
func (w *world) given(seen *Invocation) []string {
	dirs := w.homes(seen)
	if tmp := seen.getenv("TMPDIR"); tmp != w.tmp {
		dirs = append(dirs, tmp)
	}
	return dirs
}

func (w *world) spoil(kind, outside string) Step {
	return Step{Do: "spoil", Text: kind, More: outside, Steps: []Step{{Text: w.SessionFile}}}
}

func hostileSessions(w *world) {
	id := w.begin()
	if len(id) < 2 {
		return
	}
	flag := "-" + id[1:]
	w.must(filepath.WalkDir(w.work, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		return os.Rename(name, filepath.Join(filepath.Dir(name), strings.ReplaceAll(entry.Name(), id, flag)))
	}))
	req := w.request()
	req.Continue = true
	o := w.run(req, w.answer("fine")...)
	if o.seen == nil && !errors.Is(o.err, agent.ErrUsage) {
		w.failf("the run fails with %v", o.err)
	}
	if o.seen != nil && slices.Contains(o.seen.Args, flag) {
		w.failf("the CLI was started with %s", quoted(o.seen.Args))
	}
}

// hostileNames are not the ID of a session of any runtime, looseNames only where IDs
// are UUIDs.
var (
	hostileNames = []string{"../../x", "/etc/passwd", ".", "..", `..\x`, "a/b.jsonl", "--yolo", "-c", "a\nb", "a\x1b[m", "a\u009b"}
	looseNames   = []string{"latest", "1", "planted.jsonl", "5e551011-0000-4000-8000-00000000000", "5e551011-0000-4000-8000-000000000001 ", "{5e551011-0000-4000-8000-000000000001}"}
)

func hostileIDs(w *world) {
	names := hostileNames
	if w.Runtime.SessionUUIDs {
		names = slices.Concat(names, looseNames)
	}
	for _, name := range names {
		req := w.request()
		req.Resume = name
		if o := w.run(req, w.answer("fine")...); o.seen != nil || !errors.Is(o.err, agent.ErrUsage) {
			w.failf("session %q is not refused: %v", name, o.err)
		}
	}
}

func hostileFolders(w *world) {
	outside := w.outside()
	before, home := w.snapshot(outside), w.snapshot(w.home)
	for _, levels := range []int{0, 1, 2} { // the folder itself, and those it is in
		what := fmt.Sprintf("a folder %d levels up is a link", levels)
		w.bounded(what, func(ctx context.Context) {
			step := Step{Do: "replace", N: levels, More: filepath.Join(outside, "folder")}
			o := w.runWith(ctx, w.request(), agent.Output{}, append([]Step{step}, w.answer("fine")...)...)
			if o.seen == nil {
				w.fatalf("%s: the CLI was not started: %v", what, o.err)
			}
		})
		for dir, was := range map[string]snapshot{outside: before, w.home: home} {
			if list := was.changes(w.snapshot(dir), w.root, nil); len(list) > 0 {
				w.failf("%s: %s", what, strings.Join(list, ", "))
			}
		}
		w.must(os.RemoveAll(w.work))
		w.write(filepath.Join(w.work, ".git", "HEAD"), "ref: refs/heads/main\n")
		w.must(os.MkdirAll(w.tmp, 0o755))
	}
}

func hostilePath(w *world) {
	inside := filepath.Join(w.work, "node_modules", ".bin")
	link := filepath.Join(w.root, "link")
	w.must(os.MkdirAll(filepath.Dir(inside), 0o755))
	w.must(os.Symlink(inside, link))
	for _, path := range []string{inside, link, "node_modules/.bin", ""} {
		a, err := Install(inside, w.Runtime.Executables[0], w.answer("fine")...)
		w.must(err)
		r := w.runner(path, nil)
		_, err = r.Run(w.ctx, w.request(), agent.Output{})
		seen, seenErr := a.Invocation()
		w.must(seenErr)
		if err == nil || seen != nil {
			w.failf("with PATH=%s the repository's executable was started: %v", w.rel(path), err)
		}
		if filepath.IsAbs(path) && err != nil && !strings.Contains(err.Error(), w.Runtime.Executables[0]) {
			w.failf("with PATH=%s the error does not name the executable: %v", w.rel(path), err)
		}
	}
	a, err := Install(inside, w.Runtime.Executables[0], w.answer("fine")...)
	w.must(err)
	req := w.request()
	req.TrustWorkspace = true
	_, err = w.runner(inside, nil).Run(w.ctx, req, agent.Output{})
	seen, seenErr := a.Invocation()
	w.must(seenErr)
	if seen == nil {
		w.failf("in a trusted workspace the repository's executable is not started: %v", err)
	}

	bin, good := w.install(w.answer("fine")...)
	_, err = w.runner(strings.Join([]string{bin, inside, link, "node_modules/.bin", "", "."}, ":"), nil).Run(w.ctx, w.request(), agent.Output{})
	if seen, seenErr = good.Invocation(); seenErr != nil || seen == nil {
		w.fatalf("the agent was not started: %v", errors.Join(err, seenErr))
	}
	if path := seen.getenv("PATH"); path != bin {
		w.failf("the agent's PATH is %s", w.rel(path))
	}
}

func hostileOutput(w *world) {
	forms := []string{
		secretValue, " " + secretValue + "\n",
		base64.StdEncoding.EncodeToString([]byte(secretValue)),
		base64.RawURLEncoding.EncodeToString([]byte("user:" + secretValue)),
	}
	noise := "\x1b]0;title\x07\x1b[2J\u009b31m\u202egnp.exe\x7f\xff\xfe\x9b "
	s := w.script()
	var steps []Step
	for _, form := range forms {
		steps = append(steps, PrintErr(noise+form+"\n"))
		steps = slices.Concat(steps, s.say(s.lines.Failure, strings.TrimSpace(form)))
	}
	o := w.run(w.request(), append(steps, Exit(3))...)
	if o.err == nil {
		w.failf("the run succeeds")
	}
	texts := append(slices.Clone(o.warnings), o.result.Model, o.result.SessionID)
	if o.err != nil {
		texts = append(texts, strings.ReplaceAll(o.err.Error(), "\n", " "))
	}
	for _, text := range texts {
		for _, form := range forms {
			if core := strings.Trim(form, " \n"); strings.Contains(text, core) {
				w.failf("a secret is in %s", clip(text))
			}
		}
		if i := strings.IndexFunc(text, drives); i >= 0 {
			w.failf("%q is in %s", text[i:i+1], clip(text))
		}
	}
}

// drives reports whether a terminal may take r for more than a character to show.
func drives(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == unicode.ReplacementChar
}
