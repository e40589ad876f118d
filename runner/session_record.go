package runner

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/engine"
)

// sessionRecording reports a session to its recorder.
type sessionRecording struct {
	prepared *prepared
	begun    time.Time

	mu        sync.Mutex
	stop      func() // ends the session if its required record fails
	ended     bool
	sessionID string
	model     string
	usage     *agent.Usage
	answer    agent.Result // of the last turn that succeeded
	cut       error        // of the turn that the end of the agent cut short
	failure   error
}

// watch passes the events and messages of a session to the recorder first.
func (r *sessionRecording) watch(options *session.Options) {
	if !r.prepared.isRecorded {
		return
	}
	recording := &r.prepared.recording
	events, sending, over, answered := options.Events, options.Sending, options.Over, options.Answered
	options.Events = func(e *agent.Event) error {
		r.note(e)
		if recording.Events != nil {
			r.failed(recording.Events(e))
		}
		if events != nil {
			return events(e)
		}
		return nil
	}
	options.Sending = func(m session.Message) {
		if recording.Message != nil {
			r.failed(recording.Message(agent.UserMessage{Text: m.Text, Attachments: agent.AttachmentInfos(m.Attachments)}))
		}
		if sending != nil {
			sending(m)
		}
	}
	options.Answered = func(q session.QuestionRequest, answers [][]string) {
		if recording.Message != nil {
			r.failed(recording.Message(agent.UserMessage{Text: q.Message(answers)}))
		}
		if answered != nil {
			answered(q, answers)
		}
	}
	options.Over = func(t *session.Turn) {
		result, err := t.Wait(context.Background()) // it is over
		r.mu.Lock()
		switch {
		case err == nil:
			r.answer = result
		case result.ExitCode < 0 && !errors.Is(err, agent.ErrCanceled) && !errors.Is(err, session.ErrNotDelivered):
			r.cut = err
		}
		r.mu.Unlock()
		if over != nil {
			over(t)
		}
	}
}

func (r *sessionRecording) note(e *agent.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case e.Kind == agent.KindSessionStarted && e.SessionID != "":
		r.sessionID = e.SessionID
		if e.Model != "" {
			r.model = e.Model
		}
	case e.Kind == agent.KindUsage && e.Usage != nil && e.Subagent == "":
		r.usage = e.Clone().Usage
	}
}

// failed ends a session whose required record failed.
func (r *sessionRecording) failed(err error) {
	if err == nil {
		return
	}
	r.mu.Lock()
	first := r.failure == nil
	if first {
		r.failure = err
	}
	stop := r.stop
	r.mu.Unlock()
	if first && stop != nil {
		stop()
	}
}

// setStop sets how the session is ended, and ends it if the record failed already.
func (r *sessionRecording) setStop(stop func()) {
	r.mu.Lock()
	r.stop = stop
	failed := r.failure != nil
	r.mu.Unlock()
	if failed {
		stop()
	}
}

// end ends the record. Info is what the session knows of itself, err the error of the
// agent's process.
func (r *sessionRecording) end(info engine.Info, code int, signal string, err error) {
	r.mu.Lock()
	if r.ended {
		r.mu.Unlock()
		return
	}
	r.ended = true
	result := agent.Result{
		Runtime: r.prepared.req.Runtime, Model: r.model, SessionID: r.sessionID, Text: r.answer.Text, TextTruncated: r.answer.TextTruncated,
		Usage: r.usage, Duration: time.Since(r.begun), ExitCode: code, Signal: signal, Warnings: r.prepared.warned(),
	}
	if info.SessionID != "" {
		result.SessionID = info.SessionID
	}
	if info.Model != "" {
		result.Model = info.Model
	}
	if result.Model == "" {
		result.Model = r.prepared.req.Model
	}
	// The failure of a turn is not that of the session, which can continue.
	if err == nil {
		err = r.cut
	}
	if err == nil {
		err = r.failure
	}
	r.mu.Unlock()
	// The session's folders can be removed at the same time, within another share.
	ctx, release := lasting(context.Background(), afterLimit/recordShare, stopLimit)
	defer release()
	if failure := r.prepared.recorded(ctx, &result, err); failure != nil && err == nil {
		r.prepared.warn(failure.Error())
	}
}

// recordedAgent is the agent of a session that is done when its record is complete.
type recordedAgent struct {
	*sessionAgent
	opened   atomic.Bool
	recorded chan struct{}
}

// Done is closed when the record is complete; before the session is open, with the
// agent.
func (a *recordedAgent) Done() <-chan struct{} {
	if a.opened.Load() {
		return a.recorded
	}
	return a.sessionAgent.Done()
}

// follow ends the record with the session.
func (a *recordedAgent) follow(s *session.Session, r *sessionRecording) {
	if !a.isRecorded {
		return
	}
	a.opened.Store(true)
	go func() {
		defer close(a.recorded)
		<-a.sessionAgent.Done()
		<-s.Ended()
		var err error
		if a.exit.Code != 0 && !a.stopped {
			err = &agent.Error{Kind: agent.ErrAgent, Runtime: a.req.Runtime, Err: a.exit}
		}
		r.end(s.Info(), a.exit.Code, a.exit.Signal, err)
	}()
}
