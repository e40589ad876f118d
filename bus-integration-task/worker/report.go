package worker

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/busdk/bus-agent/runner"

	"github.com/busdk/bus-integration-task/closeout"
	"github.com/busdk/bus-integration-task/task"
	"github.com/busdk/bus-integration-task/worker/backend"
	"github.com/busdk/bus-integration-task/worker/settings"
	"github.com/busdk/bus-integration-task/worktree"
)

// judge decides how the attempt ends.
func (a *attempt) judge(ctx context.Context, w *closeout.Work) (*closeout.Closeout, closeout.Verdict) {
	if a.Settings.AgentBackend == backend.NameContainer {
		a.closingNote(ctx, nil, *w)
		w.NoteIDs = a.notes
		return nil, closeout.JudgeCommand(*w)
	}
	var report *closeout.Closeout
	if parsed, err := closeout.Parse(a.outcome.Text); err == nil {
		report = &parsed
	} else {
		w.CloseoutError = err.Error()
	}
	a.closingNote(ctx, report, *w)
	w.NoteIDs = a.notes
	if report != nil {
		report.AgentID, report.AgentsMDPath = a.state.Recipient, agentsMD(a.workdir)
		report.BusNotes = closeout.BusNotes{IDs: a.notes, Query: closeout.NotesQuery(a.state.Recipient, a.state.Ref)}
	}
	return report, closeout.Judge(report, *w)
}

// measure finds out what the attempt has done, and returns the diff, which may be cut.
func (a *attempt) measure(ctx context.Context) (w closeout.Work, diff string, err error) {
	a.hide() // a runtime renews its tokens
	w = closeout.Work{
		Turn: turnOf(a.outcome), Root: a.workdir, Commands: a.outcome.Commands, Environ: a.hidden,
		Policy: a.Settings.Evidence(),
	}
	if a.outcome.Err != nil {
		w.TurnError = a.outcome.Err.Error()
	}
	if after := readPlan(a.workdir); after.Exists || a.plan.Exists {
		w.Plan = &closeout.Plan{Before: a.plan, After: after}
	}
	if a.tree == nil {
		w.Unmeasured = a.unmeasured(ctx)
		return w, "", nil
	}
	changes, err := a.tree.Changes(ctx, maxDiff)
	if err != nil {
		return w, "", err
	}
	if changes.Total > len(changes.Files) {
		return w, "", errors.New("more files have changed than can be checked")
	}
	for _, f := range changes.Files {
		w.Files = append(w.Files, f.Path)
	}
	w.Written = writtenAt(a.workdir, w.Files)
	w.HeadMoved, w.DiffBytes, a.judged = changes.HeadMoved, changes.Diff.Size, changes.Tree
	return w, maskedHead(a.hidden, changes.Diff), nil
}

// maskedHead returns the beginning of a diff without secrets, and without the beginning of
// one that it was cut in.
func maskedHead(environ []string, d worktree.Diff) string {
	var text strings.Builder
	out := runner.NewMaskWriter(&text, environ)
	_, _ = out.Write([]byte(d.Text)) // into memory
	if d.Size == int64(len(d.Text)) {
		_ = out.Flush()
	}
	return text.String()
}

func turnOf(o backend.Outcome) closeout.Turn {
	switch o.Result {
	case backend.Completed:
		return closeout.TurnCompleted
	case backend.Canceled:
		return closeout.TurnInterrupted
	case backend.TimedOut:
		return closeout.TurnTimedOut
	}
	return closeout.TurnFailed
}

// end returns the end of the attempt as an event.
func (a *attempt) end(report *closeout.Closeout, w closeout.Work, v closeout.Verdict) End {
	name := map[closeout.Outcome]string{closeout.Done: task.Done, closeout.Blocked: task.Blocked, closeout.Failed: task.Failed}[v.Outcome]
	p := a.inThread(a.outcome.Conversation, task.Payload{
		Text: v.Reason, Status: string(v.Outcome),
		Labels: a.labels(a.outcome.Model), Evidence: a.evidence(report, w, v, ""),
	})
	if report != nil {
		p.Closeout = encode(report.JSON(a.hidden))
		if v.Outcome == closeout.Done && report.Summary != "" {
			p.Text = report.Summary
		}
	}
	p.Text = a.line(p.Text)
	return End{Name: name, Payload: p}
}

func (a *attempt) evidence(report *closeout.Closeout, w closeout.Work, v closeout.Verdict, commit string) []byte {
	e := a.record(v)
	e.Commit = commit
	if commit != "" {
		e.RebasedFrom = a.rebased
	} else if a.tree != nil && a.tree.Head() != a.tree.Base() {
		e.BranchCommit = a.tree.Head()
	}
	e.SetWork(report, w, v)
	if v.Outcome != closeout.Done && e.BranchCommit == "" {
		e.NoChangeReason = cmp.Or(e.NoChangeReason, v.Reason)
	}
	return encode(e.JSON(a.hidden))
}

// record returns the evidence of an attempt without that of work.
func (a *attempt) record(v closeout.Verdict) closeout.Evidence {
	e := closeout.Evidence{
		WorkRef: a.state.Ref, AttemptID: a.claim.Attempt(), WorkerID: a.state.Attempt.WorkerID, RunID: a.outcome.RunID,
		AgentID: a.state.Recipient, Labels: a.labels(a.outcome.Model),
		RemoteID: a.Settings.RemoteID, RemoteKind: a.Settings.RemoteKind,
		Started: a.begun, Ended: time.Now(), Outcome: v.Outcome, Reason: v.Reason,
	}
	if len(a.runs) > 1 {
		e.RunIDs = a.runs
	}
	if a.tree != nil {
		e.Branch, e.WorktreeID = a.tree.Branch(), a.tree.ID()
	}
	return e
}

// earlier returns the end of a task by what attempts before this one have done.
func (a *attempt) earlier(v closeout.Verdict, commit string) End {
	name, before := task.Done, a.state.Announced
	if v.Outcome == closeout.Failed {
		name = task.Failed
	}
	e := a.record(v)
	e.Labels, e.RunID, e.Commit = a.state.Used, cmp.Or(before.RunID, a.state.RunID), commit
	if commit == "" {
		e.NoChangeReason = v.Reason
	}
	return End{Name: name, Payload: task.Payload{
		Text: v.Reason, Status: string(v.Outcome), Commit: commit, RunID: e.RunID, Labels: e.Labels, Evidence: encode(e.JSON(a.hidden)),
	}}
}

// labels returns what the worker has used. A task chooses the model and the effort, but
// not the login.
func (a *attempt) labels(observed string) task.Labels {
	asked, s := a.state.Labels, &a.Settings
	return task.Labels{
		ObservedModel:        observed,
		RequestedModel:       cmp.Or(asked.RequestedModel, s.Model),
		RequestedEffort:      cmp.Or(asked.RequestedEffort, string(s.ReasoningEffort)),
		WorkerProfile:        cmp.Or(s.WorkerProfile, asked.WorkerProfile),
		AuthMode:             s.AuthMode,
		CredentialSourceKind: s.CredentialKind,
	}
}

func (a *attempt) model() string { return a.labels("").RequestedModel }

func (a *attempt) effort() string { return a.labels("").RequestedEffort }

// tags returns the labels as those of a request.
func (a *attempt) tags() map[string]string {
	tags := map[string]string{"worker_id": a.state.Attempt.WorkerID, "attempt_id": a.claim.Attempt()}
	text, err := json.Marshal(a.labels(""))
	if err == nil {
		err = json.Unmarshal(text, &tags)
	}
	if err != nil {
		a.warn("labels: " + err.Error()) // cannot happen for strings
	}
	return tags
}

// secrets returns the variables with credentials for the agent.
func (a *attempt) secrets() (env []string, err error) {
	if a.Settings.AuthMode != settings.AuthOpenAIKey || a.Settings.AgentBackend == backend.NameContainer {
		return nil, nil
	}
	key, err := settings.Secrets{Environ: a.Environ, Dirs: a.Settings.SecretDirs()}.OpenAIKey(a.Settings.CredentialRef)
	if err != nil {
		return nil, err
	}
	env = []string{"OPENAI_API_KEY=" + key}
	a.hidden = slices.Concat(a.hidden, env)
	return env, nil
}

// values are the values of placeholders in commands and messages.
func (a *attempt) values(request, prompt string) settings.Values {
	v := settings.Values{
		"prompt": prompt, "text": a.state.Title, "body": request, "work_ref": a.state.Ref,
		"recipient": a.state.Recipient, "module": a.state.Recipient,
		"main_repo_path": a.workdir, "repo_path": a.workdir,
		"branch": a.state.Branch.Name, "base_branch": a.state.Branch.Base,
	}
	if a.state.Branch.Create {
		v["create_branch"] = "true"
	}
	if a.repository != nil {
		v["main_repo_path"] = a.repository.Primary()
	}
	if a.tree != nil {
		v["worktree_path"], v["worktree_branch"] = a.tree.Path(), a.tree.Branch()
	}
	return v
}

func agentsMD(dir string) string {
	if info, err := os.Lstat(filepath.Join(dir, "AGENTS.md")); err == nil && info.Mode().IsRegular() {
		return "AGENTS.md"
	}
	return ""
}
