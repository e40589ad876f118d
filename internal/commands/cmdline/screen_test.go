package cmdline

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A picture is gone before anything is written, and comes back where a line has ended,
// until the spinner is cleared.
func TestSpinnerMakesWay(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		write func(*Screen)
		back  bool
	}{
		"conversation":   {func(s *Screen) { s.Write([]byte("text\n")) }, true},
		"part of a line": {func(s *Screen) { s.Write([]byte("text")) }, false},
		"message":        {func(s *Screen) { s.Info("text") }, true},
		"end":            {func(s *Screen) { s.Clear() }, false},
		"result":         {func(s *Screen) { s.Write([]byte("text\n")); s.Clear() }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				s := NewScreen(&out)
				seen := func() string { // the spinner writes later
					s.mu.Lock()
					defer s.mu.Unlock()
					return out.String()
				}
				s.Spin("waiting")
				time.Sleep(10 * spinnerPeriod)
				synctest.Wait()
				test.write(s)
				got := seen()
				if !strings.Contains(got, "waiting (1s)") {
					t.Errorf("no spinner after %v: %q", 10*spinnerPeriod, got)
				}
				_, after, _ := strings.Cut(got, "\r\x1b[K")
				if strings.Contains(after, "waiting") || !strings.HasSuffix(got, "\r\x1b[K"+after) {
					t.Errorf("the spinner was not cleared: %q", got)
				}
				time.Sleep(10 * spinnerPeriod)
				synctest.Wait()
				if back := strings.Contains(seen()[len(got):], "waiting (3s)"); back != test.back {
					t.Errorf("the spinner came back: %v, want %v: %q", back, test.back, seen()[len(got):])
				}
				s.Clear()
				if shown := seen(); strings.LastIndex(shown, "\r\x1b[K") < strings.LastIndex(shown, "waiting") {
					t.Errorf("the spinner was not cleared: %q", shown)
				}
			})
		})
	}
}

func TestQuickAgentsSeeNoSpinner(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		s := NewScreen(&out)
		s.Spin("waiting")
		time.Sleep(spinnerPeriod / 2)
		s.Write([]byte("text\n"))
		s.Clear()
		time.Sleep(10 * spinnerPeriod)
		synctest.Wait()
		if got := out.String(); got != "text\n" {
			t.Errorf("the screen shows %q", got)
		}
	})
}

// A terminal that is narrower than the picture must not keep pieces of it: each
// write leaves the terminal as it was, with the picture on one line.
func TestSpinnerStaysOnOneLine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out writes
		s := NewScreen(&out)
		s.Spin("waiting")
		time.Sleep(4 * spinnerPeriod)
		s.Clear()
		synctest.Wait()
		pictures := 0
		for _, w := range out {
			if !strings.Contains(w, "waiting") {
				continue
			}
			pictures++
			if !strings.HasPrefix(w, "\r\x1b[?7l") || !strings.HasSuffix(w, "\x1b[?7h") {
				t.Errorf("a picture can wrap: %q", w)
			}
		}
		if pictures == 0 {
			t.Errorf("no picture in %q", out)
		}
	})
}

// writes keeps each write by itself.
type writes []string

func (w *writes) Write(b []byte) (int, error) {
	*w = append(*w, string(b))
	return len(b), nil
}

// A picture that is due when the spinner is stopped must not come after it.
func TestSpinnerStopsForGood(t *testing.T) {
	t.Parallel()
	for range 200 {
		synctest.Test(t, func(t *testing.T) {
			var out bytes.Buffer
			s := NewScreen(&out)
			s.Spin("waiting")
			time.Sleep(2 * spinnerPeriod)
			s.Clear()
			s.Write([]byte("text\n"))
			synctest.Wait()
			if got := out.String(); !strings.HasSuffix(got, "text\n") {
				t.Fatalf("the screen shows %q", got)
			}
		})
	}
}

func TestSpinnerShowsWhatTheAgentDoes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		s := NewScreen(&out)
		s.SpinOn("nothing")
		s.Spin("waiting")
		time.Sleep(2 * time.Second)
		s.SpinOn("agent: Bash")
		time.Sleep(2 * time.Second)
		s.Clear()
		synctest.Wait()
		if got := out.String(); !strings.Contains(got, "waiting (1s)") || !strings.Contains(got, "agent: Bash (3s)") || strings.Contains(got, "nothing") {
			t.Errorf("the screen shows %q", got)
		}
	})
}

func TestMessagesAreOnSeparateLines(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	s := NewScreen(&out)
	s.Write([]byte("half a line"))
	s.Warn("careful")
	s.Write([]byte("whole\n"))
	s.Info("more\n")
	s.Write([]byte("open"))
	s.EndLine()
	s.EndLine()
	want := "half a line\nbus-agent: careful\nwhole\nbus-agent: more\nopen\n"
	if got := out.String(); got != want {
		t.Errorf("the screen shows %q, want %q", got, want)
	}
}

func TestMessagesAreSafeToPrint(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	NewScreen(&out).fail("bad \x1b[2J\x07name")
	if got := out.String(); got != "bus-agent: bad name\n" {
		t.Errorf("the screen shows %q", got)
	}
}

func TestQuietScreenSaysErrorsOnly(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	s := NewScreen(&out)
	s.quiet = true
	s.Info("info")
	s.Warn("warning")
	s.fail("error")
	if got := out.String(); got != "bus-agent: error\n" {
		t.Errorf("the screen shows %q", got)
	}
}

func TestScreenIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	s := NewScreen(&out)
	s.Spin("waiting")
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			s.Write([]byte("line\n"))
			s.Info("info")
			s.Clear()
		})
	}
	all.Wait()
	if n := strings.Count(out.String(), "line\n"); n != 8 {
		t.Errorf("%d of 8 lines arrived", n)
	}
}
