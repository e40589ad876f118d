package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/instructions"
	"github.com/busdk/bus-agent/internal/process"
	"github.com/busdk/bus-agent/internal/tree"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/render"
)

// A DryRun is what Run would do with a request.
type DryRun struct {
	Start     agent.Start
	Selection Selection
	Settings  Settings
	// Env names the variables bus-agent sets for the agent.
	Env []string
	// Files describes what would be written below the workdir, one line each.
	Files []string
	// SchemaInPrompt reports that the agent gets Request.Schema in its prompt, not by
	// an option of its CLI.
	SchemaInPrompt bool
	Warnings       []string
}

// DryRun does everything Run does before it writes a file or starts a process, and
// returns what Run would do, or its error.
func (r *Runner) DryRun(ctx context.Context, req agent.Request) (DryRun, error) {
	p, err := r.prepare(ctx, req, agent.Output{}, forDryRun)
	if err != nil {
		return DryRun{}, err
	}
	defer p.close(ctx)
	if err := p.build(); err != nil {
		return DryRun{}, err
	}
	dry := DryRun{
		Start:     p.start(),
		Selection: p.selection,
		Settings:  p.settings,
		Env:       p.envNames(),
		Warnings:  p.warnings,

		SchemaInPrompt: len(req.Schema) > 0 && p.inv.Schema == nil,
	}
	if p.workspace != nil {
		dry.Files = p.workspace.Actions()
	}
	return dry, nil
}

// A purpose is what a request is prepared for.
type purpose uint8

const (
	forRun purpose = iota
	forDryRun
	forSession
	forTerminal
)

// talks reports whether the request is for a session, which may begin without a prompt.
func (p purpose) talks() bool { return p == forSession || p == forTerminal }

// prepared is a resolved request with everything set up for its run.
type prepared struct {
	purpose    purpose
	req        agent.Request // settled
	out        agent.Output
	selection  Selection
	settings   Settings
	use        registry.Use // of the selected runtime, for the purpose
	inv        registry.Invocation
	setup      registry.Setup
	command    agent.Command // empty until build
	chain      instructions.Chain
	workspace  *instructions.Workspace // nil where the runtime takes no instructions
	warning    sync.Mutex              // for warnings, which a session's goroutines add
	warnings   []string
	warn       func(string)
	secrets    *Masker
	path       pathRule
	enforced   []string      // names of variables that nothing overrides
	gitEnv     []string      // see settleGit
	silence    time.Duration // see resultSilence
	userConfig []agent.ConfigFile
	unreached  time.Duration // see unreachedDelay
	unanswered time.Duration // see unansweredDelay
	entries    int           // see tree.SurveyEntries
	tempClaim  *process.Claim
	recording  agent.Recording
	isRecorded bool        // a recorder records the run
	began      atomic.Bool // the agent was started
	protected  []string

	budgets    [2]*tree.Budget // before and after the agent
	afterwards context.Context // see after
	cleaning   context.Context // the part of it before the end of the record
	endAfter   func()
}

// prepare resolves req and sets up its run. Every error of a request is found before
// anything is written. With an error it returns what is resolved by then, which need
// not be closed.
func (r *Runner) prepare(ctx context.Context, req agent.Request, out agent.Output, what purpose) (*prepared, error) {
	p, err := r.resolveRequest(ctx, req, out, what)
	if err != nil {
		return p, err
	}
	return p, p.arrange(ctx, p.selection.Runtime)
}

// resolveRequest is prepare without what is looked up or made in folders.
func (r *Runner) resolveRequest(ctx context.Context, req agent.Request, out agent.Output, what purpose) (*prepared, error) {
	p := &prepared{
		req: req, out: out, purpose: what,
		silence:    cmp.Or(r.silence, resultSilence),
		unreached:  cmp.Or(r.unreached, unreachedDelay),
		unanswered: cmp.Or(r.unanswered, unansweredDelay),
		entries:    cmp.Or(r.entries, tree.SurveyEntries),
	}
	for _, rt := range r.registry().All() {
		p.protected = append(append(p.protected, rt.Protected...), rt.Executed...)
	}
	guardOutput(&p.out)
	p.warn = func(line string) {
		line = oneLine(p.secrets.Text(line))
		p.warning.Lock()
		p.warnings = append(p.warnings, line)
		p.warning.Unlock()
		r.warn(line)
	}
	if err := process.Supported(); err != nil {
		return p, &agent.Error{Kind: agent.ErrUsage, Err: err}
	}
	if p.purpose.talks() {
		if err := p.req.CheckUnused("a session", runOnly...); err != nil {
			return p, err
		}
	}
	if err := p.settleText(); err != nil {
		return p, err
	}
	if err := p.settlePaths(); err != nil {
		return p, err
	}
	if err := p.settleEnv(r.environ()); err != nil {
		return p, err
	}
	quiet := *r
	quiet.Warn, quiet.Workdir, quiet.TrustWorkspace = p.warn, p.req.Workdir, p.req.TrustWorkspace
	var err error
	l := quiet.lookup(ctx, p.warn, p.req.AddDirs...)
	if p.selection, err = quiet.resolve(l, req.Runtime); err != nil {
		return p, err
	}
	p.selection.Warnings = slices.Clone(p.warnings)
	rt := p.selection.Runtime
	if err := p.choose(rt); err != nil {
		return p, err
	}
	p.settings = quiet.settings(l, rt.ID, req, "")
	if err := apply(&p.req, p.settings, rt, p.use.Options, p.warn); err != nil {
		return p, err
	}
	p.req.Runtime = p.selection.Token
	p.settle()
	if err := p.settleMCP(l); err != nil {
		return p, err
	}
	if err := p.check(); err != nil {
		return p, err
	}
	if err := context.Cause(ctx); err != nil {
		return p, canceled(p.req.Runtime, err)
	}
	return p, nil
}

// choose sets the use of rt for the purpose.
func (p *prepared) choose(rt registry.Runtime) error {
	switch {
	case p.purpose == forSession && rt.Session == nil:
		return cannot(rt, "hold a session")
	case p.purpose == forSession:
		p.use = rt.Session.Use
	case p.purpose == forTerminal && rt.Terminal == nil:
		return cannot(rt, "be held in a terminal")
	case p.purpose == forTerminal:
		p.use = rt.Terminal.Use
		p.use.Options.Attachments = nil // only text can be typed
	case rt.Run.Command == nil:
		return cannot(rt, "run once; start a session with it")
	default:
		p.use = rt.Run
	}
	return nil
}

// settle makes the invocation of the resolved request; its Environ is set already.
func (p *prepared) settle() {
	req := &p.req
	p.inv = registry.Invocation{
		Token: req.Runtime, Variant: p.selection.Variant, Executable: p.selection.Path,
		Workdir: req.Workdir, Root: p.chain.Root, Repositories: repositories(req.Workdir, p.inv.Environ), Prompt: req.Prompt,
		Model: req.Model, ReasoningEffort: req.ReasoningEffort, Verbosity: req.Verbosity,
		AppendSystemPrompt: req.AppendSystemPrompt, AllowTools: req.AllowTools, DenyTools: req.DenyTools,
		UserConfig: req.UserConfig, Access: req.Access, AllowCommands: req.AllowCommands, AddDirs: req.AddDirs,
		Resume: req.Resume, Continue: req.Continue, MaxTurns: req.MaxTurns, Schema: req.Schema,
		Args: req.Args, Env: req.Env, Environ: p.inv.Environ,
		TrustWorkspace: req.TrustWorkspace, RequireInstructions: req.RequireInstructions, IdleTimeout: req.IdleTimeout,
	}
	p.settleAttachments()
	p.settleSchema()
}

// check returns the errors of the invocation that can be found before anything is
// written.
func (p *prepared) check() error {
	if err := p.checkAttachments(); err != nil {
		return err
	}
	if err := checkPrompt(agent.AttachmentText(p.req.Attachments)+p.inv.Prompt, p.selection.Runtime); err != nil {
		return err
	}
	for _, args := range [][]string{p.inv.Args, p.inv.AllowCommands} {
		if err := p.checkArgs(args); err != nil {
			return err
		}
	}
	if p.use.Check == nil {
		return nil
	}
	return p.wrap(agent.ErrUsage, p.use.Check(p.inv))
}

func (p *prepared) checkArgs(args []string) error {
	for _, arg := range args {
		if strings.ContainsRune(arg, 0) {
			return p.wrap(agent.ErrUsage, fmt.Errorf("the argument %q has a NUL character; nothing was started", arg))
		}
	}
	return nil
}

// build completes the invocation and makes its command.
func (p *prepared) build() (err error) {
	if !p.purpose.talks() { // a session guards its messages itself
		p.inv.Prompt = p.setup.Prefix + agent.AttachmentText(p.req.Attachments) + p.inv.Prompt
		if p.use.SlashCommands {
			p.inv.Prompt = agent.GuardSlash(p.inv.Prompt)
		}
	}
	if p.command, err = p.use.Command(p.inv); err != nil {
		return p.wrap(agent.ErrUsage, err)
	}
	if p.purpose == forTerminal && len(p.files()) > 0 {
		return p.wrap(agent.ErrUsage, fmt.Errorf("a terminal cannot hand on the descriptors that %s wants; nothing was started", p.selection.Runtime.Name))
	}
	return p.checkArgs(p.command.Args)
}

// files returns the contents of the open descriptors that the agent gets.
func (p *prepared) files() [][]byte { return slices.Concat(p.inv.Files, p.command.Files) }

// wrap adds a kind and the runtime to err unless it has them. Nil stays nil.
func (p *prepared) wrap(kind, err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*agent.Error](err); ok {
		if e.Runtime != "" {
			return err
		}
		return &agent.Error{Kind: e.Kind, Runtime: p.req.Runtime, Err: err}
	}
	return &agent.Error{Kind: kind, Runtime: p.req.Runtime, Err: err}
}

// settleText renders the template and checks the prompt.
func (p *prepared) settleText() error {
	req := &p.req
	switch {
	case req.Prompt != "" && req.Template != "":
		return agent.Usagef("both a prompt and a template are given; give one")
	case req.Template == "" && len(req.Vars) > 0:
		return agent.Usagef("Request.Vars has no use without a template; nothing was started")
	case req.Template != "":
		text, err := render.Render(req.Template, req.Vars)
		if err != nil {
			return err
		}
		req.Prompt = text
	}
	req.Template, req.Vars = "", nil
	if err := p.checkSchema(); err != nil {
		return err
	}
	switch {
	case strings.TrimSpace(req.Prompt) == "" && (!p.purpose.talks() || req.Prompt != ""):
		return agent.Usagef("the prompt is empty; nothing was started")
	case !utf8.ValidString(req.Prompt):
		return agent.Usagef("the prompt is not valid UTF-8; nothing was started")
	case req.AppendSystemPrompt != "" && strings.TrimSpace(req.AppendSystemPrompt) == "":
		return agent.Usagef("the additional system prompt is empty; nothing was started")
	case len(req.AppendSystemPrompt) > agent.MaxSystemPrompt:
		return agent.Usagef("the additional system prompt has %d bytes, its limit is %d; nothing was started", len(req.AppendSystemPrompt), agent.MaxSystemPrompt)
	case !utf8.ValidString(req.AppendSystemPrompt) || strings.ContainsFunc(req.AppendSystemPrompt, isUnusual):
		return agent.Usagef("the additional system prompt is not valid UTF-8, or has a control character; nothing was started")
	case !isSessionID(req.Resume):
		return agent.Usagef("session %q is not the ID of a session; nothing was started", req.Resume)
	case req.Resume != "" && req.Continue:
		return agent.Usagef("both resume and continue are set; choose one")
	case req.MaxTurns < 0:
		return agent.Usagef("max turns %d is negative", req.MaxTurns)
	case req.IdleTimeout < 0:
		return agent.Usagef("idle timeout %v is negative", req.IdleTimeout)
	}
	return checkTools(req.AllowTools, req.DenyTools)
}

// isUnusual reports whether c is a control character that no text needs.
func isUnusual(c rune) bool { return unicode.IsControl(c) && !strings.ContainsRune("\t\r\n", c) }

// isSessionID reports whether id, which may be "", cannot be mistaken for a flag or a
// path. A CLI gets it as an argument, and an agent can have made it up.
func isSessionID(id string) bool {
	return !strings.HasPrefix(id, "-") && id != "." && id != ".." && !strings.ContainsAny(id, `/\`) && !strings.ContainsFunc(id, unicode.IsControl)
}

// isUUID reports whether id has the form of a UUID.
func isUUID(id string) bool {
	groups := strings.Split(id, "-")
	for i, size := range []int{8, 4, 4, 4, 12} {
		if len(groups) != 5 || len(groups[i]) != size || strings.Trim(groups[i], "0123456789abcdefABCDEF") != "" {
			return false
		}
	}
	return true
}

func (p *prepared) settlePaths() error {
	workdir, err := directory("workdir", p.req.Workdir)
	if err != nil {
		return err
	}
	p.req.Workdir = workdir
	if p.chain, err = instructions.Discover(workdir); err != nil {
		return p.wrap(agent.ErrUsage, err)
	}
	p.req.AddDirs = slices.Clone(p.req.AddDirs)
	for i, dir := range p.req.AddDirs {
		if p.req.AddDirs[i], err = directory("added directory", dir); err != nil {
			return err
		}
	}
	return nil
}

// directory returns the absolute form of dir, which must exist.
func directory(what, dir string) (string, error) {
	if strings.ContainsRune(dir, 0) {
		return "", agent.Usagef("%s %q has a NUL character", what, dir)
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", agent.Usagef("%s %q: %w", what, dir, err)
	}
	info, err := os.Stat(abs)
	if err != nil {
		if pathErr, ok := errors.AsType[*os.PathError](err); ok {
			err = pathErr.Err
		}
		return "", agent.Usagef("%s %q: %w", what, dir, err)
	}
	if !info.IsDir() {
		return "", agent.Usagef("%s %q is not a directory", what, dir)
	}
	return abs, nil
}

func (p *prepared) settleEnv(environ []string) error {
	for _, entry := range p.req.Env {
		name, _, ok := strings.Cut(entry, "=")
		if !ok || name == "" || strings.ContainsRune(entry, 0) {
			return agent.Usagef("environment entry %q is not NAME=value", name)
		}
		if name == process.TagVariable {
			return agent.Usagef("environment variable %s is set by bus-agent, which finds the processes of the run by it; leave it out", name)
		}
	}
	merged := mergeEnv(environ, p.req.Env)
	p.secrets = NewMasker(merged)
	p.path = newPathRule(merged, p.req.TrustWorkspace, append([]string{p.req.Workdir}, p.req.AddDirs...)...)
	var warnings []string
	p.inv.Environ, p.enforced, warnings = p.path.environ(merged)
	for _, line := range warnings {
		p.warn(line)
	}
	return nil
}

func checkPrompt(prompt string, rt registry.Runtime) error {
	limit := rt.PromptLimit
	if limit.Bytes > 0 && len(prompt) > limit.Bytes {
		return cannot(rt, fmt.Sprintf("take a prompt of %d bytes, its limit is %d", len(prompt), limit.Bytes))
	}
	if limit.Runes > 0 && len(prompt) > limit.Runes {
		if n := utf8.RuneCountInString(prompt); n > limit.Runes {
			return cannot(rt, fmt.Sprintf("take a prompt of %d characters, its limit is %d", n, limit.Runes))
		}
	}
	return nil
}

// arrange checks the folders, makes the run's temporary folder and lets the runtime
// prepare the start. A dry run writes nothing.
func (p *prepared) arrange(ctx context.Context, rt registry.Runtime) (err error) {
	dryRun := p.purpose == forDryRun
	before, cancel := p.before(ctx)
	defer cancel()
	for _, w := range p.chain.Warnings {
		p.warn(w)
	}
	if p.req.RequireInstructions {
		if err := required(p.chain, rt); err != nil {
			return err
		}
	}
	if err := p.checkFolders(before, rt); err != nil {
		if cause := context.Cause(before); cause != nil {
			return canceled(p.req.Runtime, cause)
		}
		return p.wrap(agent.ErrUsage, err)
	}
	defer func() {
		if err != nil {
			p.close(ctx)
		}
	}()
	p.settleUserConfig(rt)
	if p.needsTempDir() && !dryRun {
		if p.inv.TempDir, p.tempClaim, err = makeTempDir(p.inv.Environ, tempKey(p.inv.Token, p.inv.Workdir)); err != nil {
			return p.wrap(agent.ErrAgent, fmt.Errorf("making a folder for temporary files: %w", err))
		}
		if err := p.writeAttachments(); err != nil {
			return err
		}
	}
	if rt.Instructions == nil && len(p.chain.Files) > 0 {
		p.warn(fmt.Sprintf("%s takes no project instructions; %s is left out", rt.Name, instructions.FileName))
	}
	if p.use.Prepare == nil {
		return nil
	}
	if p.workspace, err = instructions.Open(p.chain, dryRun); err != nil {
		return p.wrap(agent.ErrUsage, err)
	}
	p.workspace.Bound(before)
	setup, err := p.use.Prepare(before, p.inv, p.workspace)
	if err != nil {
		return p.wrap(agent.ErrUsage, err)
	}
	p.setup, p.inv = setup, p.inv.With(setup)
	for _, w := range setup.Warnings {
		p.warn(w)
	}
	// The ID of the latest session is the name of a file, which the repository can
	// contain.
	if !isSessionID(setup.Resume) {
		return p.wrap(agent.ErrUsage, fmt.Errorf("session %q, which is kept in the workdir, is not the ID of a session; remove its file", setup.Resume))
	}
	return nil
}

// settleUserConfig finds the files of the user's configuration, and warns of settings
// that are left out although the user did not say so, if without them requests go
// elsewhere.
func (p *prepared) settleUserConfig(rt registry.Runtime) {
	if rt.UserConfig.Files == nil {
		return
	}
	p.userConfig = rt.UserConfig.Files(p.inv)
	if p.inv.UserConfig != "" {
		return
	}
	var files, routes []string
	for _, f := range p.userConfig {
		if !f.Used && len(f.Routes) > 0 {
			files = append(files, f.Path)
			routes = append(routes, f.Routes...)
		}
	}
	if len(files) > 0 {
		p.warn(fmt.Sprintf("%s is left out; it sets %s, which can change where requests go or how they are paid for; use --user-config on to use it, or off to silence this warning",
			strings.Join(files, " and "), strings.Join(routes, ", ")))
	}
}

// required returns why the AGENTS.md files of chain cannot be delivered whole.
func required(chain instructions.Chain, rt registry.Runtime) error {
	switch {
	case len(chain.Files) == 0:
		return agent.Usagef("no %s applies to %s, but it is required", instructions.FileName, chain.Workdir)
	case rt.Instructions == nil:
		return cannot(rt, "be given "+instructions.FileName+", but it is required")
	case !chain.WithinLimit(rt.Instructions.MaxBytes):
		return agent.Usagef("%s is %d bytes, more than %s is given, but it is required whole", instructions.FileName, chain.Size(), rt.Name)
	case len(chain.Warnings) > 0:
		return agent.Usagef("%s is required whole, but %s", instructions.FileName, chain.Warnings[0])
	}
	return nil
}

// close cleans up where nothing follows.
func (p *prepared) close(parent context.Context) {
	defer p.finish()
	p.cleanUp(parent)
}

// cleanUp removes what was set up for the run, and what was added to the workdir if
// the agent was not started.
func (p *prepared) cleanUp(parent context.Context) {
	p.after(parent)
	defer p.reportLeft()
	if p.setup.Close != nil {
		for _, w := range p.setup.Close(p.cleaning) {
			p.warn(w)
		}
	}
	if dir := p.inv.TempDir; dir != "" {
		b := p.budgets[1]
		if err := removeTempDir(b, dir); err != nil && (!errors.Is(err, tree.ErrOver) || !b.Leave(dir, err)) {
			p.warn(fmt.Sprintf("the run's temporary files are left behind: %v", err))
		}
		p.tempClaim.Release()
	}
	if p.workspace != nil {
		if !p.began.Load() {
			if err := p.workspace.Undo(); err != nil {
				p.warn(fmt.Sprintf("cannot remove what was added for the run: %v", err))
			}
		}
		p.workspace.Close()
	}
}

// warned returns the warnings so far.
func (p *prepared) warned() []string {
	p.warning.Lock()
	defer p.warning.Unlock()
	return slices.Clone(p.warnings)
}

func (p *prepared) start() agent.Start {
	return agent.Start{
		Runtime: p.req.Runtime,
		Model:   p.req.Model,
		Workdir: p.req.Workdir,
		Path:    p.selection.Path,
		Command: p.command,
		RunID:   p.recording.RunID,

		UserConfig: p.userConfig,
	}
}

// environ returns the agent's environment: the caller's, then the run's, the runtime's
// and the request's variables, each winning over those before. PATH is always clean, and
// the variables of settleGit win over all.
func (p *prepared) environ() []string {
	changes := []string{"PWD=" + p.req.Workdir}
	if dir := p.inv.TempDir; dir != "" {
		changes = append(changes, "TMPDIR="+dir)
	}
	changes = append(changes, p.recording.Env...)
	changes = append(changes, p.command.Env...)
	changes = append(changes, p.setup.Env...)
	environ, _, _ := p.path.environ(mergeEnv(p.inv.Environ, append(changes, p.req.Env...)))
	return mergeEnv(environ, p.gitEnv)
}

// maskedEnviron returns the agent's environment and masks its secrets from then on: the
// runtime's own variables can be secrets too.
func (p *prepared) maskedEnviron() []string {
	environ := p.environ()
	p.secrets = NewMasker(slices.Concat(p.inv.Environ, environ, agent.MCPSecrets(p.inv.MCPServers)))
	return environ
}

// envNames returns the names of the variables that environ sets or removes.
func (p *prepared) envNames() []string {
	names := append([]string{"PWD", process.TagVariable}, p.enforced...)
	if p.needsTempDir() {
		names = append(names, "TMPDIR")
	}
	for _, list := range [][]string{p.command.Env, p.setup.Env, p.req.Env} {
		for _, entry := range list {
			name, _, _ := strings.Cut(entry, "=")
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// formatter returns the renderer of the run's text.
func (p *prepared) formatter() agent.Formatter {
	if p.out.Formatter != nil {
		if f := p.out.Formatter(); f != nil {
			return f
		}
	}
	return p.selection.Runtime.NewFormatter()
}
