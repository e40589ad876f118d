package backendtest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/runner"
)

// What must not show in any error or warning.
const (
	secretValue = "backendtest-secret-7c1f"
	plainValue  = "backendtest-value-52ab"
	promptWords = "backendtest-prompt-90de"
)

// A world is what one case happens in: a repository, a home, a folder for
// temporary files and installed agents, all below one directory.
type world struct {
	*Harness
	ctx      context.Context
	registry func() *registry.Registry // with the runtime
	root     string
	work     string // the repository and workdir
	home     string
	tmp      string

	mu       sync.Mutex
	agents   int
	problems []string
}

func newWorld(ctx context.Context, h *Harness) (*world, error) {
	root, err := tempDir()
	if err != nil {
		return nil, err
	}
	w := &world{
		Harness: h, ctx: ctx, root: root,
		work: filepath.Join(root, "work dir ü"),
		home: filepath.Join(root, "home"),
		tmp:  filepath.Join(root, "tmp"),
	}
	w.registry = sync.OnceValue(func() *registry.Registry {
		r := new(registry.Registry)
		if err := r.Register(h.Runtime); err != nil {
			w.failf("it cannot be registered: %v", err)
		}
		return r
	})
	for _, dir := range []string{filepath.Join(w.work, ".git", "objects"), filepath.Join(w.work, ".git", "refs"), w.home, w.tmp} {
		err = errors.Join(err, os.MkdirAll(dir, 0o755))
	}
	for name, text := range map[string]string{
		"work dir ü/.git/HEAD": "ref: refs/heads/main\n",
		"work dir ü/main.txt":  "a file of the repository\n",
		"home/notes.txt":       "a file of the user\n",
	} {
		err = errors.Join(err, os.WriteFile(filepath.Join(root, filepath.FromSlash(name)), []byte(text), 0o644))
	}
	if err != nil {
		w.remove()
		return nil, err
	}
	return w, nil
}

func (w *world) remove() { os.RemoveAll(w.root) }

// failf notes that the rule is broken.
func (w *world) failf(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.problems = append(w.problems, fmt.Sprintf(format, args...))
}

// fatalf is failf for errors after which nothing more can be tested.
func (w *world) fatalf(format string, args ...any) {
	w.failf(format, args...)
	panic(errGiveUp)
}

// must gives up where the test itself failed.
func (w *world) must(err error) {
	if err != nil {
		w.fatalf("the test itself failed: %v", err)
	}
}

// write writes a file of the world.
func (w *world) write(name, text string) {
	w.must(os.MkdirAll(filepath.Dir(name), 0o755))
	w.must(os.WriteFile(name, []byte(text), 0o644))
}

// runner returns a runner whose environment has nothing but the world. Its
// agents are in bin.
func (w *world) runner(bin string, warn func(string)) *runner.Runner {
	env := []string{
		"PATH=" + bin, "HOME=" + w.home, "TMPDIR=" + w.tmp, "LANG=C.UTF-8", "GORACE=atexit_sleep_ms=0",
		"BACKENDTEST_API_KEY=" + secretValue, "BACKENDTEST_SETTING=" + plainValue,
	}
	if warn == nil {
		warn = func(string) {}
	}
	return &runner.Runner{Registry: w.registry(), Environ: append(env, w.Env...), Warn: warn}
}

// install installs the CLI of the runtime in a new directory.
func (w *world) install(steps ...Step) (bin string, a *Agent) {
	w.mu.Lock()
	w.agents++
	bin = filepath.Join(w.root, "bin", fmt.Sprint(w.agents))
	w.mu.Unlock()
	a, err := Install(bin, w.Runtime.Executables[0], steps...)
	w.must(err)
	return bin, a
}

// request returns a plain request.
func (w *world) request() agent.Request {
	return agent.Request{Runtime: w.Runtime.ID, Prompt: "Say " + promptWords + ".", Workdir: w.work, Access: w.access()}
}

// An outcome is all there is to see of a run.
type outcome struct {
	result   agent.Result
	err      error
	events   []agent.Event
	text     string
	warnings []string
	seen     *Invocation // nil: no agent was started
}

// lasting returns a copy of e that shares no memory with the decoder, not with a
// broken one either.
func lasting(e *agent.Event) agent.Event {
	c := *e.Clone()
	for _, text := range []*string{&c.SessionID, &c.Model, &c.MessageID, &c.Text, &c.Subagent} {
		*text = strings.Clone(*text)
	}
	if c.Tool != nil {
		c.Tool.ID, c.Tool.Name = strings.Clone(c.Tool.ID), strings.Clone(c.Tool.Name)
	}
	return c
}

// kinds returns the kinds of the events in order.
func (o *outcome) kinds() []agent.Kind {
	list := make([]agent.Kind, len(o.events))
	for i, e := range o.events {
		list[i] = e.Kind
	}
	return list
}

// of returns the events of a kind.
func (o *outcome) of(kind agent.Kind) (list []agent.Event) {
	for _, e := range o.events {
		if e.Kind == kind {
			list = append(list, e)
		}
	}
	return list
}

// run runs the runtime with an agent that does steps.
func (w *world) run(req agent.Request, steps ...Step) *outcome {
	return w.runWith(w.ctx, req, agent.Output{}, steps...)
}

func (w *world) runWith(ctx context.Context, req agent.Request, out agent.Output, steps ...Step) *outcome {
	bin, a := w.install(steps...)
	o := new(outcome)
	var text strings.Builder
	own := out.Events
	out.Events = func(e *agent.Event) error {
		o.events = append(o.events, lasting(e))
		if own != nil {
			return own(e)
		}
		return nil
	}
	out.Text = &text
	r := w.runner(bin, func(line string) { o.warnings = append(o.warnings, line) })
	o.result, o.err = r.Run(ctx, req, out)
	o.text = text.String()
	var err error
	o.seen, err = a.Invocation()
	w.must(err)
	if w.ctx.Err() != nil {
		w.fatalf("the run did not end within %v", caseTime)
	}
	return o
}

// started is run for what only the start shows: whether the run succeeds does
// not matter if the CLI was started.
func (w *world) started(req agent.Request) *outcome {
	o := w.run(req, w.answer("fine")...)
	if o.seen == nil {
		w.fatalf("the CLI was not started: %v", o.err)
	}
	return o
}

// succeed is run for a run that has to succeed.
func (w *world) succeed(req agent.Request, steps ...Step) *outcome {
	o := w.run(req, steps...)
	if o.err != nil {
		w.fatalf("a run that has to succeed failed: %v", o.err)
	}
	return o
}

// together runs all of them at once and waits for them.
func (w *world) together(all ...func()) {
	panics := make(chan any, len(all))
	var wg sync.WaitGroup
	for _, one := range all {
		wg.Go(func() {
			defer func() {
				if p := recover(); p != nil {
					panics <- p
				}
			}()
			one()
		})
	}
	wg.Wait()
	close(panics)
	if p, ok := <-panics; ok {
		panic(p)
	}
}

// A snapshot is every file below a directory, with mode and content.
type snapshot map[string]string

// snapshot looks at dir, without the installed agents.
func (w *world) snapshot(dir string) snapshot {
	files := snapshot{}
	w.must(filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name == filepath.Join(w.root, "bin") {
			return fs.SkipDir
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		files[name] = info.Mode().String()
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(name)
			files[name] += " -> " + target
			return err
		case info.Mode().IsRegular():
			text, err := os.ReadFile(name)
			files[name] += fmt.Sprintf(" %x", sha256.Sum256(text))
			return err
		}
		return nil
	}))
	return files
}

// changes returns how after differs, but for what allowed accepts.
func (before snapshot) changes(after snapshot, root string, allowed func(name string) bool) (list []string) {
	names := slices.Collect(maps.Keys(before))
	for name := range after {
		if _, ok := before[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		old, was := before[name]
		now, is := after[name]
		if old == now || allowed != nil && allowed(name) {
			continue
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			rel = name
		}
		switch {
		case !was:
			list = append(list, "added "+rel)
		case !is:
			list = append(list, "removed "+rel)
		default:
			list = append(list, "changed "+rel)
		}
	}
	return list
}
