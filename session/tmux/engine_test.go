package tmux

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/engine"
)

var marked = engine.Terminal{Prompt: "❯ ", Busy: []string{"esc to interrupt"}}

// inBubble runs a test with a session on fake time, and stops it.
func inBubble(t *testing.T, f *fakeCLI, terminal engine.Terminal, test func(t *testing.T, s *session.Session)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, err := f.open(t.Context(), terminal)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Stop(context.Background(), "the test is over")
		test(t, s)
	})
}

func TestTurnEndsWithTheWork(t *testing.T) {
	f := &fakeCLI{prompt: "❯ ", lines: []string{"welcome"}, resume: "s-1", lag: time.Second, work: 10 * time.Second}
	inBubble(t, f, marked, func(t *testing.T, s *session.Session) {
		if id := s.Info().SessionID; id != "s-1" {
			t.Errorf("session %q", id)
		}
		for _, text := range []string{"one", "two"} {
			began := time.Now()
			r, err := s.Send(session.Message{Text: text}).Wait(t.Context())
			if err != nil || !strings.HasPrefix(r.Text, "answer to") || !strings.HasSuffix(r.Text, text) || strings.Contains(r.Text, "\n") {
				t.Errorf("%q, %v", r.Text, err)
			}
			if took := time.Since(began); took < 11*time.Second || took > 13*time.Second {
				t.Errorf("the turn took %v", took)
			}
		}
	})
}

func TestTurnWithoutASignOfWorkEndsInSilence(t *testing.T) {
	for name, terminal := range map[string]engine.Terminal{"prompt": marked, "nothing": {WarmUp: -1, Quiet: 4 * time.Second}} {
		t.Run(name, func(t *testing.T) {
			f := &fakeCLI{prompt: "❯ ", lag: 0, work: 0}
			inBubble(t, f, terminal, func(t *testing.T, s *session.Session) {
				began := time.Now()
				r, err := s.Send(session.Message{Text: "one"}).Wait(t.Context())
				if err != nil || r.Text != "answer to one" {
					t.Errorf("%q, %v", r.Text, err)
				}
				if took := time.Since(began); took < withDefaults(terminal).Quiet {
					t.Errorf("the turn took %v", took)
				}
			})
		})
	}
}

func TestReadiness(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		terminal engine.Terminal
		opensIn  time.Duration // at least, and less than a second more
		fails    bool
	}{
		"at the prompt":         {terminal: marked, opensIn: 20*time.Second + still},
		"after the warm-up":     {terminal: engine.Terminal{WarmUp: 7 * time.Second}, opensIn: 7 * time.Second},
		"the warm-up is capped": {terminal: engine.Terminal{WarmUp: time.Hour, StartTimeout: 9 * time.Second}, opensIn: 9 * time.Second},
		"not in time":           {terminal: engine.Terminal{Prompt: "❯ ", StartTimeout: 10 * time.Second}, opensIn: 10 * time.Second, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := &fakeCLI{lines: []string{"starting"}}
				f.later(20*time.Second, func() { f.prompt = "❯ " })
				began := time.Now()
				s, err := f.open(t.Context(), c.terminal)
				if took := time.Since(began); took < c.opensIn || took > c.opensIn+time.Second {
					t.Errorf("it took %v", took)
				}
				if !c.fails {
					if err != nil {
						t.Fatal(err)
					}
					s.Stop(t.Context(), "over")
				} else if !errors.Is(err, agent.ErrTimeout) || !strings.Contains(err.Error(), "starting") {
					t.Error(err)
				}
				synctest.Wait()
				time.Sleep(time.Minute) // what was to come later
			})
		})
	}
}

func TestPromptThatShowsForAMomentIsNotReady(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fakeCLI{prompt: "❯ "}
		f.later(poll/2, func() { f.prompt = "" })
		f.later(5*time.Second, func() { f.prompt = "❯ " })
		began := time.Now()
		s, err := f.open(t.Context(), marked)
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took < 5*time.Second {
			t.Errorf("ready after %v", took)
		}
		s.Stop(t.Context(), "over")
	})
}

// A message must not be typed before the CLI has loaded the session that it resumes.
func TestResumedSessionIsLoadedBeforeItIsReady(t *testing.T) {
	t.Parallel()
	loading := marked
	loading.Restored = []string{"✦ "}
	for name, c := range map[string]struct {
		resume, shows string
		least, most   time.Duration
	}{
		"resumed":               {"one", "✦ the sky is blue", 25 * time.Second, 28 * time.Second},
		"resumed without turns": {"one", "", 30 * time.Second, 34 * time.Second},
		"new":                   {"", "", 2 * time.Second, 4 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := &fakeCLI{prompt: "❯ ", resume: c.resume}
				f.later(25*time.Second, func() { f.lines = append(f.lines, c.shows) })
				began := time.Now()
				s, err := f.open(t.Context(), loading)
				if err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); took < c.least || took > c.most {
					t.Errorf("ready after %v", took)
				}
				s.Stop(t.Context(), "over")
				synctest.Wait()
				time.Sleep(time.Minute) // what was to come later
			})
		})
	}
}

func TestDialogs(t *testing.T) {
	t.Parallel()
	trust := engine.Dialog{Contains: "trust this folder", Keys: []string{"Down", "Enter"}}
	for name, c := range map[string]struct {
		cli     *fakeCLI
		dialogs []engine.Dialog
		keys    []string
		fails   bool
	}{
		"answered":               {&fakeCLI{dialog: "❯ trust this folder?"}, []engine.Dialog{trust}, []string{"Down", "Enter"}, false},
		"again when it was lost": {&fakeCLI{dialog: "trust this folder?", swallows: 1}, []engine.Dialog{trust}, []string{"Down", "Enter", "Down", "Enter"}, false},
		"not configured":         {&fakeCLI{dialog: "trust this folder?"}, nil, nil, true},
		"another one":            {&fakeCLI{dialog: "delete this folder?"}, []engine.Dialog{trust}, nil, true},
		"its text stays":         {&fakeCLI{lines: []string{"trust this folder?"}, dialog: "trust this folder?"}, []engine.Dialog{trust}, []string{"Down", "Enter"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := c.cli
				f.prompt = "❯ "
				s, err := f.open(t.Context(), engine.Terminal{Prompt: "❯ ", Dialogs: c.dialogs})
				if c.fails != (err != nil) {
					t.Fatal(err)
				}
				if got := f.pressed(); !slices.Equal(got, c.keys) {
					t.Errorf("keys %q, want %q", got, c.keys)
				}
				if err == nil {
					s.Stop(t.Context(), "over")
				}
				synctest.Wait()
			})
		})
	}
}

func TestEnterIsPressedUntilItHasAnEffect(t *testing.T) {
	f := &fakeCLI{prompt: "❯ ", swallows: 3}
	inBubble(t, f, marked, func(t *testing.T, s *session.Session) {
		if r, err := s.Send(session.Message{Text: "one"}).Wait(t.Context()); err != nil || r.Text != "answer to one" {
			t.Errorf("%q, %v", r.Text, err)
		}
		if got := f.pressed(); !slices.Equal(got, []string{"Enter", "Enter", "Enter", "Enter"}) {
			t.Errorf("%q", got)
		}
		f.mu.Lock()
		f.swallows = 4
		f.mu.Unlock()
		_, err := s.Send(session.Message{Text: "two"}).Wait(t.Context())
		if !errors.Is(err, session.ErrNotDelivered) || !errors.Is(err, errNoEffect) {
			t.Error(err)
		}
		if r, err := s.Send(session.Message{Text: "three"}).Wait(t.Context()); err != nil || r.Text != "answer to three" {
			t.Errorf("what was given up is in the next message: %q, %v", r.Text, err)
		}
	})
}

// Nothing is typed twice while the agent does not read, however long that takes.
func TestAgentThatDoesNotRead(t *testing.T) {
	for name, stall := range map[string]func(f *fakeCLI){
		"the message": func(f *fakeCLI) { f.stall(20 * time.Second) },
		"Enter":       func(f *fakeCLI) { time.AfterFunc(time.Second/2, func() { f.stall(20 * time.Second) }) },
	} {
		t.Run(name, func(t *testing.T) {
			f := &fakeCLI{prompt: "❯ "}
			inBubble(t, f, marked, func(t *testing.T, s *session.Session) {
				stall(f)
				if r, err := s.Send(session.Message{Text: "one"}).Wait(t.Context()); err != nil || r.Text != "answer to one" {
					t.Errorf("%q, %v", r.Text, err)
				}
				if got := f.pressed(); !slices.Equal(got, []string{"Enter"}) {
					t.Errorf("%q", got)
				}
			})
		})
	}
	f := &fakeCLI{prompt: "❯ "}
	inBubble(t, f, marked, func(t *testing.T, s *session.Session) {
		f.stall(time.Hour)
		if _, err := s.Send(session.Message{Text: "one"}).Wait(t.Context()); !errors.Is(err, session.ErrNotDelivered) {
			t.Error(err)
		}
	})
}

func TestMessageThatIsNotSeenIsTypedAgain(t *testing.T) {
	f := &fakeCLI{prompt: "❯ ", deaf: 2}
	inBubble(t, f, marked, func(t *testing.T, s *session.Session) {
		if r, err := s.Send(session.Message{Text: "one"}).Wait(t.Context()); err != nil || r.Text != "answer to one" {
			t.Errorf("%q, %v", r.Text, err)
		}
		f.mu.Lock()
		f.deaf = 1000
		f.mu.Unlock()
		began := time.Now()
		_, err := s.Send(session.Message{Text: "two"}).Wait(t.Context())
		if !errors.Is(err, session.ErrNotDelivered) || !errors.Is(err, errUnseen) {
			t.Error(err)
		}
		if took := time.Since(began); took < (10*time.Second)-settleLimit-mostPause || took > (10*time.Second)+settleLimit {
			t.Errorf("it took %v", took)
		}
	})
}

func TestInterrupt(t *testing.T) {
	f := &fakeCLI{prompt: "❯ ", forever: true}
	inBubble(t, f, marked, func(t *testing.T, s *session.Session) {
		if err := s.Interrupt(t.Context()); !errors.Is(err, engine.ErrTooLate) || len(f.pressed()) != 0 {
			t.Errorf("without a turn: %q, %v", f.pressed(), err)
		}
		turn := s.Send(session.Message{Text: "one"})
		time.Sleep(time.Minute)
		select {
		case <-turn.Done():
			t.Error("the turn is over before its work is")
		default:
		}
		if err := s.Interrupt(t.Context()); err != nil {
			t.Error(err)
		}
		r, err := turn.Wait(t.Context())
		if !errors.Is(err, agent.ErrCanceled) || r.Text != "stopped" {
			t.Errorf("%q, %v", r.Text, err)
		}
	})
}

// A turn continues if its interrupt could not be typed.
func TestInterruptThatIsNotTyped(t *testing.T) {
	f := &fakeCLI{prompt: "❯ ", work: time.Minute}
	inBubble(t, f, marked, func(t *testing.T, s *session.Session) {
		turn := s.Send(session.Message{Text: "one"})
		time.Sleep(10 * time.Second)
		f.refuse(errors.New("no keys"))
		if err := s.Interrupt(t.Context()); err == nil {
			t.Error("it was typed")
		}
		f.refuse(nil)
		if r, err := turn.Wait(t.Context()); err != nil {
			t.Errorf("%q, %v", r.Text, err)
		}
	})
}

func TestSteer(t *testing.T) {
	terminal := marked
	terminal.TypesWhileBusy = true
	f := &fakeCLI{prompt: "❯ ", lag: time.Second, work: time.Minute}
	inBubble(t, f, terminal, func(t *testing.T, s *session.Session) {
		turn := s.Send(session.Message{Text: "one"})
		time.Sleep(20 * time.Second)
		if steered := s.Steer(t.Context(), session.Message{Text: "two"}); steered != turn {
			t.Error("it is a separate turn")
		}
		if r, err := turn.Wait(t.Context()); err != nil || !strings.HasSuffix(r.Text, "answer to one and two") {
			t.Errorf("%q, %v", r.Text, err)
		}
	})
}

func TestSteerWaitsWhereTheAgentDoes(t *testing.T) {
	f := &fakeCLI{prompt: "❯ ", lag: time.Second, work: time.Minute}
	inBubble(t, f, marked, func(t *testing.T, s *session.Session) {
		turn := s.Send(session.Message{Text: "one"})
		time.Sleep(20 * time.Second)
		next := s.Steer(t.Context(), session.Message{Text: "two"})
		if r, err := turn.Wait(t.Context()); err != nil || r.Text != "answer to one" {
			t.Errorf("%q, %v", r.Text, err)
		}
		if r, err := next.Wait(t.Context()); err != nil || r.Text != "answer to one and two" {
			t.Errorf("%q, %v", r.Text, err)
		}
	})
}

func TestMessageThatIsGivenUpIsCleared(t *testing.T) {
	f := &fakeCLI{prompt: "❯ ", swallows: 1000}
	inBubble(t, f, marked, func(t *testing.T, s *session.Session) {
		_, err := s.Send(session.Message{Text: "one", Timeout: time.Second}).Wait(t.Context())
		if !errors.Is(err, agent.ErrTimeout) || !errors.Is(err, session.ErrNotDelivered) {
			t.Error(err)
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.input != "" {
			t.Errorf("%q is left", f.input)
		}
	})
}

func TestBusyAgentIsWaitedFor(t *testing.T) {
	f := &fakeCLI{prompt: "❯ "}
	inBubble(t, f, marked, func(t *testing.T, s *session.Session) {
		f.mu.Lock()
		f.working = true
		f.mu.Unlock()
		f.later(5*time.Second, func() { f.working = false })
		if r, err := s.Send(session.Message{Text: "one"}).Wait(t.Context()); err != nil || r.Text != "answer to one" {
			t.Errorf("%q, %v", r.Text, err)
		}
		f.mu.Lock()
		f.working = true
		f.mu.Unlock()
		if _, err := s.Send(session.Message{Text: "two"}).Wait(t.Context()); !errors.Is(err, errBusy) {
			t.Error(err)
		}
	})
}

func TestEndOfTheAgentEndsTheTurn(t *testing.T) {
	f := &fakeCLI{prompt: "❯ ", forever: true}
	inBubble(t, f, marked, func(t *testing.T, s *session.Session) {
		turn := s.Send(session.Message{Text: "one"})
		time.Sleep(10 * time.Second)
		f.end(&agent.ExitError{Code: 3, Stderr: "panic"})
		_, err := turn.Wait(t.Context())
		exit, ok := errors.AsType[*agent.ExitError](err)
		if !errors.Is(err, agent.ErrAgent) || !ok || exit.Code != 3 {
			t.Error(err)
		}
	})
}

func TestEmptyMessageIsRefused(t *testing.T) {
	f := &fakeCLI{prompt: "❯ "}
	inBubble(t, f, marked, func(t *testing.T, s *session.Session) {
		if _, err := s.Send(session.Message{Text: "\x1b\x03"}).Wait(t.Context()); !errors.Is(err, errEmpty) || len(f.pressed()) != 0 {
			t.Errorf("%v, %q", err, f.pressed())
		}
	})
}

func TestExitKeysEndTheAgent(t *testing.T) {
	terminal := marked
	terminal.Exit = []string{"C-c", "C-d"}
	f := &fakeCLI{prompt: "❯ "}
	inBubble(t, f, terminal, func(t *testing.T, s *session.Session) {
		s.Stop(t.Context(), "over")
		if got := f.pressed(); !slices.Equal(got, terminal.Exit) {
			t.Errorf("%q", got)
		}
	})
}

func TestApprovalRequestsCannotBeAnswered(t *testing.T) {
	t.Parallel()
	if err := newEngine("test", marked, nil, nil).Answer(context.Background(), "1", engine.Accept); !errors.Is(err, engine.ErrTooLate) {
		t.Error(err)
	}
}
