package tmux

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/engine"
)

// asking is a terminal whose requests begin like its prompt does.
var asking = engine.Terminal{
	Prompt: "❯ ", Busy: []string{"esc to interrupt"},
	Approvals: []engine.ApprovalDialog{{Contains: "Allow this?", Accept: []string{"Enter"}, Decline: []string{"Escape"}}},
}

func TestApprovalRequestsBelongToTheSession(t *testing.T) {
	for d, keys := range map[engine.Decision][]string{
		engine.Accept: {"Enter"}, engine.AcceptForSession: {"Enter"}, engine.Decline: {"Escape"}, engine.Cancel: {"Escape"},
	} {
		t.Run(string(d), func(t *testing.T) {
			f := &fakeCLI{prompt: "❯ ", work: time.Minute, lag: time.Second}
			inBubble(t, f, asking, func(t *testing.T, s *session.Session) {
				turn := s.Send(session.Message{Text: "one"})
				f.later(20*time.Second, func() { f.dialog = "❯ 1. Yes\nAllow this?" })
				time.Sleep(30 * time.Second)
				open := s.Approvals()
				if len(open) != 1 || !strings.Contains(open[0].Reason, "❯ 1. Yes\nAllow this?") || s.State() != session.StateWaiting {
					t.Fatalf("%+v, %s", open, s.State())
				}
				typed := len(f.pressed())
				if err := s.Answer(t.Context(), open[0].ID, d); err != nil {
					t.Fatal(err)
				}
				if got := f.pressed()[typed:]; !slices.Equal(got, keys) {
					t.Errorf("keys %q, want %q", got, keys)
				}
				if err := s.Answer(t.Context(), open[0].ID, d); !errors.Is(err, engine.ErrTooLate) {
					t.Errorf("answered twice: %v", err)
				}
				_, err := turn.Wait(t.Context())
				if canceled := errors.Is(err, agent.ErrCanceled); canceled != (d == engine.Cancel) {
					t.Error(err)
				}
			})
		})
	}
}

// A request that a person at the terminal answers needs no answer any more, and
// one that comes again is another.
func TestApprovalRequestAnsweredInTheTerminal(t *testing.T) {
	f := &fakeCLI{prompt: "❯ ", work: 5 * time.Minute, lag: time.Second}
	inBubble(t, f, asking, func(t *testing.T, s *session.Session) {
		turn := s.Send(session.Message{Text: "one"})
		var ids []string
		for range 2 {
			f.later(20*time.Second, func() { f.dialog = "Allow this?" })
			f.later(40*time.Second, func() { f.dialog = "" })
			time.Sleep(30 * time.Second)
			for _, a := range s.Approvals() {
				ids = append(ids, a.ID)
			}
			time.Sleep(20 * time.Second)
			if open := s.Approvals(); len(open) != 0 {
				t.Errorf("open: %+v", open)
			}
		}
		if len(ids) != 2 || ids[0] == ids[1] {
			t.Errorf("requests %q", ids)
		}
		if _, err := turn.Wait(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// An answer reaches the request that was reported, or none: not one that took its
// place between two looks at the screen.
func TestReplacedRequestIsNotAnswered(t *testing.T) {
	for name, back := range map[string]bool{"replaced": false, "replaced and shown again": true} {
		t.Run(name, func(t *testing.T) {
			f := &fakeCLI{prompt: "❯ ", work: time.Minute, lag: time.Second}
			inBubble(t, f, asking, func(t *testing.T, s *session.Session) {
				s.Send(session.Message{Text: "one"})
				show := func(file string) {
					f.now(func() { f.dialog = "delete " + file + "\nAllow this?" })
				}
				time.Sleep(20 * time.Second)
				show("a")
				time.Sleep(poll * 4)
				first := s.Approvals()
				if len(first) != 1 || !strings.Contains(first[0].Reason, "delete a") {
					t.Fatalf("%+v", first)
				}
				want, typed := "delete b", len(f.pressed())
				show("b")
				if err := s.Answer(t.Context(), first[0].ID, engine.Accept); !errors.Is(err, engine.ErrTooLate) || len(f.pressed()) > typed {
					t.Fatalf("%v, keys %q", err, f.pressed()[typed:])
				}
				if back {
					want = "delete a"
					show("a")
				}
				time.Sleep(poll * 4)
				second := s.Approvals()
				if len(second) != 1 || second[0].ID == first[0].ID || !strings.Contains(second[0].Reason, want) {
					t.Fatalf("%+v", second)
				}
				if err := s.Answer(t.Context(), second[0].ID, engine.Accept); err != nil || len(f.pressed()) == typed {
					t.Error(err)
				}
			})
		})
	}
}

// A request is reported again when another takes its place unanswered.
func TestReplacedRequestIsReported(t *testing.T) {
	f := &fakeCLI{prompt: "❯ ", work: time.Minute, lag: time.Second}
	inBubble(t, f, asking, func(t *testing.T, s *session.Session) {
		s.Send(session.Message{Text: "one"})
		for _, file := range []string{"a", "b"} {
			f.later(20*time.Second, func() { f.dialog = "delete " + file + "\nAllow this?" })
			time.Sleep(25 * time.Second)
			if open := s.Approvals(); len(open) != 1 || !strings.Contains(open[0].Reason, "delete "+file) {
				t.Errorf("%+v", open)
			}
		}
	})
}

// What a CLI animates does not change a request.
func TestAnimationIsNotANewRequest(t *testing.T) {
	f := &fakeCLI{prompt: "❯ ", work: time.Minute, lag: time.Second}
	inBubble(t, f, asking, func(t *testing.T, s *session.Session) {
		s.Send(session.Message{Text: "one"})
		for i := range 400 {
			f.later(10*time.Second+time.Duration(i)*100*time.Millisecond, func() {
				f.dialog = fmt.Sprintf("%c Working (%dm %ds)\ndelete a\nAllow this?", []rune("⠋⠙⠹✻✽✶·")[i%7], i/600, i/10)
			})
		}
		time.Sleep(15 * time.Second)
		open := s.Approvals()
		time.Sleep(20 * time.Second)
		if later := s.Approvals(); len(open) != 1 || len(later) != 1 || open[0].ID != later[0].ID {
			t.Fatalf("%+v, then %+v", open, later)
		}
		if err := s.Answer(t.Context(), open[0].ID, engine.Decline); err != nil {
			t.Error(err)
		}
	})
}

// A request that is drawn piece by piece is reported whole.
func TestRequestThatIsBeingDrawn(t *testing.T) {
	f := &fakeCLI{prompt: "❯ ", work: time.Minute, lag: time.Second}
	inBubble(t, f, asking, func(t *testing.T, s *session.Session) {
		s.Send(session.Message{Text: "one"})
		for i := range 6 {
			f.later(10*time.Second+time.Duration(i)*150*time.Millisecond, func() {
				f.dialog = strings.Repeat("line\n", i) + "Allow this?"
			})
		}
		time.Sleep(15 * time.Second)
		if open := s.Approvals(); len(open) != 1 || open[0].ID != "approval-1" || strings.Count(open[0].Reason, "line") != 5 {
			t.Errorf("%+v", open)
		}
	})
}

func TestSteadyPartOfALine(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"⠋ Working (3s)", "⠙ Working (1m 4s)", true},
		{"✻ Thinking… (3.2s · esc)", "· Thinking… (4s · esc)", true},
		{"⠋ Working", "⠙ Waiting", false},
		{"⠋ delete 1", "⠙ delete 2", false},
		{"│ sleep 5s", "│ sleep 6s", false},
		{" $ sleep 5s", " $ sleep 6s", false},
		{"⠋ 5s", "$ 5s", false},
	} {
		if same := steady(c.a) == steady(c.b); same != c.same {
			t.Errorf("%q and %q: same %t", c.a, c.b, same)
		}
	}
}

// No message is typed into a request, and no Enter that was meant for one answers
// it.
func TestMessageDoesNotAnswerAnApprovalRequest(t *testing.T) {
	f := &fakeCLI{prompt: "❯ "}
	inBubble(t, f, asking, func(t *testing.T, s *session.Session) {
		f.later(0, func() { f.dialog = "Allow this?" })
		time.Sleep(time.Second)
		if _, err := s.Send(session.Message{Text: "one"}).Wait(t.Context()); !errors.Is(err, errAsks) {
			t.Error(err)
		}
		f.later(0, func() { f.dialog = "" })
		time.Sleep(time.Second)
		f.later(300*time.Millisecond, func() { f.dialog = "Allow this?" }) // once the message is typed
		if _, err := s.Send(session.Message{Text: "two"}).Wait(t.Context()); !errors.Is(err, errAsks) {
			t.Error(err)
		}
		if keys := f.pressed(); slices.Contains(keys, "Enter") || slices.Contains(keys, "Escape") {
			t.Errorf("keys %q", keys)
		}
	})
}

func TestTextIsNotAnApprovalRequest(t *testing.T) {
	t.Parallel()
	terminal := withDefaults(asking)
	for shown, want := range map[string]bool{
		"Allow this?":                        true,
		"Allow\u00a0this?\n(esc)":            true,
		"Allow this?\n\n❯ \n  status":        false,
		"it says: Allow this?\n---\n❯ \n---": false,
	} {
		if got := terminal.approval(screen{lines: splitLines(shown)}) != nil; got != want {
			t.Errorf("%q: %t", shown, got)
		}
	}
}

// What ends a turn that shows no sign of work all the time is what it says.
func TestTurnEndsWithItsEndMark(t *testing.T) {
	terminal := asking
	terminal.Finished, terminal.Quiet = []string{"Worked for"}, 30*time.Second
	f := &fakeCLI{prompt: "❯ ", lag: time.Second, work: time.Second}
	inBubble(t, f, terminal, func(t *testing.T, s *session.Session) {
		f.later(20*time.Second, func() { f.lines = append(f.lines, "more", "Worked for 20s") })
		began := time.Now()
		r, err := s.Send(session.Message{Text: "one"}).Wait(t.Context())
		if took := time.Since(began); err != nil || !strings.Contains(r.Text, "more") || took > 25*time.Second {
			t.Errorf("%q after %v, %v", r.Text, took, err)
		}
		began = time.Now()
		if _, err := s.Send(session.Message{Text: "two"}).Wait(t.Context()); err != nil || time.Since(began) < terminal.Quiet {
			t.Errorf("without the mark it ends after %v, %v", time.Since(began), err)
		}
	})
}

// The ID of a session is reported as soon as it is known.
func TestSessionIDThatIsKnownLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fakeCLI{prompt: "❯ "}
		e := f.engine(asking)
		e.sessionID = func() string {
			if len(f.pressed()) == 0 {
				return ""
			}
			return "late"
		}
		s, err := session.Open(t.Context(), "test", e, f, engine.Transport{}, engine.Start{}, session.Options{})
		if err != nil || s.Info().SessionID != "" {
			t.Fatal(s.Info(), err)
		}
		if r, err := s.Send(session.Message{Text: "one"}).Wait(t.Context()); err != nil || r.SessionID != "late" || s.Info().SessionID != "late" {
			t.Errorf("%+v, %v", r, err)
		}
		s.Stop(t.Context(), "over")
	})
}

// A CLI that shows its prompt before it takes messages is not ready before the rest.
func TestPromptThatComesTooEarly(t *testing.T) {
	terminal := asking
	terminal.Ready = []string{"model x"}
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fakeCLI{prompt: "❯ "}
		f.later(20*time.Second, func() { f.lines = append(f.lines, "model x") })
		began := time.Now()
		s, err := f.open(t.Context(), terminal)
		if took := time.Since(began); err != nil || took < 20*time.Second || took > 24*time.Second {
			t.Errorf("ready after %v, %v", took, err)
		}
		s.Stop(t.Context(), "over")
	})
}

// An Enter that is lost while something else changes is pressed again, where an
// empty input can be distinguished from one that holds a message.
func TestEnterThatSeemsToHaveAnEffect(t *testing.T) {
	terminal := engine.Terminal{Prompt: "> Type here", Placeholder: true, Busy: []string{"esc to interrupt"}}
	f := &fakeCLI{prompt: "> Type here", placeholder: true, swallows: 1}
	inBubble(t, f, terminal, func(t *testing.T, s *session.Session) {
		for i := range 20 { // something changes all the time
			f.later(time.Duration(i)*100*time.Millisecond, func() { f.lines = append(f.lines, "tip") })
		}
		r, err := s.Send(session.Message{Text: "one"}).Wait(t.Context())
		if err != nil || !strings.Contains(r.Text, "answer to one") {
			t.Errorf("%q, %v", r.Text, err)
		}
	})
}
