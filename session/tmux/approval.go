package tmux

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session/engine"
)

// maxShown bounds the lines of an approval request.
const maxShown = 400

// A request is the approval request that the screen shows, or the one that it
// showed last.
type request struct {
	number   int
	kind     *engine.ApprovalDialog // nil while none is shown
	shown    screen                 // when it was reported
	answered time.Time              // zero while it is open

	before  screen    // the last screen without a request
	pending screen    // shows a request that is not reported yet
	since   time.Time // pending began; zero without one
}

func (r *request) id() string { return "approval-" + strconv.Itoa(r.number) }

func (r *request) open() bool { return r.kind != nil && r.answered.IsZero() }

// observe compares s with the request that was reported last. The function that it
// returns reports what has changed; it must be called without the lock.
//
// A request is reported once two looks have found the same, because CLIs draw it in
// steps, or after a while where no other is open. The text of one that was answered
// can stay on the screen until the answer has an effect.
func (e *paneEngine) observe(ctx context.Context, s screen, now time.Time) func() {
	r, kind := &e.request, e.terminal.approval(s)
	wasOpen, before := r.open(), r.id()
	closed := func() {
		if wasOpen {
			e.sink.Answered(before)
		}
	}
	if kind == nil {
		r.kind, r.before, r.since = nil, s, time.Time{}
		return closed
	}
	unchanged := wasOpen && kind == r.kind && sameRequest(r.shown, s)
	settling := kind == r.kind && !r.answered.IsZero() && now.Sub(r.answered) < dialogWait
	if unchanged || settling {
		r.since = time.Time{}
		return func() {}
	}
	if r.since.IsZero() {
		r.pending, r.since = s, now
		return func() {}
	}
	if !sameRequest(r.pending, s) && (wasOpen || now.Sub(r.since) < dialogWait) {
		r.pending = s
		return func() {}
	}
	text := e.requestText(ctx, s)
	*r = request{number: r.number + 1, kind: kind, shown: s, before: r.before}
	event := &agent.Event{Kind: agent.KindApproval, ApprovalID: r.id(), Text: e.mask.Text(text)}
	return func() {
		closed()
		e.sink.Event(event)
	}
}

// requestText returns what the terminal has gained since it showed no request,
// and at least its last lines.
func (e *paneEngine) requestText(ctx context.Context, s screen) string {
	before := e.request.before
	if s.history < before.history { // it was cleared
		before = screen{}
	}
	lines, err := e.pane.since(ctx, before.history, s)
	if err != nil {
		lines = s.lines
	}
	for _, line := range before.lines {
		if len(lines) <= shownLines || lines[0] != line {
			break
		}
		lines = lines[1:]
	}
	if more := len(lines) - maxShown; more > 0 {
		lines = slices.Concat(lines[:maxShown/2], []string{fmt.Sprintf("[%d lines are left out]", more)}, lines[len(lines)-maxShown/2:])
	}
	return strings.Join(lines, "\n")
}

// sameRequest reports whether two screens show the same, apart from animations.
func sameRequest(a, b screen) bool {
	return a.history == b.history && slices.EqualFunc(a.lines, b.lines, func(x, y string) bool { return x == y || steady(x) == steady(y) })
}

var duration = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\b(\d+(\.\d+)?(ms|s|m|h) ?)+\b`) })

// steady returns a line without what CLIs animate: in a line that begins with a
// symbol, the symbol and durations. CLIs indent the text of a request, so that an
// agent cannot begin a line of it.
func steady(line string) string {
	first, size := utf8.DecodeRuneInString(line)
	frame := first >= '─' && first <= '╿'
	if frame || !unicode.Is(unicode.So, first) && !strings.ContainsRune("·•*", first) {
		return line
	}
	return "\x00" + duration().ReplaceAllString(line[size:], "")
}

// Answer presses the keys that answer a request, if that is still what the screen
// shows.
func (e *paneEngine) Answer(ctx context.Context, approvalID string, d engine.Decision) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	r := &e.request
	if !r.open() || r.id() != approvalID {
		return engine.ErrTooLate
	}
	s, err := e.look(ctx)
	if err != nil || e.terminal.approval(s) != r.kind || !sameRequest(r.shown, s) {
		r.kind = nil // what is shown is reported as another request
		if err == nil {
			err = engine.ErrTooLate
		}
		return err
	}
	r.answered = time.Now()
	keys := r.kind.Decline
	switch {
	case d == engine.Accept || d == engine.AcceptForSession: // it may ask again
		keys = r.kind.Accept
	case d == engine.Cancel:
		if !slices.Equal(keys, e.terminal.Interrupt) {
			keys = slices.Concat(keys, e.terminal.Interrupt)
		}
		return e.interrupt(ctx, keys)
	}
	return e.press(ctx, keys)
}
