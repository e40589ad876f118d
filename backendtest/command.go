package backendtest

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
)

var commandRules = []rule{
	{name: "command-pure", test: commandPure,
		text: "Check and Command are pure: the same request gives the same command, as often as it is asked, and nothing of the invocation is changed, not behind the end of its slices either."},
	{name: "dry-run", test: dryRun,
		text: "A plan says what would run and starts and writes nothing."},
	{name: "arguments", test: arguments,
		text: "The caller's own arguments reach the CLI as they are, together and in order."},
	{name: "environment", test: environment,
		text: "The agent has the caller's environment, and what the request sets wins over all that the runtime sets, or is refused as a usage error that names the variable."},
	{name: "secrets", test: secrets,
		text: "No error or warning holds the prompt or the value of a variable of the environment."},
	{name: "workdir", test: workdir,
		text: "The CLI runs in the workdir of the request, whatever characters its name has, also below the root of the repository."},
}

func commandPure(w *world) {
	req := w.full()
	if err := w.fullAccess(&req); err != nil {
		w.fatalf("%v", err)
	}
	req.Args, req.AddDirs, req.AllowCommands, req.Env = guarded(req.Args), guarded(req.AddDirs), guarded(req.AllowCommands), guarded(req.Env)
	before := req
	before.Args, before.AddDirs = slices.Clone(req.Args), slices.Clone(req.AddDirs)
	before.AllowCommands, before.Env = slices.Clone(req.AllowCommands), slices.Clone(req.Env)
	bin, _ := w.install()
	r := w.runner(bin, nil)
	var first string
	for range 3 {
		plan, err := r.DryRun(w.ctx, req)
		if err != nil {
			w.fatalf("a request with all that Options names is refused: %v", err)
		}
		command := fingerprint(plan.Start.Command)
		if first != "" && command != first {
			w.failf("the same request gave two commands")
		}
		first = command
	}
	w.commandDirectly(req)
	for _, s := range []struct {
		name      string
		now, then []string
	}{
		{"Args", req.Args, before.Args}, {"AddDirs", req.AddDirs, before.AddDirs},
		{"AllowCommands", req.AllowCommands, before.AllowCommands}, {"Env", req.Env, before.Env},
	} {
		if !slices.Equal(s.now, s.then) {
			w.failf("it changed the request's %s", s.name)
		}
	}
}

// commandDirectly calls Command as the runner does, but with slices that tell
// whether something was written behind their end.
func (w *world) commandDirectly(req agent.Request) {
	inv := registry.Invocation{
		Token: req.Runtime, Executable: "/usr/bin/agent", Workdir: req.Workdir, Root: w.work, Prompt: req.Prompt, Model: req.Model, AppendSystemPrompt: req.AppendSystemPrompt,
		Access: cmp.Or(req.Access, agent.AccessWrite), AllowCommands: req.AllowCommands, AddDirs: req.AddDirs, MaxTurns: req.MaxTurns,
		Args: req.Args, Env: req.Env, Environ: append([]string{"HOME=" + w.home}, w.Env...),
	}
	if check := w.Runtime.Run.Check; check != nil {
		if err := check(inv); err != nil && !errors.Is(err, agent.ErrUsage) {
			w.failf("Check fails with %v, which is not a usage error", err)
		}
	}
	if _, err := w.Runtime.Run.Command(inv); err != nil && !errors.Is(err, agent.ErrUsage) {
		w.failf("Command fails with %v, which is not a usage error", err)
	}
	for name, list := range map[string][]string{
		"Args": req.Args, "AddDirs": req.AddDirs, "AllowCommands": req.AllowCommands, "Env": req.Env,
	} {
		for _, behind := range list[len(list):][:2] {
			if behind != guard {
				w.failf("it wrote behind the end of the request's %s", name)
			}
		}
	}
}

// guard is put after the end of a slice, where an append would write.
const guard = "backendtest-guard"

func guarded(list []string) []string {
	list = append(slices.Clone(list), guard, guard)
	return list[:len(list)-2]
}

// full returns a request with everything that Options says is honoured.
func (w *world) full() agent.Request {
	o := &w.Runtime.Run.Options
	req := w.request()
	req.Args = []string{"--backendtest-own", "value one"}
	req.Env = []string{"BACKENDTEST_OWN=1"}
	if o.Model {
		req.Model = modelName
	}
	if o.AppendSystemPrompt {
		req.AppendSystemPrompt = systemWords
	}
	if o.AllowCommands {
		req.AllowCommands = []string{allowedCommand}
	}
	if o.MaxTurns {
		req.MaxTurns = maxTurns
	}
	return req
}

// fullAccess makes the added directories of a full request.
func (w *world) fullAccess(req *agent.Request) error {
	if !w.Runtime.Run.Options.AddDirs {
		return nil
	}
	req.AddDirs = []string{filepath.Join(w.root, "added one ü"), filepath.Join(w.root, "added two")}
	return errors.Join(os.MkdirAll(req.AddDirs[0], 0o755), os.MkdirAll(req.AddDirs[1], 0o755))
}

// fingerprint returns all of a command in one string.
func fingerprint(c agent.Command) string {
	return strings.Join(c.Args, "\x00") + "\x01" + strings.Join(c.Env, "\x00") + "\x01" + c.Stdin
}

func dryRun(w *world) {
	w.write(filepath.Join(w.work, "AGENTS.md"), "rules\n")
	bin, a := w.install()
	before := w.snapshot(w.root)
	for _, trust := range []bool{false, true} {
		for _, token := range w.tokens() {
			req := w.request()
			req.Runtime, req.TrustWorkspace = token, trust
			var warn func(text string)
			if w.Runtime.Instructions != nil { // others warn of the AGENTS.md that is left out
				warn = func(text string) { w.failf("Plan of %s warns: %s", token, text) }
			}
			plan, err := w.runner(bin, warn).DryRun(w.ctx, req)
			if err != nil {
				w.failf("Plan of %s fails with %v", token, err)
			} else if plan.Start.Runtime != token || plan.Start.Path != a.Path || plan.Start.Workdir != w.work {
				w.failf("Plan of %s has %s, %s in %s", token, plan.Start.Runtime, plan.Start.Path, plan.Start.Workdir)
			}
		}
	}
	seen, err := a.Invocation()
	w.must(err)
	if seen != nil {
		w.failf("the CLI was started with %s", quoted(seen.Args))
	}
	if list := before.changes(w.snapshot(w.root), w.root, nil); len(list) > 0 {
		w.failf("files have changed: %s", strings.Join(list, ", "))
	}
}

func arguments(w *world) {
	own := []string{"--backendtest-own", "value with space", "*", "$HOME", "ü"}
	for _, token := range w.tokens() {
		req := w.request()
		req.Runtime, req.Args = token, own
		seen := w.started(req).seen
		if !containsRun(seen.Args, own) {
			w.failf("%s was started with %s", token, quoted(seen.Args))
		}
	}
}

// containsRun reports whether list contains part as it is.
func containsRun(list, part []string) bool {
	for i := range list {
		if len(list)-i >= len(part) && slices.Equal(list[i:i+len(part)], part) {
			return true
		}
	}
	return false
}

func environment(w *world) {
	bin, _ := w.install()
	plan, err := w.runner(bin, nil).DryRun(w.ctx, w.request())
	if err != nil {
		w.fatalf("%v", err)
	}
	seen := w.started(w.request()).seen
	if got := seen.getenv("BACKENDTEST_SETTING"); got != plainValue {
		w.failf("a variable of the caller's environment is %q", got)
	}
	// A directory, as some of the variables name one.
	own := filepath.Join(w.root, "own = value")
	w.must(os.MkdirAll(own, 0o755))
	for names := append(plan.Env, "BACKENDTEST_OWN"); ; {
		req := w.request()
		for _, name := range names {
			req.Env = append(req.Env, name+"="+own)
		}
		o := w.run(req, w.answer("fine")...)
		if o.seen != nil {
			w.set(o.seen, req.Env)
			return
		}
		refused := slices.IndexFunc(names, func(name string) bool { return strings.Contains(o.err.Error(), name) })
		if !errors.Is(o.err, agent.ErrUsage) || refused < 0 {
			w.fatalf("the CLI was not started: %v", o.err)
		}
		names = slices.Delete(names, refused, refused+1)
	}
}

// set checks that the agent has the variables.
func (w *world) set(seen *Invocation, env []string) {
	for _, entry := range env {
		name, value, _ := strings.Cut(entry, "=")
		if got := seen.getenv(name); got != value {
			w.failf("the request sets %s, but the agent has %s", name, clip(got))
		}
	}
}

func secrets(w *world) {
	check := func(what string, o *outcome) {
		texts := slices.Clone(o.warnings)
		if o.err == nil {
			w.failf("%s is not a failure", what)
		} else {
			texts = append(texts, o.err.Error())
			if exit, ok := errors.AsType[*agent.ExitError](o.err); ok {
				texts = append(texts, exit.Error(), exit.Stderr, exit.Reason)
			}
		}
		for _, text := range texts {
			for name, value := range map[string]string{"the prompt": promptWords, "a variable": plainValue, "a secret": secretValue} {
				if strings.Contains(text, value) {
					w.failf("the text of %s holds %s: %s", what, name, clip(text))
				}
			}
		}
	}
	req := w.request()
	req.Env = []string{"BACKENDTEST_MORE=" + plainValue, "BACKENDTEST_MORE_TOKEN=" + secretValue}
	check("exit code 3", w.run(req, PrintErr("the key is "), printEnv("BACKENDTEST_API_KEY"), PrintErr(" "+secretValue+"\n"), Exit(3)))
	if line := w.Lines.Failure; line != "" {
		check("a failure that quotes a key", w.run(req, Print(fill(line, secretValue, 1)), Exit(1)))
	}
	for what, change := range map[string]func(*agent.Request){
		"a model like a flag":      func(r *agent.Request) { r.Model = "-x" },
		"an unknown access word":   func(r *agent.Request) { r.Access = "all" },
		"a prompt beyond all size": func(r *agent.Request) { r.Prompt = w.tooLong(r.Prompt) },
		"a session like a flag":    func(r *agent.Request) { r.Resume = "-x" },
	} {
		bad := req
		if change(&bad); bad.Prompt == "" {
			continue
		}
		check(what, w.run(bad))
	}
}

func workdir(w *world) {
	sub := filepath.Join(w.work, "a b", "ä$(x);'")
	w.must(os.MkdirAll(sub, 0o755))
	for _, dir := range []string{w.work, sub} {
		req := w.request()
		req.Workdir = dir
		seen := w.started(req).seen
		if seen.Dir != dir {
			w.failf("with the workdir %s it ran in %s", dir, seen.Dir)
		}
		if got := seen.getenv("PWD"); got != dir {
			w.failf("with the workdir %s PWD is %s", dir, got)
		}
	}
}
