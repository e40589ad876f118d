package cmdline

import (
	"fmt"
	"time"
)

// spinner shows on the last line of a terminal what an agent is doing and for how long.
// It makes way for whatever is written, comes back where a line has ended, and vanishes
// without a trace.
type spinner struct {
	label string
	begun time.Time
	shown bool
	quit  chan struct{}
}

// spinnerPeriod is the time between two pictures; what answers within the
// first never sees one.
const spinnerPeriod = 150 * time.Millisecond

// Spin starts the spinner. Clear ends it.
func (s *Screen) Spin(label string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.spinner != nil {
		return
	}
	sp := &spinner{label: label, begun: time.Now(), quit: make(chan struct{})}
	s.spinner = sp
	go func() {
		tick := time.NewTicker(spinnerPeriod)
		defer tick.Stop()
		for n := 0; ; n++ {
			select {
			case <-sp.quit:
				return
			case <-tick.C:
				s.draw(sp, n)
			}
		}
	}()
}

// SpinOn changes what a running spinner shows.
func (s *Screen) SpinOn(label string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.spinner != nil {
		s.spinner.label = label
	}
}

// Whether a terminal wraps at its right edge. With wrapping, a terminal narrower than
// the spinner would keep a line of every frame.
const (
	wrapOff = "\x1b[?7l"
	wrapOn  = "\x1b[?7h"
)

// draw shows the n-th picture, unless the spinner has been stopped meanwhile.
func (s *Screen) draw(sp *spinner, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.spinner != sp || s.midLine {
		return
	}
	sp.shown = true
	text := fmt.Sprintf("%c %s (%ds)", `|/-\`[n%4], sp.label, int(time.Since(sp.begun).Seconds()))
	styled(s.w, "\r"+wrapOff, text, "\x1b[K"+wrapOn)
}

// hideSpinner removes the picture until the next one; the caller holds the lock.
func (s *Screen) hideSpinner() {
	if sp := s.spinner; sp != nil && sp.shown {
		sp.shown = false
		styled(s.w, "\r\x1b[K")
	}
}

// stopSpinner ends the spinner; the caller holds the lock.
func (s *Screen) stopSpinner() {
	s.hideSpinner()
	if s.spinner != nil {
		close(s.spinner.quit)
		s.spinner = nil
	}
}
