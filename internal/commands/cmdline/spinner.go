package cmdline

import (
	"fmt"
	"time"
)

// spinner shows that a run has begun while nothing has arrived from the agent.
// It lives on the last line of a terminal and vanishes without a trace.
type spinner struct {
	label string
	begun time.Time
	shown bool
	quit  chan struct{}
}

// spinnerPeriod is the time between two pictures; what answers within the
// first never sees one.
const spinnerPeriod = 150 * time.Millisecond

// Spin starts the spinner. Whatever is written to the screen next ends it.
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

// Whether a terminal goes on in the next line at its right edge. Where it does, a
// terminal narrower than the picture would keep a line of every one.
const (
	wrapOff = "\x1b[?7l"
	wrapOn  = "\x1b[?7h"
)

// draw shows the n-th picture, unless the spinner has been stopped meanwhile.
func (s *Screen) draw(sp *spinner, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.spinner != sp {
		return
	}
	sp.shown = true
	text := fmt.Sprintf("%c %s (%ds)", `|/-\`[n%4], sp.label, int(time.Since(sp.begun).Seconds()))
	styled(s.w, "\r"+wrapOff, text, "\x1b[K"+wrapOn)
}

// stopSpinner takes the spinner away; the caller holds the lock.
func (s *Screen) stopSpinner() {
	sp := s.spinner
	if sp == nil {
		return
	}
	s.spinner = nil
	close(sp.quit)
	if sp.shown {
		styled(s.w, "\r\x1b[K")
	}
}
