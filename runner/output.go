package runner

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/formatters"
	"github.com/busdk/bus-agent/internal/capture"
)

// maxReason bounds the agent's text in an error, in bytes.
const maxReason = 4 << 10

// output receives everything an agent writes: it passes raw bytes to the caller's
// writers and the captures, and lines through the decoder to the caller's events and
// text, and keeps from the events what the verdict needs.
//
// Standard output and standard error arrive on one goroutine each. Everything that
// events change belongs to the former until the process has ended.
type output struct {
	to        *agent.Output
	recording *agent.Recording
	stop      context.CancelCauseFunc
	secrets   *Masker
	panics    panics
	lines     consumer // standard output on its way through the decoder
	formatter agent.Formatter
	raw       bool // text is the agent's lines as they are
	stream    *formatters.Stream
	stdout    capture.Buffer
	stderr    capture.Buffer
	errorTail *stderrTail
	text      *[]byte // gathered from the events; nil: nothing
	retries   *retries
	retryLine *formatters.Lines // finds repeated requests in standard error; may be nil

	fresh     bool // the session began with this run
	sessionID string
	model     string
	usage     *agent.Usage
	answer    capture.Answer
	last      *agent.Event // last result
	reported  bool         // and no other turn began after it
	active    bool         // there was text or a tool call
	failed    agent.Failure
	problem   string // the last one that the agent reported
	repeated  bool

	// Read by the watch.
	progress atomic.Int64  // time of the last progress, on clock
	arrived  atomic.Int64  // time of the last output
	busy     atomic.Bool   // output is being passed on
	done     atomic.Bool   // a result was reported and no task is open
	open     int           // background tasks
	wake     chan struct{} // done may have become true
	clock    time.Time
}

func newOutput(p *prepared, stop context.CancelCauseFunc) *output {
	limit := p.req.CaptureLimit
	switch {
	case limit == 0:
		limit = agent.DefaultCaptureLimit
	case limit < 0:
		limit = 0
	}
	o := &output{
		to:        &p.out,
		stop:      stop,
		recording: &p.recording,
		fresh:     p.inv.Resume == "" && !p.inv.Continue,
		secrets:   p.secrets,
		panics:    panics{stop: stop},
		stdout:    capture.Buffer{Limit: limit},
		stderr:    capture.Buffer{Limit: limit},
		wake:      make(chan struct{}, 1),
		clock:     time.Now(),

		errorTail: newStderrTail(p.secrets),
	}
	if p.out.Text != nil {
		o.formatter = p.formatter()
		o.raw = formatters.IsRaw(o.formatter)
	}
	o.retries = &retries{of: p, busy: o.busy.Load}
	o.retryLine = o.retries.lines()
	o.stream = formatters.NewStream(p.selection.Runtime.NewDecoder(), o.event)
	if p.out.Events == nil && p.recording.Events == nil && (o.formatter == nil || o.raw) {
		o.stream.Skim()
	}
	return o
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

func (o *output) stdoutWriter() io.Writer {
	return writerFunc(func(b []byte) (int, error) {
		defer o.consuming()()
		return len(b), o.panics.guard(func() error {
			return o.lines.call(func() error {
				_, _ = o.stdout.Write(b)
				if err := pass(b, o.recording.Stdout, o.to.Stdout); err != nil {
					return err
				}
				if o.raw {
					if err := pass(b, o.to.Text); err != nil {
						return err
					}
				}
				_, err := o.stream.Write(b)
				return cmp.Or(err, o.flush())
			})
		})
	})
}

func (o *output) stderrWriter() io.Writer {
	return writerFunc(func(b []byte) (int, error) {
		return len(b), o.panics.guard(func() error {
			_, _ = o.stderr.Write(b)
			_, _ = o.errorTail.Write(b)
			if o.retryLine != nil {
				_, _ = o.retryLine.Write(b)
			}
			return pass(b, o.recording.Stderr, o.to.Stderr)
		})
	})
}

// pass writes b to each writer that is not nil, up to the first that fails.
func pass(b []byte, to ...io.Writer) error {
	for _, w := range to {
		if w == nil {
			continue
		}
		if _, err := w.Write(b); err != nil {
			return err
		}
	}
	return nil
}

// consuming records that output arrived and stops the clocks of the watch until the
// returned function is called: an agent that waits for a slow consumer is not silent.
func (o *output) consuming() (end func()) {
	begun := int64(time.Since(o.clock))
	progress := o.progress.Load()
	o.arrived.Store(begun)
	o.busy.Store(true)
	return func() {
		now := int64(time.Since(o.clock))
		o.arrived.Store(now)
		if o.progress.Load() == progress {
			o.progress.Store(progress + now - begun)
		} else {
			o.progress.Store(now)
		}
		o.busy.Store(false)
	}
}

// close delivers the last, unfinished line, unless an earlier one failed.
func (o *output) close() error {
	return o.panics.guard(func() error {
		return o.lines.call(func() error { return cmp.Or(o.stream.Close(), o.flush()) })
	})
}

// flushSize is how much text is gathered from several events before it is passed on.
const flushSize = 64 << 10

// texts holds the buffers, so that a run needs none while its agent is silent.
var texts = sync.Pool{New: func() any { return new([]byte) }}

// flush passes on the text that was gathered.
func (o *output) flush() error {
	if o.text == nil {
		return nil
	}
	text := *o.text
	var err error
	if len(text) > 0 {
		err = pass(text, o.to.Text)
	}
	if cap(text) <= keptSize {
		*o.text = text[:0]
		texts.Put(o.text)
	}
	o.text = nil
	return err
}

// keptSize is the largest buffer that is kept for reuse.
const keptSize = 2 << 20

// event passes one event to the recorder, the text and the caller.
func (o *output) event(e *agent.Event) error {
	o.note(e)
	if o.recording.Events != nil {
		if err := o.recording.Events(e); err != nil {
			return err
		}
	}
	if o.formatter != nil && !o.raw {
		if o.text == nil {
			o.text = texts.Get().(*[]byte)
		}
		*o.text = o.formatter.Append(*o.text, e)
		if len(*o.text) >= flushSize {
			if err := o.flush(); err != nil {
				return err
			}
		}
	}
	if o.to.Events != nil {
		return o.to.Events(e)
	}
	return nil
}

// note keeps what the result and the verdict need from e.
func (o *output) note(e *agent.Event) {
	if e.Kind != agent.KindHeartbeat && e.Kind != agent.KindRetry {
		o.progress.Store(int64(time.Since(o.clock)))
	}
	o.retries.note(e)
	main := e.Subagent == ""
	switch e.Kind {
	case agent.KindText, agent.KindThinking, agent.KindToolCall, agent.KindToolResult, agent.KindFileChange, agent.KindPlan:
		// The agent works, so an earlier problem did not end it. A subagent in the
		// background can continue after the agent's last result.
		o.active = o.active || e.Kind != agent.KindThinking && (e.Kind != agent.KindText || strings.TrimSpace(e.Text) != "")
		o.reported = o.reported && !main
		o.done.Store(false)
		o.problem, o.failed = "", ""
	}
	o.answer.Note(e)
	switch e.Kind {
	case agent.KindSessionStarted:
		if e.SessionID != "" {
			o.sessionID = strings.Clone(e.SessionID)
		}
		if e.Model != "" {
			o.model = strings.Clone(e.Model)
		}
	case agent.KindRetry:
		o.problem, o.failed = o.quote(e.Text), e.Failure
		if !o.answer.Empty() {
			o.repeated = true
		}
		if e.Failure == agent.FailureAuthentication {
			o.stop(errRefused)
		}
	case agent.KindWarning:
		if e.Failure != "" {
			o.problem, o.failed = o.quote(e.Text), e.Failure
		}
	case agent.KindUsage:
		if e.Usage != nil {
			if o.fresh {
				// This run is the whole session so far.
				e.Usage.Cumulative = false
			}
			o.usage = e.Clone().Usage
		}
	case agent.KindHeartbeat:
		if e.Background != nil {
			o.open = *e.Background
			o.finished()
		}
	case agent.KindResult:
		o.last = e.Clone()
		o.last.Text = strings.Clone(e.Text)
		o.reported = true
		o.finished()
	}
}

// finished reports to the watch whether the agent has reported its result and has
// no background task open.
func (o *output) finished() {
	o.done.Store(o.reported && o.open == 0)
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// result returns the result that the events reported. It is called after close.
func (o *output) result() agent.Result {
	text, truncated := o.answer.Text(o.last)
	return agent.Result{
		Model:         o.model,
		SessionID:     o.sessionID,
		Text:          text,
		TextTruncated: truncated,
		Usage:         o.usage,
		Stdout:        o.stdout.Captured(),
		Stderr:        o.stderr.Captured(),
		Repeated:      o.repeated,
	}
}

func (o *output) succeeded(reportsResult bool) bool {
	if o.last == nil {
		return !reportsResult
	}
	return !o.last.Failed
}

// failure returns the class of the failure the agent reported last.
func (o *output) failure() agent.Failure {
	if o.last != nil && o.last.Failed && o.last.Failure != "" {
		return o.last.Failure
	}
	if o.last != nil && !o.last.Failed {
		return ""
	}
	return o.failed
}

// reason returns the agent's own reason for its failure.
func (o *output) reason() string {
	if o.last != nil && o.last.Failed && o.last.Text != "" {
		return o.quote(o.last.Text)
	}
	if o.last == nil {
		return o.problem
	}
	return ""
}

// lastFailure returns the last problem, as the end of the error of a timeout; empty if
// the agent worked after it.
func (o *output) lastFailure() string {
	switch {
	case o.problem != "":
		return "; last failure: " + o.problem
	case o.retries.unanswered():
		return "; no answer came from the model"
	}
	return ""
}

// quote returns the beginning of text for use in an error.
func (o *output) quote(text string) string { return quote(o.secrets, text) }

func quote(hide *Masker, text string) string {
	text = hide.Text(text)
	if len(text) > maxReason {
		text = strings.ToValidUTF8(text[:maxReason], "") + "…"
	}
	return strings.Clone(formatters.SanitizeString(text))
}

// A stderrTail keeps the end of standard error, for the error. It masks secrets before it
// cuts, because a part of one cannot be recognized.
type stderrTail struct {
	*MaskWriter
	kept capture.Buffer
}

func newStderrTail(hide *Masker) *stderrTail {
	t := &stderrTail{kept: capture.Buffer{Limit: 2 * stderrTailSize}}
	t.MaskWriter = hide.Writer(&t.kept)
	return t
}

// lines returns the last lines that are not quiet.
func (t *stderrTail) lines(quiet func([]byte) bool) string {
	_ = t.Flush() // kept takes everything
	c := t.kept.Captured()
	text := c.Head
	if c.Truncated {
		text = c.Tail
	}
	if len(text) > stderrTailSize {
		text = text[len(text)-stderrTailSize:]
		if _, after, ok := bytes.Cut(text, []byte("\n")); ok {
			text = after
		}
	}
	var kept []string
	for line := range bytes.Lines(text) {
		line = bytes.TrimRight(line, "\r\n")
		if len(bytes.TrimSpace(line)) == 0 || quiet != nil && quiet(line) {
			continue
		}
		kept = append(kept, formatters.SanitizeString(string(line)))
	}
	if len(kept) > 10 {
		kept = kept[len(kept)-10:]
	}
	return strings.Join(kept, "\n")
}
