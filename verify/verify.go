package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/process"
	"github.com/busdk/bus-agent/modeltest"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/runner"
)

// A Target describes how to point the CLI of one runtime at a scripted model server. Its
// functions may be called by several goroutines at once.
type Target struct {
	// Runtime is the ID of a registered runtime. Required.
	Runtime string

	// Model is the name of a model that the CLI accepts. Required if the runtime
	// supports models.
	Model string

	// ServerModel is a model that is offered the tools of MCP servers at once; "" means
	// Model. CLIs let others search for these tools.
	ServerModel string

	// ServerCalls returns the calls with which a model finds and calls a tool of an MCP
	// server, one after another; arguments is a JSON object. Nil means that it is offered
	// the tool, with a name that has the tool's in it.
	ServerCalls func(server, tool, arguments string) []modeltest.ToolCall

	// Tools are the names of two tools that the model is offered with every access, as a
	// request has them. Required if the runtime takes a list of tools.
	Tools []string

	// Requested is the name of Model that reaches the server; "" means Model itself. Some
	// CLIs select a model with the name of its provider.
	Requested string

	// Env returns the variables, as "NAME=value", that make the CLI use the server,
	// with a key that is not secret. Besides them, the CLI gets PATH, HOME, TMPDIR and
	// LC_ALL, and what its runtime adds. It may be nil.
	Env func(*modeltest.Server) []string

	// Args returns the arguments that make the CLI use the server; see
	// agent.Request.Args. It may be nil.
	Args func(*modeltest.Server) []string

	// Home returns files to create in the home, their contents by slash-separated path,
	// such as settings without which the CLI does not start or that name the server. It
	// may be nil.
	Home func(*modeltest.Server) map[string]string

	// Keeps names the files and folders at the top of the home that the CLI may create
	// and change.
	Keeps []string

	// Prompt returns the prompt in a message of the user: without what the CLI adds, such as
	// the time. Nil means that it adds nothing.
	Prompt func(message string) string

	// AnswerSuffix is what the CLI adds to each answer.
	AnswerSuffix string

	// Edit returns the tool call with which a model creates the file at an absolute
	// path, with any content. Nil means that the CLI has no such tool.
	Edit func(path string) modeltest.ToolCall

	// Command returns the tool call with which a model runs a command of the POSIX
	// shell in the workdir. Nil means that the CLI has no such tool.
	Command func(command string) modeltest.ToolCall

	// Guarded is like Command, for a command that runs in a session with write access only
	// after an approval. Nil means that those of Command do.
	Guarded func(command string) modeltest.ToolCall

	// JSON returns the reply with which a model gives a JSON value as the answer to a
	// request with a schema. Nil means that it gives the value as text.
	JSON func(value string) modeltest.Reply

	// Context names the files that the CLI reads as instructions in each folder, besides
	// AGENTS.md. They can import others by a line "@FILE".
	Context []string

	// Replaces names the files that the CLI reads in place of an AGENTS.md next to them.
	Replaces []string

	// Plants returns the files of a repository, by slash-separated path, with which the CLI
	// runs programs if it trusts the repository: hooks, servers of tools and the like.
	// program returns the path of a program of a name. It may be nil.
	Plants func(program func(name string) string) map[string]string

	// Known holds the reasons why the CLI fails some checks, by name of the check; see
	// [Checks]. Such a check still runs.
	Known map[string]string

	// Verified is the record of an earlier Run. [Run] does not use it; "bus-agent doctor"
	// compares its version with the installed one. The zero value means that there is
	// none.
	Verified Record
}

// A Check is one promise and the test of it.
type Check struct {
	// Name identifies the check: lower-case words and hyphens. It does not change
	// between versions.
	Name string

	// Promise is what holds for the runtime if the check passes, in one sentence.
	Promise string

	// needs returns why the check does not apply to the runtime, or "". Nil means that
	// it applies to all.
	needs func(*Target, *registry.Runtime) string

	// scene is what happens before run, in the trial that its checks share; nil means
	// nothing.
	scene *scene

	// run returns how the promise is broken, or nil. After a scene, the environment of
	// the trial is gone: what happened is in its takes and facts.
	run func(*trial) error
}

// A scene is a series of runs that several checks judge. Each start of a CLI takes
// seconds.
type scene struct {
	// play makes the runs. It fails only if none could be made.
	play func(*trial) error
}

// A Status is the outcome of a check.
type Status string

const (
	// Kept means that the promise holds.
	Kept Status = "kept"
	// Broken means that it does not hold.
	Broken Status = "broken"
	// KnownFailure means that it does not hold, and that the target lists the check in
	// Known.
	KnownFailure Status = "known"
	// Unsupported means that the runtime does not have the feature.
	Unsupported Status = "unsupported"
)

// A Result is the outcome of one check.
type Result struct {
	Check   string `json:"check"`
	Promise string `json:"promise,omitempty"`
	Status  Status `json:"status"`

	// Detail is how the promise is broken, or why it does not apply. It can quote
	// output of the CLI.
	Detail string `json:"detail,omitempty"`

	// Known is the reason in Target.Known. It is also set if the check passed, so that
	// a reason that no longer holds is seen.
	Known string `json:"known,omitempty"`

	// Duration is how long the check took. Checks that judge the same runs take no time,
	// except for the first.
	Duration time.Duration `json:"-"`
}

// A Report holds the results for one runtime, in the order of [Checks].
type Report struct {
	Runtime string `json:"runtime"`
	// Path is the executable, and Version its number; "" if it reports none.
	Path    string   `json:"path"`
	Version string   `json:"version"`
	Results []Result `json:"results"`
}

// Broken returns the results with the status [Broken].
func (r Report) Broken() []Result {
	return slices.DeleteFunc(slices.Clone(r.Results), func(r Result) bool { return r.Status != Broken })
}

// Options are the options of [Run]. The zero value is usable.
type Options struct {
	// Registry holds the runtime; nil is registry.Default().
	Registry *registry.Registry

	// Environ is the environment, "NAME=value", whose PATH finds the CLI; nil is that
	// of the process. The CLI gets only PATH of it.
	Environ []string

	// Checks names the checks to run; empty means all.
	Checks []string

	// Parallel is the number of runs of the CLI at once; zero means three. Some of them
	// wait for most of their time.
	Parallel int

	// Limit bounds each check, and the runs that several checks judge; zero means two
	// minutes. A check that takes longer is Broken.
	Limit time.Duration

	// ToolServer is the absolute path of a program and its arguments: an MCP server that
	// calls [ServeTool]. Without it, the checks of MCP servers fail.
	ToolServer []string

	// Begin is called before a check runs, and Done after it. Done is also called for
	// checks that do not apply. They are never called at the same time. Each may be nil.
	Begin func(Check)
	Done  func(Result)
}

// Checks returns all checks, in the order in which they run. The functions of a check
// are not exported; name it in [Options].
func Checks() []Check { return slices.Clone(table()) }

// Find returns the checks with the given names, in the order of [Checks]; all if there
// are no names. An unknown name is an error of kind agent.ErrUsage.
func Find(names ...string) ([]Check, error) {
	all := table()
	if len(names) == 0 {
		return all, nil
	}
	for _, name := range names {
		if !slices.ContainsFunc(all, func(c Check) bool { return c.Name == name }) {
			return nil, agent.Usagef("there is no check %q", name)
		}
	}
	return slices.DeleteFunc(all, func(c Check) bool { return !slices.Contains(names, c.Name) }), nil
}

// Run checks the CLI of target. A broken promise is not an error: see [Report.Broken].
// An error of kind agent.ErrUsage means that the target or the options are invalid, and
// one of kind agent.ErrNotInstalled that the CLI was not found; nothing was started. When
// ctx ends, Run returns its cause with the results so far.
func Run(ctx context.Context, target Target, o Options) (Report, error) {
	report := Report{Runtime: target.Runtime}
	checks, err := Find(o.Checks...)
	if err != nil {
		return report, err
	}
	rt, err := target.check(o.Registry)
	if err != nil {
		return report, err
	}
	environ := []string{"PATH=" + pathOf(o.Environ)}
	if report.Path, err = find(ctx, o.Registry, environ, rt); err != nil {
		return report, err
	}
	report.Version, _ = runner.Version(ctx, rt, report.Path, environ) // some CLIs report none

	b := bench{target: target, runtime: rt, options: o, environ: environ}
	for _, r := range b.all(ctx, checks) {
		if r.Check != "" { // it ran to its end
			report.Results = append(report.Results, r)
		}
	}
	if report.Version == "" { // on a busy machine, it can take too long
		report.Version, _ = runner.Version(ctx, rt, report.Path, environ)
	}
	return report, context.Cause(ctx)
}

// check returns the runtime of the target, or what is wrong with the target.
func (t *Target) check(reg *registry.Registry) (registry.Runtime, error) {
	if reg == nil {
		reg = registry.Default()
	}
	rt, _, err := reg.ParseToken(t.Runtime)
	if err != nil {
		return rt, err
	}
	if rt.Run.Command == nil && rt.Session == nil {
		return rt, agent.Usagef("%s has neither runs nor sessions, which the checks use", t.Runtime)
	}
	if use(&rt).Options.Model && t.Model == "" {
		return rt, agent.Usagef("the target for %s names no model", t.Runtime)
	}
	for _, name := range slices.Sorted(maps.Keys(t.Known)) {
		if _, err := Find(name); err != nil {
			return rt, agent.Usagef("the target for %s lists a known failure of the unknown check %q", t.Runtime, name)
		}
	}
	return rt, nil
}

// find returns the path of the executable of rt. It looks from a workdir that is as far
// from any repository as those of the checks: the CLI may be installed in the current one.
func find(ctx context.Context, reg *registry.Registry, environ []string, rt registry.Runtime) (string, error) {
	dir, claim, err := process.MakeTempDir(os.TempDir(), folderKey)
	if err != nil {
		return "", err
	}
	defer claim.Release()
	defer func() { _ = os.RemoveAll(dir) }() // only the claim is in it
	r := runner.Runner{Registry: reg, Environ: environ, Workdir: dir, Warn: func(string) {}}
	found, err := r.Detect(ctx)
	if err != nil {
		return "", err
	}
	for _, d := range found {
		if d.Runtime.ID == rt.ID && d.Path != "" {
			return d.Path, nil
		}
		if d.Runtime.ID == rt.ID {
			why := cmp.Or(d.Problem, errors.New("no "+strings.Join(rt.Executables, " or ")+" in PATH"))
			return "", &agent.Error{Kind: agent.ErrNotInstalled, Runtime: rt.ID, Err: fmt.Errorf("%w; see %s", why, rt.InstallURL)}
		}
	}
	return "", agent.Usagef("%s is not registered", rt.ID)
}

// A bench runs checks of one target.
type bench struct {
	target  Target
	runtime registry.Runtime
	options Options
	environ []string

	mu sync.Mutex // held while a callback runs
}

// all runs the checks. The result of one that ctx stopped is zero.
func (b *bench) all(ctx context.Context, checks []Check) []Result {
	results := make([]Result, len(checks))
	slots := make(chan struct{}, cmp.Or(max(b.options.Parallel, 0), 3))
	var running sync.WaitGroup
	for _, group := range groups(checks) {
		slots <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		running.Go(func() {
			defer func() { <-slots }()
			b.group(ctx, checks, group, results)
		})
	}
	running.Wait()
	return results
}

// groups returns the indexes of the checks that share a scene, and of each other check
// alone.
func groups(checks []Check) (all [][]int) {
	at := map[*scene]int{}
	for i, c := range checks {
		if group, ok := at[c.scene]; ok && c.scene != nil {
			all[group] = append(all[group], i)
			continue
		}
		at[c.scene] = len(all)
		all = append(all, []int{i})
	}
	return all
}

// group runs the checks with the indexes in group, one after another. Their scene is
// played once, unless no check of it applies.
func (b *bench) group(ctx context.Context, checks []Check, group []int, results []Result) {
	var shared *trial
	var played error
	for _, i := range group {
		c := checks[i]
		results[i] = b.one(ctx, c, func() error {
			if c.scene == nil {
				return b.try(ctx, &trial{bench: b}, c.run)
			}
			if shared == nil {
				shared = &trial{bench: b}
				played = b.try(ctx, shared, c.scene.play)
			}
			if played != nil {
				return played
			}
			return c.run(shared)
		})
	}
}

// one returns the result of a check that run performs.
func (b *bench) one(ctx context.Context, c Check, run func() error) Result {
	r := Result{Check: c.Name, Promise: c.Promise, Known: b.target.Known[c.Name]}
	if c.needs != nil {
		if r.Detail = c.needs(&b.target, &b.runtime); r.Detail != "" {
			r.Status = Unsupported
			b.done(r)
			return r
		}
	}
	b.begin(c)
	begun := time.Now()
	err := run()
	r.Duration = time.Since(begun)
	if ctx.Err() != nil {
		return Result{}
	}
	switch {
	case err == nil:
		r.Status = Kept
	case r.Known != "":
		r.Status, r.Detail = KnownFailure, err.Error()
	default:
		r.Status, r.Detail = Broken, err.Error()
	}
	b.done(r)
	return r
}

// try calls run with a throwaway environment, within the limit.
func (b *bench) try(ctx context.Context, t *trial, run func(*trial) error) (err error) {
	limit := b.limit()
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("the check did not end within %v", limit))
	defer cancel()
	t.ctx = ctx
	defer func() { err = cmp.Or(err, t.close()) }()
	if err := run(t); err != nil {
		return cmp.Or(context.Cause(ctx), err)
	}
	return nil
}

// limit returns how long a check may take.
func (b *bench) limit() time.Duration { return cmp.Or(b.options.Limit, 2*time.Minute) }

func (b *bench) begin(c Check) {
	if b.options.Begin != nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.options.Begin(c)
	}
}

func (b *bench) done(r Result) {
	if b.options.Done != nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.options.Done(r)
	}
}

// pathOf returns PATH of environ, or of the process if environ is nil.
func pathOf(environ []string) string {
	if environ == nil {
		environ = os.Environ()
	}
	path, _ := agent.LookupEnv(environ, "PATH")
	return path
}
