package worker

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/busdk/bus-agent/runner"
	"github.com/busdk/bus-agent/runs"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/structured"

	"github.com/busdk/bus-integration-task/closeout"
	"github.com/busdk/bus-integration-task/task"
	"github.com/busdk/bus-integration-task/worker/backend"
	"github.com/busdk/bus-integration-task/worker/settings"
	"github.com/busdk/bus-integration-task/worktree"
)

// A Bridge is the Handler that lets an agent, or a container, work in an isolated worktree,
// compares what was reported with what was changed, and promotes the result. Its fields may
// not change while it is used.
type Bridge struct {
	Settings settings.Settings
	Backend  backend.Backend

	// State is a folder for private git directories, which tasks cannot write to; see
	// worktree.Config. "" is one in the user's state.
	State string
	// Environ is the environment of the worker. Its secrets are masked in events.
	Environ []string
	// Hidden, if set, returns further secrets to be masked, as in an environment, for a task
	// whose runtime keeps its state in a folder, "" for none. It is called for each attempt,
	// since tokens are renewed.
	Hidden func(stateDir string) []string
	// Logger gets what went wrong and does not change how a task ends. Nil drops it.
	Logger *slog.Logger
}

// Bounds of what an event carries.
const (
	maxDiff    = 256 << 10
	maxRequest = 1 << 20
	cleanUp    = time.Minute
)

// Work implements [Handler].
func (b *Bridge) Work(ctx context.Context, c *Claim) End {
	a := &attempt{Bridge: b, claim: c, state: c.Task(), begun: time.Now(), hidden: b.Environ}
	a.hide()
	a.previous = a.state.RunID
	end := a.work(ctx)
	if ctx.Err() != nil && (end.Name == "" || end.Name == task.Failed) { // it failed because it had to stop
		end = a.handBack(context.Cause(ctx))
	}
	return a.withWorktree(end)
}

// handBack lets another attempt try again.
func (a *attempt) handBack(why error) End {
	return End{Name: task.Released, Payload: a.inThread(a.outcome.Conversation, task.Payload{
		Text: a.line("handed back: " + why.Error()), Labels: a.labels(a.outcome.Model),
	})}
}

// hide adds the secrets of the moment to those that are masked.
func (a *attempt) hide() {
	if a.Hidden == nil {
		return
	}
	for _, entry := range a.Hidden(a.Settings.StateDir(a.state.Ref)) {
		if !slices.Contains(a.hidden, entry) {
			a.hidden = append(slices.Clip(a.hidden), entry)
		}
	}
}

// attempt is one call of Work.
type attempt struct {
	*Bridge
	claim *Claim
	state task.State
	begun time.Time

	hidden []string // whose secrets are masked: Environ and what follows it

	place      string               // of sessions; see placeOf
	repository *worktree.Repository // nil without worktrees
	tree       *worktree.Worktree
	workdir    string
	outcome    backend.Outcome
	plan       closeout.Items // before the work
	primary    string         // state of the checkout before the work, without worktrees
	primaryErr error
	notes      []string // IDs
	hours      int      // with an hourly note
	approvals  int      // highest number of an approval request of the task
	previous   string   // run record of the attempt before
	runs       []string // run records of this one
	said       []string // by users to this attempt
	reused     bool     // the worktree has work of earlier attempts
	replaced   bool     // another try begins in a new worktree
	measured   bool     // changed is known
	changed    bool     // files of the worktree differ from its base
	left       bool     // the worktree, or its branch, has work and was kept
	judged     string   // the files of the worktree that were compared with the report
	promoted   bool
	rebased    string // the commit that was tested, if another one was promoted
	ended      string // name of the event that ends the attempt
}

func (a *attempt) work(ctx context.Context) End {
	if end, over := a.open(ctx); over {
		return end
	}
	decision := a.claim.Decide("")
	if decision.Action == task.Recover {
		promoted, err := a.contains(ctx, decision.Commit)
		switch {
		case errors.Is(err, worktree.ErrLocked): // its holder may be about to promote the commit
			return a.handBack(err)
		case err != nil:
			return a.failed("cannot tell whether commit "+decision.Commit+" was promoted", err)
		case promoted && decision.EndsRound:
			return a.earlier(closeout.Verdict{Outcome: closeout.Done, Reason: "promoted by attempt " + a.state.Announced.AttemptID}, decision.Commit)
		}
		decision = a.claim.Decide(decision.Commit)
	}
	switch decision.Action {
	case task.Run:
	case task.GiveUp:
		return a.earlier(closeout.Verdict{Outcome: closeout.Failed, Reason: decision.Reason}, "")
	default:
		return End{}
	}
	var err error
	if a.Settings.AgentBackend != backend.NameContainer {
		if a.place, err = placeOf(a.Settings.CodexStateRoot); err != nil {
			return a.failed("cannot use the folder for sessions", err)
		}
	}
	request, err := a.request(ctx)
	if err != nil {
		return a.failed("cannot read the request", err)
	}
	for left := a.Settings.SafeCrashRetries; ; left-- {
		end, again := a.try(ctx, request, left > 0)
		if !again {
			return end
		}
	}
}

// try lets an agent work in a worktree. Again reports that it crashed, that replace allows
// another try, and that what it has left is gone.
func (a *attempt) try(ctx context.Context, request string, replace bool) (end End, again bool) {
	err := a.checkOut(ctx)
	switch {
	case errors.Is(err, worktree.ErrLocked): // an earlier attempt is still being ended
		return a.handBack(err), false
	case err != nil:
		return a.failed("cannot make a worktree", err), false
	}
	a.measured, a.replaced = false, false
	defer a.cleanUp(ctx)
	if err := a.before(ctx); err != nil {
		return a.failed("cannot read the state before the work", err), false
	}
	err = a.step(ctx, "turn", func(ctx context.Context) error { return a.converse(ctx, request) })
	for _, tried := range a.outcome.Attempts {
		a.ran(tried.RunID)
	}
	a.ran(a.outcome.RunID)
	switch {
	case errors.Is(err, ErrLost) || ctx.Err() != nil:
		return End{}, false
	case err != nil:
		return a.failed("cannot start the backend", err), false
	case a.outcome.Retryable && replace && a.tree != nil && !a.reused:
		a.report(ctx, task.Message, task.Payload{Text: a.line("the agent crashed and is started again in a new worktree: " + a.outcome.Err.Error()), RunID: a.outcome.RunID})
		a.previous, a.replaced = cmp.Or(a.outcome.RunID, a.previous), true
		return End{}, true
	}
	end = a.conclude(ctx)
	a.ended = end.Name
	return end, false
}

// ran notes a run record of the attempt.
func (a *attempt) ran(id string) {
	if id != "" && !slices.Contains(a.runs, id) {
		a.runs = append(a.runs, id)
	}
}

// report appends an event; that it cannot is only logged.
func (a *attempt) report(ctx context.Context, name string, p task.Payload) {
	if err := a.claim.Report(ctx, name, p); err != nil && ctx.Err() == nil {
		a.warn("cannot report " + name + ": " + err.Error())
	}
}

// open finds the repository of the recipient. Over reports that the task ends.
func (a *attempt) open(ctx context.Context) (end End, over bool) {
	primary, err := a.Settings.Repository(a.state.Recipient)
	if err != nil {
		return a.failed("the recipient has no repository", err), true
	}
	a.workdir = primary
	if !a.Settings.Worktree {
		return End{}, false
	}
	if a.repository, err = a.repositoryOf(ctx, a.state.Recipient); err != nil {
		return a.failed("cannot use the repository", err), true
	}
	return End{}, false
}

// repositoryOf opens the repository of a recipient.
func (b *Bridge) repositoryOf(ctx context.Context, recipient string) (*worktree.Repository, error) {
	primary, err := b.Settings.Repository(recipient)
	if err != nil {
		return nil, err
	}
	_, state, err := b.folders()
	if err != nil {
		return nil, err
	}
	return worktree.Open(ctx, primary, worktree.Config{Workspace: b.Settings.WorkspaceRoot, State: state})
}

// folders returns the folder of worktrees and that of private git directories. By default
// they are in the user's state, where other users cannot make them first.
func (b *Bridge) folders() (trees, state string, err error) {
	trees, state = b.Settings.WorktreeRoot, b.State
	if trees != "" && state != "" {
		return trees, state, nil
	}
	records, err := runs.DefaultRoot(b.Environ)
	if err != nil {
		return "", "", err
	}
	folder := filepath.Dir(records)
	return cmp.Or(trees, filepath.Join(folder, "task-worktrees")), cmp.Or(state, filepath.Join(folder, "task-git")), nil
}

func (a *attempt) contains(ctx context.Context, commit string) (bool, error) {
	if a.repository == nil {
		return false, nil
	}
	promoted, err := a.repository.Contains(ctx, a.state.Announced.BaseBranch, commit)
	if promoted && errors.Is(err, worktree.ErrDirty) {
		a.report(ctx, task.Message, task.Payload{Text: a.line("commit " + commit + " is promoted: " + err.Error())})
		err = nil
	}
	return promoted, err
}

// request returns what the task asks for in full: the text that created it, and the text
// that last opened it again. It also counts the approval requests.
func (a *attempt) request(ctx context.Context) (string, error) {
	var parts []string
	size := 0
	err := a.claim.Events(ctx, func(e task.Event) error {
		if n, err := strconv.Atoi(e.ApprovalID); err == nil && e.Name == task.ApprovalRequested {
			a.approvals = max(a.approvals, min(n, math.MaxInt32))
		}
		if e.ID != a.state.CreatedID && e.ID != a.state.OpenedID {
			return nil
		}
		for _, text := range []string{e.Text, e.Body} {
			if text = strings.TrimSpace(text); text != "" {
				size += len(text)
				parts = append(parts, text)
			}
		}
		if size > maxRequest {
			return fmt.Errorf("it has more than %d bytes", maxRequest)
		}
		return nil
	})
	return strings.Join(parts, "\n\n"), err
}

// checkOut makes the worktree.
func (a *attempt) checkOut(ctx context.Context) (err error) {
	if a.repository == nil {
		return nil
	}
	trees, _, err := a.folders()
	if err != nil {
		return err
	}
	a.tree, err = a.repository.Add(ctx, worktree.Options{
		Root: trees, Ref: a.state.Ref,
		Branch: a.state.Branch.Name, CreateBranch: a.state.Branch.Create, BaseBranch: a.state.Branch.Base,
		WorktreeID: a.state.Branch.WorktreeID, Reuse: a.state.Branch.ReuseWorktree, NoLinks: !a.Settings.ReadOnlyDeps,
	})
	if err == nil {
		a.workdir = a.tree.Path()
		a.reused = a.tree.Continued()
	}
	return err
}

// converse runs the backend until the attempt is done or ctx ends.
func (a *attempt) converse(ctx context.Context, request string) error {
	for _, text := range a.said { // to an agent that crashed
		request += "\n\n" + text
	}
	prompt := request
	if a.Settings.RequireCloseout {
		prompt += "\n\n" + closeout.Instruction
	}
	thread := a.thread(ctx)
	if thread.ID != "" && a.tree != nil && !a.reused {
		prompt = newWorktree + "\n\n" + prompt
	}
	env, err := a.secrets()
	if err != nil {
		return err
	}
	commands, err := a.Settings.Commands(a.values(request, prompt))
	if err != nil {
		return err
	}
	// The append is refused if the task has changed in a way that the worker has not seen.
	if err := a.claim.Progress(ctx, "starting the agent"); err != nil {
		return err
	}
	report := func(name string, p task.Payload) { a.report(ctx, name, p) }
	running, err := a.Backend.Start(ctx, backend.Attempt{
		Workdir: a.workdir, Surroundings: a.surroundings(), Prompt: prompt, ThreadID: thread.ID, ThreadRuntime: thread.Runtime,
		Model: a.model(), Effort: a.effort(), Sandbox: a.Settings.Sandbox,
		ApprovalPolicy: a.Settings.ApprovalPolicy, ApprovalTimeout: a.Settings.ApprovalTimeout,
		Timeout: a.Settings.Timeout, StateDir: a.Settings.StateDir(a.state.Ref), Env: env, Hidden: a.hidden[len(a.Environ):], Commands: commands,
		Labels: backend.RecordLabels(a.state.Recipient, a.state.Ref, a.previous), Tags: a.tags(), ApprovalsBefore: a.approvals,
	}, backend.Listener{
		Opened: func(o backend.Conversation) {
			text := "session opened"
			if o.Runtime == backend.NameContainer {
				text = "run record opened"
			}
			report(task.Progress, a.inThread(o, task.Payload{Text: text, Labels: a.labels(o.Model)}))
		},
		Notice:   func(text string) { report(task.Message, task.Payload{Text: text}) },
		Message:  func(text string) { report(task.Message, task.Payload{Text: text}) },
		Progress: func(text string) { report(task.Progress, task.Payload{Text: text}) },
		ApprovalRequested: func(r backend.Approval) {
			if n, err := strconv.Atoi(r.ID); err == nil {
				a.approvals = max(a.approvals, n)
			}
			report(task.ApprovalRequested, task.Payload{ApprovalID: r.ID, Text: strings.TrimSpace(r.Kind + ": " + r.Summary), Body: r.Reason})
		},
		ApprovalClosed: func(id string) {
			report(task.Message, task.Payload{ApprovalID: id, Text: "approval request " + id + " was closed without an answer"})
		},
	})
	if err != nil {
		return err
	}
	note := time.NewTimer(a.hourly(ctx))
	defer note.Stop()
	for {
		select {
		case <-note.C:
			note.Reset(a.hourly(ctx))
		case <-running.Done():
			a.outcome = running.Outcome()
			a.askForCloseout(ctx, running)
			a.stop(ctx, running, "the attempt is done")
			return nil
		case <-ctx.Done():
			a.outcome = a.stop(ctx, running, context.Cause(ctx).Error())
			return nil
		case i := <-a.claim.Inputs():
			a.pass(ctx, running, i)
		}
	}
}

// newWorktree begins the prompt of a conversation whose worktree is another one than before.
const newWorktree = "The working directory is a new checkout. Changes that were made earlier in this conversation are in it only if they were promoted."

// surroundings returns the folder with the links to dependencies; "" without any.
func (a *attempt) surroundings() string {
	if a.tree == nil || !a.Settings.ReadOnlyDeps || len(a.tree.Links()) == 0 {
		return ""
	}
	return a.tree.Folder()
}

// pass passes a message of a user, or an answer, on to the agent.
func (a *attempt) pass(ctx context.Context, running backend.Running, i Input) {
	if i.ApprovalID != "" {
		d, err := session.ParseDecision(i.Decision)
		if err == nil {
			err = running.Answer(ctx, i.ApprovalID, d)
		}
		if errors.Is(err, backend.ErrNotPending) {
			a.report(ctx, task.Message, task.Payload{Text: "the answer to approval request " + oneLine(i.ApprovalID) + " came too late and has no effect"})
		} else if err != nil {
			a.warn("cannot answer approval request " + i.ApprovalID + ": " + err.Error())
		}
		return
	}
	if _, err := running.Say(ctx, i.Text); err != nil {
		a.warn("cannot deliver a message: " + err.Error())
		return
	}
	a.said = append(a.said, i.Text)
	a.claim.Delivered(i.EventID)
}

// askForCloseout asks once more if the answer has no closeout.
func (a *attempt) askForCloseout(ctx context.Context, running backend.Running) {
	if !a.Settings.RequireCloseout || a.outcome.Result != backend.Completed || a.Settings.AgentBackend == backend.NameContainer {
		return
	}
	if _, err := closeout.Parse(a.outcome.Text); err == nil {
		return
	}
	asking, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	answer, err := backend.AskJSON(asking, running, closeout.Again, closeoutSchema())
	if err != nil {
		a.warn("cannot ask for a closeout: " + err.Error())
		return
	}
	a.outcome.Text = string(answer)
}

var closeoutSchema = sync.OnceValue(func() *structured.Schema {
	s, err := structured.Compile([]byte(closeout.Schema))
	if err != nil {
		panic(err) // a constant
	}
	return s
})

func (a *attempt) stop(ctx context.Context, running backend.Running, reason string) backend.Outcome {
	stopping, cancel := bounded(ctx, cleanUp)
	defer cancel()
	return running.Stop(stopping, reason)
}

func (b *Bridge) logger() *slog.Logger { return loggerOr(b.Logger) }

func (a *attempt) warn(line string) {
	a.logger().Warn(runner.Mask(a.hidden, line), "task", a.state.Ref)
}

func (a *attempt) failed(what string, err error) End {
	v := closeout.Verdict{Outcome: closeout.Failed, Reason: a.line(what + ": " + err.Error())}
	e := a.record(v)
	e.NoChangeReason = v.Reason
	return End{Name: task.Failed, Payload: a.inThread(a.outcome.Conversation, task.Payload{
		Text: v.Reason, Status: string(v.Outcome), Labels: e.Labels, Evidence: encode(e.JSON(a.hidden)),
	})}
}

// line returns a text for a line of an event, without secrets. A text that was cut first
// could have part of one.
func (a *attempt) line(text string) string { return oneLine(runner.Mask(a.hidden, text)) }

// oneLine returns a text as a bounded line.
func oneLine(text string) string {
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) }), " ")
	if len(text) > maxLine {
		text = strings.ToValidUTF8(text[:maxLine], "") + "…"
	}
	return text
}

const maxLine = 1000

func encode(text json.RawMessage, err error) json.RawMessage {
	if err != nil {
		return nil
	}
	return text
}
