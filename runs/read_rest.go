package runs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"
	"unicode/utf8"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/formatters"
)

// ReadEvents reads the events of the run as the function [ReadEvents] does, from the
// file of its events or a reader that follows it. If the run has crashed, events that
// its standard output has and that file lacks come after them: a program that is killed
// has not yet written the events of its last moment. They are decoded by d and have the
// time of the event before them. Sessions have none, because their output is a protocol.
func (r *Run) ReadEvents(from io.Reader, d formatters.Decoder, each func(*Event) error) error {
	p := position{time: r.StartTime}
	err := ReadEvents(from, func(e *Event) error {
		p.note(e)
		return each(e)
	})
	if err != nil && !errors.Is(err, ErrDamaged) {
		return err
	}
	now, readErr := ReadRun(r.Dir) // it may have been followed to its end
	if readErr != nil || now.Status != StatusCrashed || now.Session {
		return err
	}
	stdout, openErr := r.Open(FileStdout)
	if errors.Is(openErr, fs.ErrNotExist) {
		return err
	}
	if openErr != nil {
		return errors.Join(err, openErr)
	}
	defer stdout.Close()
	stream := formatters.NewStream(d, func(e *agent.Event) error {
		if !p.passes(e) {
			return nil
		}
		return each(&Event{Time: p.time, Event: *e})
	})
	// The last line, if it has no end, is not a whole event.
	if _, copyErr := io.Copy(stream, stdout); copyErr != nil {
		return errors.Join(err, fmt.Errorf("events that only the agent's output has: %w", copyErr))
	}
	return err
}

// position is a place in the events of a run. Between two events that are not pieces of
// a text, masking can change the number of the pieces, but hardly their length.
type position struct {
	time  time.Time // of the last event
	whole int       // events that are not pieces
	text  int       // bytes of the pieces after the last of them
}

func isPiece(e *agent.Event) bool {
	return e.Delta && (e.Kind == agent.KindText || e.Kind == agent.KindThinking)
}

// note moves the place behind an event of the file.
func (p *position) note(e *Event) {
	p.time = e.Time
	switch {
	case e.Kind == KindMessage:
	case isPiece(&e.Event):
		p.text += len(e.Text)
	default:
		p.whole++
		p.text = 0
	}
}

// passes moves the place towards that of the file by an event of the output, and
// reports whether the event is behind it. Of a piece that is only partly behind it, the
// beginning is removed.
func (p *position) passes(e *agent.Event) bool {
	piece := isPiece(e)
	switch {
	case p.whole > 0:
		if !piece {
			p.whole--
		}
		return false
	case !piece:
		p.text = 0
		return true
	case p.text > 0 && p.text >= len(e.Text):
		p.text -= len(e.Text)
		return false
	}
	for p.text > 0 && !utf8.RuneStart(e.Text[p.text]) {
		p.text--
	}
	e.Text, p.text = e.Text[p.text:], 0
	return true
}
