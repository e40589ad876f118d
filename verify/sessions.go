package verify

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/unix"
	"github.com/busdk/bus-agent/modeltest"
	"github.com/busdk/bus-agent/session"
)

// What the scenes of sessions found, by the names of the checks.
const (
	turnsFact     = "session-turns"
	slashFact     = "session-slash"
	approvalFact  = "session-approval"
	resumeFact    = "session-resume"
	systemFact    = "session-system-prompt"
	nothingFact   = "session-runs-nothing"
	steerFact     = "session-steer"
	interruptFact = "session-interrupt"
)

// found returns what a scene found under a name.
func found(name string) func(*trial) error {
	return func(t *trial) error { return t.facts[name] }
}

// The messages of the scenes of sessions. In the answer to one of a file, the model makes
// that file.
const (
	declinedFile = "declined"
	acceptedFile = "accepted"
	leftMessage  = "go left"
	rightMessage = "go right"
	slashMessage = "/help the reader"
	sleepMessage = "sleep"
	againMessage = "once more"

	sleeping    = "running" // the file that the command of sleepMessage makes
	longCommand = "sleep 300"
)

// open starts a session, whose approval requests approve answers.
func (t *trial) open(req agent.Request, approve func(session.Approval) session.Decision) (*session.Session, error) {
	req = t.requestOf(t.runtime.Session.Use, req)
	if t.runtime.Session.Options.AppendSystemPrompt {
		req.AppendSystemPrompt = systemText
	}
	s, err := t.runner().StartSession(t.ctx, req, session.Options{
		Approve: func(_ context.Context, a session.Approval) session.Decision { return approve(a) },
	})
	if err != nil {
		return nil, fmt.Errorf("the session did not begin: %w", err)
	}
	return s, nil
}

// say sends a message to a session, whose answer must be want.
func (t *trial) say(s *session.Session, text, want string) error {
	return t.hear(s.Send(session.Message{Text: text}), text, want)
}

// hear waits for a turn, whose answer must be want.
func (t *trial) hear(turn *session.Turn, text, want string) error {
	switch r, err := turn.Wait(t.ctx); {
	case err != nil:
		return fmt.Errorf("the turn with the message %q failed: %w", text, err)
	case strings.TrimSuffix(r.Text, t.target.AnswerSuffix) != want:
		return fmt.Errorf("the answer to %q is %s, want %s", text, quote(r.Text), quote(want))
	}
	return nil
}

// conversation is a scene of a session with turns and approval requests, whose agent is
// killed, and that is then resumed, in a repository that would run programs.
var conversation = &scene{func(t *trial) error {
	var outside string
	called := map[string]bool{} // by message
	script := func(r *modeltest.Request) modeltest.Reply {
		prompt := lastText(r)
		for _, file := range []string{declinedFile, acceptedFile} {
			if strings.HasSuffix(prompt, file) && !called[file] {
				called[file] = true
				return modeltest.Reply{t.guarded("echo x | tee -a '" + filepath.Join(outside, file) + "'")}
			}
		}
		for message, answer := range replyTo {
			if strings.HasSuffix(prompt, message) {
				return says(answer)
			}
		}
		return says("done")
	}
	if err := t.arrange(script, atRoot); err != nil {
		return err
	}
	if _, err := t.plant(); err != nil {
		return err
	}
	defer func() { t.note(nothingFact, t.noneFired()) }()
	outside = filepath.Dir(t.work)
	var asked approvals
	s, err := t.open(agent.Request{Access: t.supported(agent.AccessWrite, agent.AccessRead)}, asked.answer)
	if err != nil {
		for _, name := range []string{turnsFact, slashFact, approvalFact, resumeFact, systemFact} {
			t.note(name, err)
		}
		return nil
	}
	defer s.Stop(context.WithoutCancel(t.ctx), "the check is over")
	t.note(turnsFact, t.takeTurns(s))
	t.note(slashFact, t.takeSlash(s))
	if t.target.Command != nil {
		t.note(approvalFact, t.tryApprovals(s, &asked, outside))
	}
	if t.runtime.Session.Options.Resume {
		t.note(resumeFact, t.resumeAfterKill(s))
	}
	t.note(systemFact, t.sessionSystemPrompt())
	return nil
}}

// sessionSystemPrompt checks the first turn, and that of the resumed session if there is
// one.
func (t *trial) sessionSystemPrompt() error {
	messages := []string{firstTake}
	if t.runtime.Session.Options.Resume {
		messages = append(messages, continueTake)
	}
	for _, message := range messages {
		r, err := t.requestWith(message)
		if err == nil {
			err = systemTextIn(r)
		}
		if err != nil {
			return fmt.Errorf("the turn with the message %q: %w", message, err)
		}
	}
	return nil
}

// guarded returns the call of a tool for which the CLI requests an approval.
func (t *trial) guarded(command string) modeltest.ToolCall {
	if t.target.Guarded != nil {
		return t.target.Guarded(command)
	}
	return t.target.Command(command)
}

func (t *trial) takeTurns(s *session.Session) error {
	for _, message := range []string{firstTake, resumeTake} {
		if err := t.say(s, message, replyTo[message]); err != nil {
			return err
		}
	}
	r, err := t.requestWith(resumeTake)
	if err != nil {
		return err
	}
	return t.remembers(r, resumeTake)
}

// requestWith returns the last request whose last message of the user ends with message.
// Besides, some CLIs ask the model for a title and the like.
func (t *trial) requestWith(message string) (*modeltest.Request, error) {
	for _, r := range slices.Backward(t.model.ModelRequests()) {
		if strings.HasSuffix(t.lastPrompt(r), message) {
			return r, nil
		}
	}
	return nil, fmt.Errorf("the model did not get %s", quote(message))
}

func (t *trial) takeSlash(s *session.Session) error {
	if err := t.say(s, slashMessage, "done"); err != nil {
		return err
	}
	_, err := t.requestWith(slashMessage)
	return err
}

// remembers checks that a request with the message last has the first turn of the
// conversation and AGENTS.md, once.
func (t *trial) remembers(r *modeltest.Request, last string) error {
	for _, text := range []string{firstTake, replyTo[firstTake], last} {
		if n := r.Count(text); n != 1 {
			return fmt.Errorf("%q is in the conversation %d times", text, n)
		}
	}
	return t.rulesOnce(r, rootMark)
}

// approvals are the approval requests of a session, by a file that they name.
type approvals struct {
	mu    sync.Mutex
	count map[string]int
}

// answer accepts the request that names acceptedFile, and declines others.
func (a *approvals) answer(request session.Approval) session.Decision {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.count == nil {
		a.count = map[string]int{}
	}
	for _, file := range []string{acceptedFile, declinedFile} {
		if request.Tool != nil && strings.Contains(string(request.Tool.Input), file) {
			a.count[file]++
			if file == acceptedFile {
				return session.Accept
			}
		}
	}
	return session.Decline
}

func (t *trial) tryApprovals(s *session.Session, asked *approvals, folder string) error {
	for _, file := range []string{declinedFile, acceptedFile} {
		message := "make the file " + file
		turn := s.Send(session.Message{Text: message})
		// An agent may end the turn after a declined command.
		if _, err := turn.Wait(t.ctx); file == acceptedFile || err != nil && !errors.Is(err, agent.ErrCanceled) {
			if err := t.hear(turn, message, "done"); err != nil {
				return err
			}
		}
		_, missing := os.Lstat(filepath.Join(folder, file))
		asked.mu.Lock()
		n := asked.count[file]
		asked.mu.Unlock()
		switch made := missing == nil; {
		case n == 0:
			return fmt.Errorf("no approval was requested for the command that makes the file %s; it was made: %v", file, made)
		case made && file == declinedFile:
			return errors.New("a command that was declined has run")
		case !made && file == acceptedFile:
			return fmt.Errorf("a command that was accepted has not run; the tools answered %s", quote(toolResults(t.model.ModelRequests())))
		}
	}
	return nil
}

// resumeAfterKill kills the agent's processes and resumes its session.
func (t *trial) resumeAfterKill(s *session.Session) error {
	id := s.Info().SessionID
	if id == "" {
		return errors.New("the session has no ID")
	}
	if pid := s.PID(); pid == 0 {
		return errors.New("the process of the agent is not known")
	} else if err := unix.Kill(-pid, syscall.SIGKILL); err != nil {
		return fmt.Errorf("the agent is not the leader of a process group: %w", err)
	}
	select {
	case <-s.Done():
	case <-t.ctx.Done():
		return errors.New("the session did not end with its agent")
	}
	if err := t.checkProcesses(); err != nil {
		return err
	}
	again, err := t.open(agent.Request{Resume: id, Access: t.supported(agent.AccessWrite, agent.AccessRead)}, new(approvals).answer)
	if err != nil {
		return err
	}
	defer again.Stop(context.WithoutCancel(t.ctx), "the check is over")
	if err := t.say(again, continueTake, replyTo[continueTake]); err != nil {
		return err
	}
	if got := again.Info().SessionID; got != id {
		return fmt.Errorf("the turn belongs to the session %q instead of %q", got, id)
	}
	list := t.model.ModelRequests()
	return t.remembers(list[len(list)-1], continueTake)
}

// supported returns the first access that the sessions of the runtime support, or "".
func (t *trial) supported(list ...agent.Access) agent.Access {
	for _, access := range list {
		if slices.Contains(t.runtime.Session.Options.Access, access) {
			return access
		}
	}
	return ""
}

// interruption is a scene of a session that gets a message during a turn, and whose next
// turn is interrupted while a command runs.
var interruption = &scene{func(t *trial) error {
	held := make(chan struct{})
	script := func(r *modeltest.Request) modeltest.Reply {
		switch prompt := lastText(r); {
		case strings.HasSuffix(prompt, leftMessage):
			return modeltest.Reply{modeltest.Text{"on my way"}, modeltest.Wait(held)}
		case strings.HasSuffix(prompt, rightMessage):
			return says("turned")
		case strings.HasSuffix(prompt, sleepMessage):
			return modeltest.Reply{t.target.Command("touch " + sleeping + "; " + longCommand)}
		}
		return says("again")
	}
	if err := t.arrange(script, atRoot); err != nil {
		return err
	}
	s, err := t.open(agent.Request{Access: t.supported(agent.AccessFull, agent.AccessWrite)}, new(approvals).answer)
	if err != nil {
		t.note(steerFact, err)
		t.note(interruptFact, err)
		return nil
	}
	defer s.Stop(context.WithoutCancel(t.ctx), "the check is over")
	t.note(steerFact, t.steer(s, held))
	if t.target.Command != nil && t.supported(agent.AccessFull) != "" {
		t.note(interruptFact, t.interrupt(s))
	}
	return nil
}}

// steer sends a message while the model holds its answer to another, until held is closed.
func (t *trial) steer(s *session.Session, held chan struct{}) error {
	first := s.Send(session.Message{Text: leftMessage})
	_, err := t.model.Await(t.ctx, 1)
	var second *session.Turn
	if err == nil {
		second = s.Steer(t.ctx, session.Message{Text: rightMessage})
	}
	close(held)
	if err != nil {
		return fmt.Errorf("the model got no request: %w", err)
	}
	if second != first {
		if err := t.hear(first, leftMessage, "on my way"); err != nil {
			return err
		}
	}
	if err := t.hear(second, rightMessage, "turned"); err != nil {
		return err
	}
	list := t.model.ModelRequests()
	if n := list[len(list)-1].Count(rightMessage); n != 1 {
		return fmt.Errorf("%q is in the conversation %d times", rightMessage, n)
	}
	return nil
}

func (t *trial) interrupt(s *session.Session) error {
	turn := s.Send(session.Message{Text: sleepMessage})
	err := t.until(turn.Done(), func() bool {
		_, missing := os.Lstat(filepath.Join(t.work, sleeping))
		return missing == nil
	})
	if err != nil {
		return fmt.Errorf("the command did not run: %w", err)
	}
	if err := s.Interrupt(t.ctx); err != nil {
		return fmt.Errorf("the interrupt failed: %w", err)
	}
	if _, err := turn.Wait(t.ctx); !errors.Is(err, agent.ErrCanceled) {
		return fmt.Errorf("the turn ended with %s instead of a cancellation", describe(err))
	}
	var left string
	err = t.until(nil, func() bool {
		left = t.running(longCommand)
		return left == ""
	})
	if err != nil {
		return fmt.Errorf("a process is still running: %s", quote(left))
	}
	return t.say(s, againMessage, "again")
}

// until waits until a condition holds. It fails when stop is closed, or after a sixth of
// the limit of a check: the tools of an interrupted turn end soon.
func (t *trial) until(stop <-chan struct{}, holds func() bool) error {
	limited, cancel := context.WithTimeout(t.ctx, t.limit()/6)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-stop:
			return errors.New("the turn ended before")
		case <-limited.Done():
			return limited.Err()
		}
	}
	return nil
}

// running returns the command line of a process of the trial that has part in it, or "".
func (t *trial) running(part string) string {
	lines, err := t.processes()
	if err != nil {
		return err.Error()
	}
	for _, line := range lines {
		if strings.Contains(line, part) {
			return line
		}
	}
	return ""
}
