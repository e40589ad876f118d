package control

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/process"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/runner"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/engine"
)

// starting is a session that is about to start.
type starting struct {
	manager  *Manager
	runner   *runner.Runner
	runtime  registry.Runtime
	request  agent.Request // without Resume
	options  session.Options
	first    Message  // without text if there is none
	takes    []string // media types of files
	delivery engine.Delivery
	entry    Entry
	warnings []string // up to now
	// inherited says that the ID is new, or from the environment alone.
	inherited bool
	native    string // the runtime's own variable for the ID
}

// prepare settles what opts asks for. Nothing is started or written.
func (m *Manager) prepare(ctx context.Context, opts StartOptions, options session.Options) (*starting, error) {
	if err := checkOptions(options); err != nil {
		return nil, err
	}
	settings := opts.Settings
	mode, err := session.ParseMode(string(settings.Mode))
	if err != nil {
		return nil, err
	}
	if err := checkName(opts.Name); err != nil {
		return nil, err
	}
	inherited, _ := agent.LookupEnv(m.environ(), EnvWorkdir)
	workdir, err := directory(cmp.Or(settings.Workdir, opts.Env[EnvWorkdir], inherited))
	if err != nil {
		return nil, err
	}
	r := *m.runner()
	r.Workdir, r.TrustWorkspace = workdir, settings.TrustWorkspace
	r.RequireConfigured = r.RequireConfigured || settings.RequireConfigured
	r.Recorder = agent.Recorders(settings.Record.Recorder(), r.Recorder)
	selection, err := r.Resolve(ctx, settings.Runtime)
	if err != nil && !errors.Is(err, agent.ErrNotInstalled) { // which the runner returns and records
		return nil, err
	}
	p := &starting{manager: m, runner: &r, runtime: selection.Runtime, request: settings.request(), options: options, first: Message{Text: opts.InitialPrompt, Attachments: opts.InitialAttachments}}
	p.request.MCPServers = slices.Concat(p.request.MCPServers, opts.UnsavedMCPServers)
	p.warnings = selection.Warnings
	if err := p.setMode(mode); err != nil {
		return nil, err
	}
	if p.first.Text != "" || len(p.first.Attachments) > 0 {
		if err := p.check(p.first); err != nil {
			return nil, err
		}
	}
	account, err := p.setAccount(settings.AccountDir, m.environ())
	if err != nil {
		return nil, err
	}
	id := p.identify(opts, m.environ())
	settings.Runtime, settings.Workdir, settings.Mode, settings.AccountDir = selection.Token, workdir, mode, account
	p.request.Runtime, p.request.Workdir = selection.Token, workdir
	if settings.Policy != nil {
		if err := settings.Policy.Check(); err != nil {
			return nil, err
		}
		if err := settings.Policy.CheckPlace(slices.Concat([]string{workdir}, settings.AddDirs)...); err != nil {
			return nil, err
		}
		p.options.Policy = settings.Policy
	}
	p.options.Mode, p.options.TurnTimeout, p.options.ApprovalTimeout = mode, settings.TurnTimeout, settings.ApprovalTimeout
	p.entry = Entry{
		SessionID: id.SessionID, Name: opts.Name, Settings: settings,
		Role: id.Role, Rig: id.Rig, Polecat: id.Polecat, Actor: id.Actor,
		State: session.StateStarting, Fresh: true, Owner: process.Self(), OwnerPID: os.Getpid(), OwnerEnds: m.ends, Host: hostName(), Started: now(),
	}
	if m.Serve {
		p.entry.Folder = folderName(id.SessionID)
	}
	return p, p.setEnv(opts.Env)
}

// refused returns the usage error of the request, or nil. Other errors are left to the
// start, which records them.
func (p *starting) refused(ctx context.Context) error {
	if err := p.runner.CheckSession(ctx, p.request, p.options); errors.Is(err, agent.ErrUsage) {
		return err
	}
	return nil
}

// openHooks opens the hooks of the session. One of its settings that cannot be
// opened is an error; one of the manager's is a warning.
func (p *starting) openHooks(ctx context.Context, warn func(string)) (*Hooks, error) {
	environ := runner.CleanPath(p.manager.environ(), p.entry.Workdir, p.entry.TrustWorkspace, p.entry.AddDirs...)
	return openHooks(ctx, environ, p.manager.Sinks, p.entry.Hooks, warn)
}

func (p *starting) setMode(mode session.Mode) error {
	held := p.runtime.Session
	switch {
	case mode == session.ModeTmux && p.runner.OpenTerminal == nil && engine.RegisteredTerminals() == nil:
		return agent.Usagef("%w; nothing was started", session.ErrNoTerminals)
	case mode == session.ModeTmux && p.runtime.Terminal == nil:
		return unsupported("%s cannot be held in a terminal; nothing was started", p.runtime.Name)
	case mode == session.ModeTmux:
		p.delivery = engine.DeliverTmux // only text can be typed
	case held == nil:
		return unsupported("%s cannot hold a session; nothing was started", p.runtime.Name)
	default:
		p.delivery, p.takes = held.Delivers(), held.Options.Attachments
	}
	if held != nil {
		p.native = held.SessionEnv
	}
	return nil
}

// setAccount lets the agent be logged in as the account of a folder. It is the
// environment that the agent inherits: a private home then links that login.
func (p *starting) setAccount(dir string, environ []string) (string, error) {
	if dir == "" {
		return "", nil
	}
	if p.runtime.Session == nil || p.runtime.Home.Env == "" {
		return "", unsupported("%s cannot be given the folder of an account; nothing was started", p.runtime.Name)
	}
	abs, err := filepath.Abs(dir)
	if err == nil {
		err = isDirectory(abs)
	}
	if err != nil {
		return "", agent.Usagef("account folder %q: %w", dir, err)
	}
	name := p.runtime.Home.Env
	p.runner.Environ = append(slices.DeleteFunc(slices.Clone(environ), func(entry string) bool {
		return strings.HasPrefix(entry, name+"=")
	}), name+"="+abs)
	return abs, nil
}

// directory returns the absolute form of a workdir, which must exist.
func directory(workdir string) (string, error) {
	dir, err := filepath.Abs(workdir)
	if err == nil {
		err = isDirectory(dir)
	}
	if err != nil {
		return "", agent.Usagef("workdir %q: %w", workdir, err)
	}
	return dir, nil
}

// identify settles who the agent is.
func (p *starting) identify(opts StartOptions, environ []string) Identity {
	var asked []string
	for name, value := range opts.Env {
		asked = append(asked, name+"="+value)
	}
	own := or(opts.Identity, identityOf(asked, ""))
	p.inherited = own.SessionID == ""
	id := or(own, identityOf(environ, p.native))
	if id.SessionID == "" {
		id.SessionID = newID()
	}
	return id
}

// setEnv sets the variables of the agent.
func (p *starting) setEnv(env map[string]string) error {
	list := slices.Clone(p.request.Env)
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			return agent.Usagef("%q is not the name of a variable", name)
		}
		list = append(list, name+"="+env[name])
	}
	p.request.Env = append(list, p.identity()...)
	return nil
}

// identity returns the variables that give the agent its identity.
func (p *starting) identity() []string {
	e := p.entry
	return Identity{e.SessionID, e.Role, e.Rig, e.Polecat, e.Actor}.environ(p.native, e.Workdir)
}

// claim writes the entry of a session that starts, in place of the one that claimed, an
// owner, has written for it. An ID that was not asked for is taken only where no
// session has it: an agent that starts a session passes its ID on.
func (p *starting) claim(ctx context.Context, store *Store, claimed string) error {
	environ := p.identity()
	if err := store.claim(ctx, &p.entry, !p.inherited, claimed); err != nil {
		return err
	}
	p.request.Env = append(p.request.Env[:len(p.request.Env)-len(environ)], p.identity()...)
	return nil
}

// check refuses a message that the session cannot take.
func (p *starting) check(m Message) error {
	if m.Delivery != "" && m.Delivery != p.delivery {
		return agent.Usagef("the session takes messages by %s, not by %s; the message was not sent", p.delivery, m.Delivery)
	}
	if err := checkText(m.Text, p.runtime); err != nil {
		return err
	}
	if len(m.Attachments) == 0 {
		return nil
	}
	err := agent.CheckAttachments(m.Attachments, p.takes, func(a agent.Attachment) error {
		return unsupported("a session of %s cannot pass the file %q (%s) to its model", p.runtime.Name, a.Name, a.MediaType())
	})
	if err != nil {
		return err
	}
	return checkText(agent.AttachmentText(m.Attachments)+m.Text, p.runtime)
}
