package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/process"
	"github.com/busdk/bus-agent/modeltest"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/runner"
)

// runLimit bounds each run of a check that does not test a timeout.
const runLimit = 100 * time.Second

// folderKey is in the names of the folders of trials.
const folderKey = "verify"

// A trial is the environment of one check: a home, a folder for temporary files, a
// workdir that is the root of a git repository, and a model server.
type trial struct {
	*bench
	ctx   context.Context
	model *modeltest.Server

	root, home, tmp, work string
	claim                 *process.Claim // of root, so that a sweep removes it after a kill
	path                  string         // the first folder of PATH, "" for none

	// takes are the runs of a scene, and facts what else the scene found, by name.
	takes map[string]*take
	facts map[string]error
}

// start creates the environment, with files in the workdir by slash-separated path.
func (t *trial) start(script modeltest.Script, files map[string]string) error {
	root, claim, err := process.MakeTempDir(os.TempDir(), folderKey)
	if err != nil {
		return err
	}
	t.root, t.claim = root, claim
	// Agents report real paths, and the temporary folder can be behind a link.
	real, err := filepath.EvalSymlinks(root)
	if err != nil {
		return err
	}
	t.home, t.tmp, t.work = filepath.Join(real, "home"), filepath.Join(real, "tmp"), filepath.Join(real, "work")
	// The least that git takes for a repository.
	repository := map[string]string{
		".git/HEAD":        "ref: refs/heads/main\n",
		".git/config":      "[core]\n\trepositoryformatversion = 0\n",
		".git/objects/.in": "",
		".git/refs/.in":    "",
	}
	if err := os.Mkdir(t.tmp, 0o700); err != nil {
		return err
	}
	if err := os.Mkdir(t.home, 0o700); err != nil {
		return err
	}
	if err := errors.Join(writeFiles(t.work, repository), writeFiles(t.work, files)); err != nil {
		return err
	}
	t.model, err = modeltest.Start(script, t.target.Model, cmp.Or(t.target.ServerModel, t.target.Model))
	if err != nil || t.target.Home == nil {
		return err
	}
	return writeFiles(t.home, t.target.Home(t.model))
}

func writeFiles(root string, files map[string]string) error {
	for name, text := range files {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// close removes the environment.
func (t *trial) close() error {
	if t.model != nil {
		t.model.Close()
	}
	if t.root == "" {
		return nil
	}
	defer t.claim.Release()
	return os.RemoveAll(t.root)
}

// An outcome is what a run reported.
type outcome struct {
	agent.Result
	err     error
	events  []*agent.Event
	started bool
}

// runner returns the runner of the trial.
func (t *trial) runner() *runner.Runner {
	path := t.path
	if all, _ := agent.LookupEnv(t.environ, "PATH"); path == "" {
		path = all
	} else {
		path += string(filepath.ListSeparator) + all
	}
	environ := slices.Concat(t.environ, []string{"PATH=" + path}, []string{"HOME=" + t.home, "TMPDIR=" + t.tmp, "LC_ALL=C.UTF-8"})
	if t.target.Env != nil {
		environ = append(environ, t.target.Env(t.model)...)
	}
	return &runner.Runner{Registry: t.options.Registry, Environ: environ, Warn: func(string) {}}
}

// requestOf returns req, in which only the tested fields are set, with the others, for a
// use of the runtime.
func (t *trial) requestOf(use registry.Use, req agent.Request) agent.Request {
	if t.target.Args != nil {
		req.Args = t.target.Args(t.model)
	}
	req.Runtime = t.target.Runtime
	if use.Options.Model {
		req.Model = cmp.Or(req.Model, t.target.Model)
	}
	req.Workdir = cmp.Or(req.Workdir, t.work)
	req.Timeout = cmp.Or(req.Timeout, runLimit)
	if access := use.Options.Access; req.Access == "" && !slices.Contains(access, agent.AccessWrite) && len(access) > 0 {
		req.Access = access[0]
	}
	return req
}

// run runs the CLI with req, in which only the tested fields are set.
func (t *trial) run(ctx context.Context, req agent.Request) outcome {
	if hasRuns(&t.target, &t.runtime) != "" {
		return t.runBy(ctx, oneTurn{t.runner()}, req)
	}
	return t.runBy(ctx, t.runner(), req)
}

// runBy is run by a runner, or by one around it.
func (t *trial) runBy(ctx context.Context, by interface {
	Run(context.Context, agent.Request, agent.Output) (agent.Result, error)
}, req agent.Request) outcome {
	var o outcome
	o.Result, o.err = by.Run(ctx, t.requestOf(use(&t.runtime), req), agent.Output{
		Started: func(agent.Start) { o.started = true },
		Events:  func(e *agent.Event) error { o.events = append(o.events, e.Clone()); return nil },
	})
	return o
}

// ask runs the CLI with req, which must succeed with the answer want.
func (t *trial) ask(req agent.Request, want string) (outcome, error) {
	o := t.run(t.ctx, req)
	switch {
	case o.err != nil:
		return o, fmt.Errorf("the run failed: %w%s", o.err, lastLine(o.err))
	case o.Text != want+t.target.AnswerSuffix:
		return o, fmt.Errorf("the answer is %s, want %s", quote(o.Text), quote(want+t.target.AnswerSuffix))
	}
	return o, nil
}

// A take is a run of a scene.
type take struct {
	outcome
	failed   error                // why the run is not as its scene needs it
	requests []*modeltest.Request // that the model got during the run
}

// shoot is ask for a scene, which keeps the run under a name.
func (t *trial) shoot(name string, req agent.Request, want string) *take {
	before := len(t.model.ModelRequests())
	k := &take{}
	k.outcome, k.failed = t.ask(req, want)
	k.requests = t.model.ModelRequests()[before:]
	if k.failed != nil {
		k.failed = cmp.Or(context.Cause(t.ctx), k.failed)
	}
	t.keep(name, k)
	return k
}

func (t *trial) keep(name string, k *take) {
	if t.takes == nil {
		t.takes = map[string]*take{}
	}
	t.takes[name] = k
}

// note keeps what a scene found under a name.
func (t *trial) note(name string, err error) {
	if t.facts == nil {
		t.facts = map[string]error{}
	}
	t.facts[name] = err
}

// take returns a run that did what its scene needs, and asked the model.
func (t *trial) take(name string) (*take, error) {
	k := t.takes[name]
	if k.failed == nil && len(k.requests) == 0 {
		return k, errors.New("the model got no request")
	}
	return k, k.failed
}

// requests returns the model requests. It fails unless there are n.
func (t *trial) requests(n int) ([]*modeltest.Request, error) {
	got := t.model.ModelRequests()
	if len(got) != n {
		return nil, fmt.Errorf("the model got %d requests, want %d", len(got), n)
	}
	return got, nil
}

// askOnce is ask, of which the model gets one request.
func (t *trial) askOnce(req agent.Request, want string) (outcome, *modeltest.Request, error) {
	o, err := t.ask(req, want)
	if err != nil {
		return o, nil, err
	}
	list, err := t.requests(1)
	if err != nil {
		return o, nil, err
	}
	return o, list[0], nil
}

// files returns what a run in a workdir, a slash-separated path below work, must not
// change.
func (t *trial) files(workdir string) (map[string]string, error) {
	all := map[string]string{}
	for _, folder := range []struct {
		path string
		skip []string
	}{{t.home, t.target.Keeps}, {t.work, t.owned(workdir)}, {t.tmp, nil}} {
		found, err := listFiles(folder.path, folder.skip)
		if err != nil {
			return nil, err
		}
		for name, what := range found {
			all[filepath.Base(folder.path)+"/"+name] = what
		}
	}
	return all, nil
}

// listFiles returns what is below root, by slash-separated path with mode and size,
// without the names of skip, what is below them and the folders that lead to them.
func listFiles(root string, skip []string) (map[string]string, error) {
	found := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil || rel == "." {
			return err
		}
		name := filepath.ToSlash(rel)
		if slices.ContainsFunc(skip, func(s string) bool { return strings.HasPrefix(name+"/", s+"/") || strings.HasPrefix(s, name+"/") }) {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		found[name] = info.Mode().String()
		if info.Mode().IsRegular() {
			found[name] += fmt.Sprint(" ", info.Size())
		}
		return nil
	})
	return found, err
}

// owned returns the folders below work that the runtime may keep in a workdir, a
// slash-separated path from there.
func (t *trial) owned(workdir string) (names []string) {
	if t.runtime.Instructions != nil {
		for _, o := range t.runtime.Instructions.Owned {
			if o.Home != "" {
				names = append(names, path.Join(workdir, o.Home))
			}
		}
	}
	return names
}

// processes returns the command lines of the processes of the trial, which it finds by
// the home in their environment. It finds them on Linux only.
func (t *trial) processes() ([]string, error) {
	if runtime.GOOS != "linux" {
		return nil, nil
	}
	environs, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return nil, err
	}
	var found []string
	for _, path := range environs {
		data, err := os.ReadFile(path)
		if err != nil || !slices.Contains(strings.Split(string(data), "\x00"), "HOME="+t.home) {
			continue // ended, of another user, or of another trial
		}
		line, err := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
		if err == nil && len(line) > 0 { // a zombie has no command line
			found = append(found, strings.ReplaceAll(strings.Trim(string(line), "\x00"), "\x00", " "))
		}
	}
	return found, nil
}

// checkProcesses returns an error if a process of the trial is running.
func (t *trial) checkProcesses() error {
	found, err := t.processes()
	if err == nil && len(found) > 0 {
		err = fmt.Errorf("a process is still running: %s", quote(found[0]))
	}
	return err
}

// lastLine returns the last line of the agent's standard error that err holds, as the end
// of a sentence.
func lastLine(err error) string {
	exit, ok := errors.AsType[*agent.ExitError](err)
	if !ok {
		return ""
	}
	text := strings.TrimSpace(exit.Stderr)
	if text == "" {
		return ""
	}
	return "; its standard error ends with " + quote(text[strings.LastIndexByte(text, '\n')+1:])
}

// quote returns text in quotation marks, without its middle if it is long.
func quote(text string) string {
	const most = 200
	if len(text) > most {
		return fmt.Sprintf("%q...%q (%d bytes)", text[:most/2], text[len(text)-most/2:], len(text))
	}
	return fmt.Sprintf("%q", text)
}
