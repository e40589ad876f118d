package sessions

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/process"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/runner"
	"github.com/busdk/bus-agent/session"
)

// plan is a session that is about to start.
type plan struct {
	runner   *runner.Runner
	runtime  registry.Runtime
	request  agent.Request
	options  session.Options
	prompt   string
	delivery session.Delivery
	entry    Entry
	// inherited says that the ID is from the environment alone.
	inherited bool
	native    string // the runtime's own variable for the ID
}

// plan settles what opts asks for. Nothing is started or written.
func (m *Manager) plan(ctx context.Context, opts StartOptions) (*plan, error) {
	mode, err := session.ParseMode(string(opts.Mode))
	if err == nil {
		err = opts.Request.CheckUnused("StartOptions", "Runtime", "Workdir", "Prompt", "Template", "Vars", "Resume")
	}
	if err == nil {
		err = opts.Request.CheckSession()
	}
	if err != nil {
		return nil, err
	}
	r := *m.runner()
	inherited, _ := agent.LookupEnv(m.environ(), EnvWorkDir)
	r.Workdir, r.TrustWorkspace = cmp.Or(opts.WorkDir, inherited), opts.Request.TrustWorkspace
	selection, err := r.Resolve(ctx, opts.RuntimeName)
	if err != nil {
		return nil, err
	}
	r.Warn = func(line string) {
		if !slices.Contains(selection.Warnings, line) { // it was said just now
			m.runnerWarn(line)
		}
	}
	p := &plan{runner: &r, runtime: selection.Runtime, request: opts.Request, options: opts.Session, prompt: opts.InitialPrompt}
	if err := p.setMode(mode); err != nil {
		return nil, err
	}
	if p.prompt != "" {
		if err := checkText(p.prompt, p.runtime); err != nil {
			return nil, err
		}
	}
	account, err := p.setAccount(opts.AccountDir, m.environ())
	if err != nil {
		return nil, err
	}
	id, err := p.identify(opts, m.environ())
	if err != nil {
		return nil, err
	}
	p.request.Runtime, p.request.Workdir = selection.Token, id.WorkDir
	p.entry = Entry{
		SessionID: id.SessionID, Runtime: selection.Token, WorkDir: id.WorkDir, Mode: mode, AccountDir: account,
		Model: p.request.Model, Access: p.request.Access,
		Role: id.Role, Rig: id.Rig, Polecat: id.Polecat, Actor: id.Actor, Bead: opts.Bead,
		State: StateStarting, Owner: process.Self(), Host: hostName(), Started: now(),
	}
	return p, p.setEnv(opts.Env)
}

func (p *plan) setMode(mode Mode) error {
	held := p.runtime.Session
	switch {
	case mode == ModeTmux && p.runner.OpenTerminal == nil && session.RegisteredTerminals() == nil:
		return agent.Usagef("%w; nothing was started", session.ErrNoTerminals)
	case mode == ModeTmux && p.runtime.Terminal == nil:
		return agent.Usagef("%s cannot be held in a terminal; nothing was started", p.runtime.Name)
	case mode == ModeTmux:
		p.delivery = session.DeliverTmux
	case held == nil:
		return agent.Usagef("%s cannot hold a session; nothing was started", p.runtime.Name)
	default:
		p.delivery = held.Delivers()
	}
	if held != nil {
		p.native = held.SessionEnv
	}
	return nil
}

// setAccount lets the agent be logged in as the account of a folder. It is the
// environment that the agent inherits: a private home then links that login.
func (p *plan) setAccount(dir string, environ []string) (string, error) {
	if dir == "" {
		return "", nil
	}
	if p.runtime.Session == nil || p.runtime.Session.AccountEnv == "" {
		return "", agent.Usagef("%s cannot be given the folder of an account; nothing was started", p.runtime.Name)
	}
	abs, err := filepath.Abs(dir)
	if err == nil {
		err = isDirectory(abs)
	}
	if err != nil {
		return "", agent.Usagef("account folder %q: %w", dir, err)
	}
	name := p.runtime.Session.AccountEnv
	p.runner.Environ = append(slices.DeleteFunc(slices.Clone(environ), func(entry string) bool {
		return strings.HasPrefix(entry, name+"=")
	}), name+"="+abs)
	return abs, nil
}

// identify settles who the agent is, and where.
func (p *plan) identify(opts StartOptions, environ []string) (Identity, error) {
	var asked []string
	for name, value := range opts.Env {
		asked = append(asked, name+"="+value)
	}
	own := IdentityOf(asked, "").over(opts.Identity)
	own.WorkDir = cmp.Or(opts.WorkDir, own.WorkDir)
	p.inherited = own.SessionID == ""
	id := IdentityOf(environ, p.native).over(own)
	if id.SessionID == "" {
		id.SessionID = newID()
	}
	dir, err := filepath.Abs(id.WorkDir)
	if err == nil {
		err = isDirectory(dir)
	}
	if err != nil {
		return Identity{}, agent.Usagef("workdir %q: %w", id.WorkDir, err)
	}
	id.WorkDir = dir
	return id, nil
}

// setEnv sets the variables of the agent.
func (p *plan) setEnv(env map[string]string) error {
	list := slices.Clone(p.request.Env)
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			return agent.Usagef("%q is no name of a variable", name)
		}
		list = append(list, name+"="+env[name])
	}
	p.request.Env = append(list, p.identity().Environ(p.native)...)
	return nil
}

func (p *plan) identity() Identity {
	e := p.entry
	return Identity{SessionID: e.SessionID, Role: e.Role, Rig: e.Rig, Polecat: e.Polecat, Actor: e.Actor, WorkDir: e.WorkDir}
}

// errTaken says that an ID that was not asked for is of another session.
var errTaken = errors.New("the ID is taken")

// claim writes the entry of a session that starts. An ID that was inherited is
// taken only where nobody has it: an agent that starts a session passes its own on.
func (p *plan) claim(ctx context.Context, store *Store) error {
	id := p.entry.SessionID
	err := store.Update(ctx, id, func(e *Entry) error {
		if e.SessionID != "" && p.inherited {
			return errTaken
		}
		if err := e.inUse(); err != nil {
			return err
		}
		*e = p.entry
		return nil
	})
	if err != errTaken {
		return err
	}
	p.entry.SessionID = newID()
	environ := p.identity().Environ(p.native)
	p.request.Env = append(p.request.Env[:len(p.request.Env)-len(environ)], environ...)
	return store.Save(ctx, p.entry)
}

func (p *plan) checkDelivery(d session.Delivery) error {
	if d == "" {
		return nil
	}
	if _, err := session.ParseDelivery(string(d)); err != nil {
		return err
	}
	if d != p.delivery {
		return agent.Usagef("the session takes messages by %s, not by %s; the message was not sent", p.delivery, d)
	}
	return nil
}
