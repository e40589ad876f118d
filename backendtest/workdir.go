package backendtest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/instructions"
)

var hasHome = func(h *Harness) bool {
	return h.Runtime.Instructions != nil && slices.ContainsFunc(h.Runtime.Instructions.Owned, func(o instructions.Owned) bool { return o.Home != "" })
}

var workdirRules = []rule{
	{name: "workdir-clean", test: workdirClean,
		text: "A run leaves the workdir, the home and the temporary files as they were, also one that fails or is canceled."},
	{name: "workdir-trust", test: workdirTrust,
		text: "In a trusted workspace a run may leave what Instructions.Owned names, a second run changes nothing more, and cleaning removes exactly that."},
	{name: "workdir-shared", test: workdirShared,
		text: "Two runs at once in one workdir do not disturb each other."},
	{name: "planted-homes", test: plantedHomes, applies: hasHome,
		text: "A private home is fresh: nothing that the repository or an earlier run put where homes are is used or removed."},
	{name: "empty-dirs", test: emptyDirs,
		applies: func(h *Harness) bool { return len(h.Runtime.EmptyDirs) > 0 },
		text:    "Empty directories that the CLI is known to leave are removed, and what is in others is kept."},
}

// owned returns the places where something of the runtime can be left.
func (w *world) owned() []instructions.Owned {
	if w.Runtime.Instructions == nil {
		return nil
	}
	return w.Runtime.Instructions.Owned
}

// keeps reports whether name is where sessions are kept between runs, or what
// has to be there for them.
func (w *world) keeps(name string) bool {
	for _, o := range w.owned() {
		if o.Home == "" {
			continue
		}
		home := filepath.Join(w.work, filepath.FromSlash(o.Home))
		kept := filepath.Join(home, "sessions")
		if name == kept || strings.HasPrefix(name, kept+"/") || name == filepath.Join(home, ".gitignore") ||
			strings.HasPrefix(home+"/", name+"/") && len(name) > len(w.work) {
			return true
		}
	}
	return false
}

// clean removes what the runtime owns and checks that the world is as before.
func (w *world) clean(what string, before snapshot) {
	if _, err := instructions.Clean(context.Background(), w.work, w.owned()); err != nil {
		w.failf("%s: cleaning fails with %v", what, err)
	}
	if list := before.changes(w.snapshot(w.root), w.root, nil); len(list) > 0 {
		w.failf("%s, after cleaning: %s", what, strings.Join(list, ", "))
	}
}

func workdirClean(w *world) {
	w.write(filepath.Join(w.work, "AGENTS.md"), "rules\n")
	before := w.snapshot(w.root)
	check := func(what string, o *outcome) {
		if o.seen == nil {
			w.failf("%s: the CLI was not started: %v", what, o.err)
		}
		if list := before.changes(w.snapshot(w.root), w.root, nil); len(list) > 0 {
			w.failf("%s: %s", what, strings.Join(list, ", "))
		}
	}
	stray := []Step{WriteFile("$TMPDIR/empty-dirs/file", "x")}
	for _, token := range w.tokens() {
		req := w.request()
		req.Runtime = token
		steps := w.answer("fine")
		if w.Runtime.PrivateTemp {
			steps = append(stray, steps...)
		}
		check("a run of "+token, w.run(req, steps...))
		check("a failed run of "+token, w.run(req, PrintErr("broken\n"), Exit(3)))
	}
	check("a canceled run", w.canceled())
}

// canceled is a run that is canceled when its agent has started.
func (w *world) canceled() *outcome {
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	out := agent.Output{Stderr: writerFunc(func(b []byte) (int, error) {
		cancel()
		return len(b), nil
	})}
	return w.runWith(ctx, w.request(), out, PrintErr("started\n"), Hang())
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

func workdirTrust(w *world) {
	w.write(filepath.Join(w.work, "AGENTS.md"), "rules\n")
	w.write(filepath.Join(w.work, ".gitignore"), "*.tmp") // without a line break
	before := w.snapshot(w.root)
	req := w.request()
	req.TrustWorkspace = true
	w.started(req)
	once := w.snapshot(w.root)
	owned := func(name string) bool {
		for _, o := range w.owned() {
			for _, file := range w.ownedFiles(o) {
				if name == file || strings.HasPrefix(file, name+"/") && len(name) > len(w.work) {
					return true
				}
			}
		}
		return w.keeps(name)
	}
	if list := before.changes(once, w.root, owned); len(list) > 0 {
		w.failf("Instructions.Owned does not name what a run left: %s", strings.Join(list, ", "))
	}
	w.started(req)
	if list := once.changes(w.snapshot(w.root), w.root, w.keeps); len(list) > 0 {
		w.failf("a second run changed: %s", strings.Join(list, ", "))
	}
	w.clean("two runs", before)
}

// ownedFiles returns the files that o adds to.
func (w *world) ownedFiles(o instructions.Owned) (files []string) {
	if o.Block != nil {
		files = append(files, filepath.Join(w.work, filepath.FromSlash(o.Block.Path)))
	}
	if o.JSON != nil {
		files = append(files, filepath.Join(w.work, filepath.FromSlash(o.JSON.Path)))
	}
	return files
}

func workdirShared(w *world) {
	w.write(filepath.Join(w.work, "AGENTS.md"), rootRule+"\n")
	before := w.snapshot(w.root)
	gate, err := NewGate(filepath.Join(w.tmp, "gate"))
	w.must(err)
	defer gate.Close()
	started := make(chan struct{})
	var first, second *outcome
	w.together(func() {
		var said bool
		out := agent.Output{Stderr: writerFunc(func(b []byte) (int, error) {
			if !said {
				close(started)
			}
			said = true
			return len(b), nil
		})}
		steps := append([]Step{PrintErr("started\n"), Wait(gate)}, w.answer("first")...)
		first = w.runWith(w.ctx, w.request(), out, steps...)
	}, func() {
		defer gate.Open()
		select {
		case <-started:
		case <-w.ctx.Done():
			return
		}
		second = w.run(w.request(), w.answer("second")...)
	})
	for name, o := range map[string]*outcome{"first": first, "second": second} {
		switch {
		case o == nil || o.seen == nil:
			w.fatalf("the %s run did not start", name)
		case w.Lines.Text != "" && (o.err != nil || strings.TrimSpace(o.result.Text) != name):
			w.failf("the %s run says %s, %v", name, clip(o.result.Text), o.err)
		}
	}
	if a, b := first.seen.getenv("TMPDIR"), second.seen.getenv("TMPDIR"); w.Runtime.PrivateTemp && a == b {
		w.failf("both have the TMPDIR %s", a)
	}
	for _, dir := range w.homes(first.seen) {
		if slices.Contains(w.homes(second.seen), dir) {
			w.failf("both have the home %s", w.rel(dir))
		}
	}
	w.must(os.Remove(filepath.Join(w.tmp, "gate")))
	if list := before.changes(w.snapshot(w.root), w.root, nil); len(list) > 0 {
		w.failf("afterwards: %s", strings.Join(list, ", "))
	}
}

func plantedHomes(w *world) {
	const planted = "backendtest-planted-c4"
	first := w.started(w.request()).seen
	var plants []string
	plant := func(name string) {
		plants = append(plants, name)
		w.write(name, planted+"\n")
	}
	for _, o := range w.owned() {
		if o.Home == "" {
			continue
		}
		home := filepath.Join(w.work, filepath.FromSlash(o.Home))
		plant(filepath.Join(home, "settings.json"))
		plant(filepath.Join(home, "0123456789abcdef", "settings.json"))
		plant(filepath.Join(home, "home", "config.toml"))
	}
	// Where the first run had its homes.
	for _, dir := range w.homes(first) {
		plant(filepath.Join(dir, "settings.json"))
		plant(filepath.Join(dir, "config.toml"))
	}
	before := w.snapshot(w.root)
	o := w.run(w.request(), w.answer("fine")...)
	if o.seen == nil {
		if !errors.Is(o.err, agent.ErrUsage) {
			w.failf("the run fails with %v", o.err)
		}
		return
	}
	for _, dir := range w.homes(o.seen) {
		if _, was := before[dir]; was {
			w.failf("the home %s existed before the run", w.rel(dir))
		}
	}
	for name, text := range o.seen.Files {
		if _, was := before[name]; !was && strings.Contains(string(text), planted) {
			w.failf("the planted text is in the new file %s", w.rel(name))
		}
	}
	for _, text := range slices.Concat(o.seen.Args, o.seen.Env) {
		if strings.Contains(text, planted) {
			w.failf("the planted text is in %s", clip(text))
		}
	}
	if list := before.changes(w.snapshot(w.root), w.root, w.keeps); len(list) > 0 {
		w.failf("of what was planted: %s", strings.Join(list, ", "))
	}
}

// homes returns the directories in the workdir that variables of the agent name.
func (w *world) homes(seen *Invocation) (dirs []string) {
	for _, entry := range seen.Env {
		name, value, _ := strings.Cut(entry, "=")
		if name != "PWD" && strings.HasPrefix(value, w.work+"/") {
			dirs = append(dirs, value)
		}
	}
	return dirs
}

func emptyDirs(w *world) {
	var steps []Step
	for _, name := range w.Runtime.EmptyDirs {
		if name != ".git" { // the repository has one
			steps = append(steps, makeDir(name))
		}
	}
	before := w.snapshot(w.root)
	w.run(w.request(), append(steps, w.answer("fine")...)...)
	if list := before.changes(w.snapshot(w.root), w.root, nil); len(list) > 0 {
		w.failf("left behind: %s", strings.Join(list, ", "))
	}
	name := w.Runtime.EmptyDirs[len(w.Runtime.EmptyDirs)-1]
	kept := filepath.Join(w.work, filepath.FromSlash(name), "kept")
	w.run(w.request(), append([]Step{WriteFile(kept, "work\n")}, w.answer("fine")...)...)
	if _, err := os.Stat(kept); err != nil {
		w.failf("work in %s is gone", name)
	}
}
