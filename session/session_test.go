package session_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/engine"
)

// peer is an engine with the agent behind it: a test plays the agent.
type peer struct {
	sink  engine.Sink
	sent  chan string
	steer func(text string) error
	send  func(text string) error
	// interrupt is what the agent makes of an interrupt; nil obeys.
	interrupt func(ctx context.Context) error

	mu          sync.Mutex
	answers     []string
	interrupted int
	closed      bool

	done chan struct{}
	once sync.Once
	// deaf agents do not end when they are asked to.
	deaf bool
}

func (p *peer) Open(_ context.Context, _ engine.Transport, _ engine.Start, sink engine.Sink) (engine.Info, error) {
	p.sink = sink
	return engine.Info{SessionID: "s-1", Model: "m-1", Steers: p.steer != nil}, nil
}

func (p *peer) Send(_ context.Context, text string) error {
	if p.send != nil {
		if err := p.send(text); err != nil {
			return err
		}
	}
	p.sent <- text
	return nil
}

func (p *peer) Steer(_ context.Context, text string) error {
	if p.steer == nil {
		return session.ErrUnsupported
	}
	return p.steer(text)
}

func (p *peer) Interrupt(ctx context.Context) error {
	p.mu.Lock()
	p.interrupted++
	p.mu.Unlock()
	if p.interrupt != nil {
		return p.interrupt(ctx)
	}
	return nil
}

func (p *peer) Answer(_ context.Context, id string, d session.Decision) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answers = append(p.answers, id+" "+string(d))
	return nil
}

func (p *peer) answered() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return fmt.Sprint(p.answers)
}

func (p *peer) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	if !p.deaf {
		p.end(nil)
	}
	return nil
}

// end ends the agent.
func (p *peer) end(err error) {
	p.once.Do(func() {
		go func() {
			p.sink.Closed(err)
			close(p.done)
		}()
	})
}

func (p *peer) Stop()                 { p.end(nil) }
func (p *peer) Done() <-chan struct{} { return p.done }

func (p *peer) say(text string) { p.sink.Event(&agent.Event{Kind: agent.KindText, Text: text}) }

func (p *peer) finish() { p.sink.Event(&agent.Event{Kind: agent.KindResult}) }

func (p *peer) request(id string) {
	p.sink.Event(&agent.Event{Kind: agent.KindApproval, ApprovalID: id, Tool: &agent.Tool{Name: "command"}, Text: "why"})
}

func open(t *testing.T, p *peer, o session.Options) *session.Session {
	t.Helper()
	return openWith(t, p, p, o)
}

// openWith opens a session with e, of which p is a part.
func openWith(t *testing.T, e engine.Engine, p *peer, o session.Options) *session.Session {
	t.Helper()
	p.sent, p.done = make(chan string, 100), make(chan struct{})
	s, err := session.Open(t.Context(), "test", e, p, engine.Transport{}, engine.Start{}, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The first message has the prefix before it, once, and none is taken for a command.
func TestMessagesAreGuarded(t *testing.T) {
	t.Parallel()
	for _, slash := range []bool{false, true} {
		guard := map[bool]string{true: "\n"}[slash]
		steered := ""
		p := &peer{steer: func(text string) error { steered = text; return nil }, sent: make(chan string, 2), done: make(chan struct{})}
		start := engine.Start{Prefix: "/rules\n", SlashCommands: slash}
		s, err := session.Open(t.Context(), "test", p, p, engine.Transport{}, start, session.Options{})
		if err != nil {
			t.Fatal(err)
		}
		turn := s.Send(session.Message{Text: "/one"})
		if got, want := <-p.sent, guard+"/rules\n/one"; got != want {
			t.Errorf("the agent got %q, want %q", got, want)
		}
		s.Steer(t.Context(), session.Message{Text: "/two"})
		if want := guard + "/two"; steered != want {
			t.Errorf("the agent got %q, want %q", steered, want)
		}
		p.sink.Event(&agent.Event{Kind: agent.KindResult})
		<-turn.Done()
		s.Send(session.Message{Text: "/three"})
		if got, want := <-p.sent, guard+"/three"; got != want {
			t.Errorf("the agent got %q, want %q", got, want)
		}
		s.Stop(t.Context(), "")
	}
}

func ExampleSession() {
	p := &peer{sent: make(chan string, 1), done: make(chan struct{})}
	s, err := session.Open(context.Background(), "test", p, p, engine.Transport{}, engine.Start{}, session.Options{
		Events: func(e *agent.Event) error { fmt.Printf("%s %q\n", e.Kind, e.Text); return nil },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Stop(context.Background(), "done")
	turn := s.Send(session.Message{Text: "Hello"})

	p.say("You said " + <-p.sent) // the agent
	p.finish()

	result, err := turn.Wait(context.Background())
	fmt.Println(result.Text, err)
	// Output:
	// text "You said Hello"
	// result ""
	// You said Hello <nil>
}

func TestMessagesAreAnsweredInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &peer{}
		s := open(t, p, session.Options{})
		var turns []*session.Turn
		for i := range 5 {
			turns = append(turns, s.Send(session.Message{Text: fmt.Sprint("message ", i)}))
		}
		for i, turn := range turns {
			if got := <-p.sent; got != fmt.Sprint("message ", i) {
				t.Errorf("message %d is %q", i, got)
			}
			synctest.Wait()
			if len(p.sent) > 0 || s.State() != session.StateRunning {
				t.Errorf("another message is sent while a turn runs; %s", s.State())
			}
			p.say("before a tool")
			p.sink.Event(&agent.Event{Kind: agent.KindToolCall, Tool: &agent.Tool{}})
			p.say("answer ")
			p.sink.Event(&agent.Event{Kind: agent.KindText, Text: "of a subagent", Subagent: "x"})
			p.sink.Event(&agent.Event{Kind: agent.KindResult, Subagent: "x"})
			p.say(fmt.Sprint("answer ", i))
			cost := float64(i)
			p.sink.Event(&agent.Event{Kind: agent.KindUsage, Usage: &agent.Usage{Input: int64(10*i + 10), CostUSD: &cost}})
			p.finish()
			result, err := turn.Wait(t.Context())
			if err != nil || result.Text != fmt.Sprint("answer ", i) || result.Usage.Input != 10 || *result.Usage.CostUSD != min(1, float64(i)) || result.SessionID != "s-1" || result.Runtime != "test" {
				t.Errorf("turn %d: %+v, %v", i, result, err)
			}
		}
		if s.State() != session.StateReady {
			t.Errorf("the session is %s", s.State())
		}
		p.finish() // of a turn without a message
		s.Stop(t.Context(), "")
	})
}

func TestSteer(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		steer func(string) error
		same  bool
	}{
		"reaches the turn": {func(string) error { return nil }, true},
		"comes too late":   {func(string) error { return session.ErrTooLate }, false},
		"is not possible":  {nil, false},
		"fails":            {func(string) error { return errors.New("broken") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := &peer{steer: test.steer}
				s := open(t, p, session.Options{})
				first := s.Send(session.Message{Text: "first"})
				<-p.sent
				queued := s.Send(session.Message{Text: "queued"})
				steered := s.Steer(t.Context(), session.Message{Text: "steered"})
				if (steered == first) != test.same {
					t.Error("it went elsewhere")
				}
				p.finish()
				want := []string{"steered", "queued"}
				if test.same {
					want = want[1:]
				}
				for _, text := range want {
					if got := <-p.sent; got != text {
						t.Errorf("then %q was sent, want %q", got, text)
					}
					p.finish()
				}
				for _, turn := range []*session.Turn{first, steered, queued} {
					if _, err := turn.Wait(t.Context()); err != nil {
						t.Error(err)
					}
				}
				alone := s.Steer(t.Context(), session.Message{Text: "alone"})
				if got := <-p.sent; got != "alone" {
					t.Errorf("without a turn %q was sent", got)
				}
				p.finish()
				<-alone.Done()
				s.Stop(t.Context(), "")
			})
		})
	}
}

func TestApproval(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &peer{}
		s := open(t, p, session.Options{ApprovalTimeout: time.Minute})
		turn := s.Send(session.Message{Text: "go"})
		<-p.sent
		p.request("q1")
		p.request("q2")
		p.request("q2")
		if s.State() != session.StateWaiting || len(s.Approvals()) != 2 || s.Approvals()[0].ID != "q1" || s.Approvals()[0].Reason != "why" {
			t.Errorf("%s, %+v", s.State(), s.Approvals())
		}
		if err := s.Answer(t.Context(), "q1", session.Accept); err != nil {
			t.Error(err)
		}
		for _, id := range []string{"q1", "unknown"} {
			if err := s.Answer(t.Context(), id, session.Accept); !errors.Is(err, session.ErrTooLate) {
				t.Errorf("%s again: %v", id, err)
			}
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := p.answered(); got != "[q1 accept q2 decline]" {
			t.Errorf("answered %s", got)
		}
		p.request("q3")
		p.sink.Answered("q3")
		p.request("q4")
		p.finish()
		<-turn.Done()
		time.Sleep(time.Hour)
		if got := p.answered(); got != "[q1 accept q2 decline]" || s.State() != session.StateReady {
			t.Errorf("answered %s, %s", got, s.State())
		}
		s.Stop(t.Context(), "")
	})
}

func TestApprovalCallback(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &peer{}
		withdrawn := false
		s := open(t, p, session.Options{ApprovalTimeout: -1})
		s.Stop(t.Context(), "")
		p = &peer{}
		s = open(t, p, session.Options{Approve: func(ctx context.Context, a session.Approval) session.Decision {
			if a.ID == "slow" {
				<-ctx.Done()
				withdrawn = true
			}
			return session.AcceptForSession
		}})
		s.Send(session.Message{Text: "go"})
		<-p.sent
		p.request("fast")
		p.request("slow")
		synctest.Wait()
		p.finish()
		synctest.Wait()
		if got := p.answered(); got != "[fast accept_for_session]" || !withdrawn {
			t.Errorf("answered %s, withdrawn %v", got, withdrawn)
		}
		s.Stop(t.Context(), "")
	})
}

// An interrupt that is given up leaves the turn as it was: what fails later is not
// reported as interrupted.
func TestInterruptThatIsGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &peer{interrupt: func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }}
		s := open(t, p, session.Options{})
		defer s.Stop(context.Background(), "")
		turn := s.Send(session.Message{Text: "go"})
		<-p.sent
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.Interrupt(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		p.sink.Event(&agent.Event{Kind: agent.KindResult, Failed: true, Text: "disk full"})
		if _, err := turn.Wait(t.Context()); !errors.Is(err, agent.ErrAgent) || err.Error() != "test: disk full" {
			t.Error(err)
		}
	})
}

func TestTurnThatFails(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		event     agent.Event
		interrupt bool
		want      error
		text      string
	}{
		"login":       {agent.Event{Failed: true, Failure: agent.FailureAuthentication, Text: "no"}, false, agent.ErrAuthentication, "test: no"},
		"quota":       {agent.Event{Failed: true, Failure: agent.FailureQuota, Text: "no"}, false, agent.ErrQuota, "test: no"},
		"no reason":   {agent.Event{Failed: true}, false, agent.ErrAgent, "test: the turn failed without a reason"},
		"interrupted": {agent.Event{Failed: true}, true, agent.ErrCanceled, "test: the turn was interrupted"},
		"said so":     {agent.Event{Failed: true, Interrupted: true, Text: "by hand"}, false, agent.ErrCanceled, "test: by hand"},
		"done before": {agent.Event{}, true, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := &peer{}
				s := open(t, p, session.Options{})
				defer s.Stop(context.Background(), "")
				if err := s.Interrupt(t.Context()); !errors.Is(err, session.ErrTooLate) || p.interrupted > 0 {
					t.Errorf("without a turn: %v, %d", err, p.interrupted)
				}
				turn := s.Send(session.Message{Text: "go"})
				<-p.sent
				if test.interrupt {
					if err := s.Interrupt(t.Context()); err != nil || p.interrupted != 1 {
						t.Errorf("%v, %d", err, p.interrupted)
					}
				}
				test.event.Kind = agent.KindResult
				p.sink.Event(&test.event)
				_, err := turn.Wait(t.Context())
				if !errors.Is(err, test.want) || err != nil && err.Error() != test.text {
					t.Errorf("%v, want %v", err, test.want)
				}
				s.Send(session.Message{Text: "next"})
				if got := <-p.sent; got != "next" {
					t.Errorf("%q", got)
				}
			})
		})
	}
}

func TestNoMessageIsDropped(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*session.Session, *peer){
		"the agent dies":         func(_ *session.Session, p *peer) { p.end(errors.New("broken pipe")) },
		"the session is stopped": func(s *session.Session, _ *peer) { s.Stop(context.Background(), "enough") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := &peer{}
				s := open(t, p, session.Options{})
				running := s.Send(session.Message{Text: "running"})
				<-p.sent
				p.request("open")
				waiting := []*session.Turn{s.Send(session.Message{Text: "queued"}), s.Steer(t.Context(), session.Message{Text: "steered"})}
				end(s, p)
				<-s.Done()
				result, err := running.Wait(t.Context())
				if err == nil || errors.Is(err, session.ErrNotDelivered) || result.ExitCode != -1 {
					t.Errorf("the running turn: %+v, %v", result, err)
				}
				for _, turn := range append(waiting, s.Send(session.Message{Text: "late"})) {
					if _, err := turn.Wait(t.Context()); !errors.Is(err, session.ErrNotDelivered) {
						t.Errorf("a waiting turn: %v", err)
					}
				}
				if s.State() != session.StateStopped || len(s.Approvals()) > 0 {
					t.Errorf("%s, %v", s.State(), s.Approvals())
				}
				s.Stop(t.Context(), "again")
			})
		})
	}
}

func TestMessageThatWaitsTooLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &peer{}
		s := open(t, p, session.Options{})
		running := s.Send(session.Message{Text: "running", Timeout: time.Second})
		<-p.sent
		late := s.Send(session.Message{Text: "late", Timeout: time.Second})
		next := s.Send(session.Message{Text: "next", Timeout: time.Hour})
		_, err := late.Wait(t.Context())
		if !errors.Is(err, agent.ErrTimeout) || !errors.Is(err, session.ErrNotDelivered) {
			t.Error(err)
		}
		p.finish()
		if _, err := running.Wait(t.Context()); err != nil {
			t.Error(err)
		}
		if got := <-p.sent; got != "next" {
			t.Errorf("%q", got)
		}
		p.finish()
		<-next.Done()
		s.Stop(t.Context(), "")
	})
}

func TestMessageThatCannotBeSent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &peer{send: func(text string) error {
			if text == "bad" {
				return errors.New("refused")
			}
			return nil
		}}
		s := open(t, p, session.Options{})
		bad, good := s.Send(session.Message{Text: "bad"}), s.Send(session.Message{Text: "good"})
		if _, err := bad.Wait(t.Context()); !errors.Is(err, session.ErrNotDelivered) || !errors.Is(err, agent.ErrAgent) {
			t.Error(err)
		}
		if got := <-p.sent; got != "good" {
			t.Errorf("%q", got)
		}
		p.finish()
		<-good.Done()
		s.Stop(t.Context(), "")
	})
}

func TestStopEndsAnAgentThatDoesNot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &peer{deaf: true}
		s := open(t, p, session.Options{})
		begun := time.Now()
		s.Stop(t.Context(), "")
		if took := time.Since(begun); took != session.DefaultCloseGrace || !p.closed {
			t.Errorf("after %v, closed %v", took, p.closed)
		}
		p = &peer{deaf: true}
		s = open(t, p, session.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		begun = time.Now()
		if s.Stop(ctx, ""); time.Since(begun) > 0 {
			t.Error("the end of the context is waited out")
		}
	})
}

type broken struct{ peer }

func (b *broken) Open(context.Context, engine.Transport, engine.Start, engine.Sink) (engine.Info, error) {
	return engine.Info{}, errors.New("no greeting")
}

func TestOpenThatFailsEndsTheAgent(t *testing.T) {
	t.Parallel()
	stopped := make(chan struct{})
	b := &broken{}
	_, err := session.Open(t.Context(), "test", b, process{stopped}, engine.Transport{}, engine.Start{}, session.Options{})
	if !errors.Is(err, agent.ErrAgent) {
		t.Error(err)
	}
	select {
	case <-stopped:
	default:
		t.Error("the agent is not ended")
	}
}

func (b *broken) Close() error { return nil }

type process struct{ stopped chan struct{} }

func (p process) Stop()                 { close(p.stopped) }
func (p process) Done() <-chan struct{} { return p.stopped }

func TestWaitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &peer{}
		s := open(t, p, session.Options{})
		turn := s.Send(session.Message{Text: "go"})
		<-p.sent
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := turn.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		p.finish()
		if _, err := turn.Wait(t.Context()); err != nil {
			t.Error(err)
		}
		s.Stop(t.Context(), "")
	})
}

func TestParseDecision(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]session.Decision{
		"accept": session.Accept, "accept_for_session": session.AcceptForSession, "acceptForSession": session.AcceptForSession,
		"decline": session.Decline, "cancel": session.Cancel,
	} {
		if got, err := session.ParseDecision(word); err != nil || got != want {
			t.Errorf("%s: %s, %v", word, got, err)
		}
	}
	if _, err := session.ParseDecision("yes"); !errors.Is(err, agent.ErrUsage) {
		t.Error(err)
	}
}
