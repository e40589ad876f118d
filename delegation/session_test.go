package delegation_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/delegation"
	"github.com/busdk/bus-agent/internal/testwait"
	"github.com/busdk/bus-agent/session"
)

// start starts a session and fails the test if that fails.
func start(t *testing.T, b *delegation.Broker, task delegation.Task, asks bool) delegation.Status {
	t.Helper()
	status, err := b.Start(t.Context(), task, asks, nil)
	if err != nil {
		t.Fatal(err)
	}
	return status
}

func TestSessionHasManyTurns(t *testing.T) {
	t.Parallel()
	b := broker(t, settings(t))
	first := start(t, b, delegation.Task{Prompt: "env " + delegation.EnvBounds}, false)
	if first.Text != "access=read,depth=0" || first.State != session.StateReady || first.Turn != 1 || first.SessionID == "" || first.Runtime != "mimic" {
		t.Errorf("%+v", first)
	}
	var lines []string
	second, err := b.Send(t.Context(), first.SessionID, `call {"command":"ls"}`, 0, func(line string) { lines = append(lines, line) })
	if err != nil || second.Turn != 2 || !slices.Equal(lines, []string{"Bash ls"}) {
		t.Errorf("%+v, %v, progress %q", second, err, lines)
	}
	reading, err := b.Read(first.SessionID, 2)
	if err != nil || len(reading.Notes) != 1 || reading.Notes[0].Text != "Bash ls" || reading.Notes[0].Turn != 2 || reading.Next != 3 || reading.Lost != 0 {
		t.Errorf("%+v, %v", reading, err)
	}
	stopped, err := b.Stop(t.Context(), first.SessionID)
	if err != nil || stopped.State != session.StateStopped {
		t.Errorf("%+v, %v", stopped, err)
	}
	if _, err := b.Send(t.Context(), first.SessionID, "x", 0, nil); err == nil {
		t.Error("a session that has ended takes a message")
	}
	for _, id := range []string{"", "other"} {
		if _, err := b.Read(id, 0); !errors.Is(err, agent.ErrUsage) {
			t.Errorf("session %q: %v", id, err)
		}
	}
}

func TestChangesAreThoseOfTheTurn(t *testing.T) {
	t.Parallel()
	b := broker(t, settings(t))
	status := start(t, b, delegation.Task{Prompt: "change a.txt"}, false)
	for _, want := range []string{"", "b.txt", "c.txt", ""} {
		prompt := "x"
		if want != "" {
			prompt = "change " + want
		}
		before := status.Changes
		var err error
		if status, err = b.Send(t.Context(), status.SessionID, prompt, 0, nil); err != nil || strings.Join(status.Changes, " ") != want {
			t.Errorf("%q: changes %q, %v, after %q", prompt, status.Changes, err, before)
		}
	}
}

func TestSessionsHaveTheBoundsOfRuns(t *testing.T) {
	t.Parallel()
	s := settings(t)
	s.Runs, s.Concurrent = 3, 1
	b := broker(t, s)
	for _, task := range []delegation.Task{
		{Prompt: "x", Access: agent.AccessWrite}, {Prompt: "x", Workdir: "/"}, {Prompt: ""}, {Prompt: "\xff"}, {Prompt: "x", Resume: "native-2"},
	} {
		if _, err := b.Start(t.Context(), task, false, nil); !errors.Is(err, agent.ErrUsage) {
			t.Errorf("%+v: %v", task, err)
		}
	}
	status := start(t, b, delegation.Task{Prompt: "x"}, false)
	if _, err := b.Run(t.Context(), delegation.Task{Prompt: "x"}, nil); !errors.Is(err, delegation.ErrLimit) {
		t.Errorf("a run next to the session: %v", err)
	}
	if _, err := b.Start(t.Context(), delegation.Task{Prompt: "x"}, false, nil); !errors.Is(err, delegation.ErrLimit) {
		t.Errorf("a session next to it: %v", err)
	}
	if _, err := b.Send(t.Context(), status.SessionID, "x", 0, nil); err != nil {
		t.Error(err)
	}
	if _, err := b.Stop(t.Context(), status.SessionID); err != nil {
		t.Error(err)
	}
	if _, err := b.Start(t.Context(), delegation.Task{Prompt: "x"}, false, nil); err != nil {
		t.Errorf("after the session: %v", err)
	}
	if _, err := b.Run(t.Context(), delegation.Task{Prompt: "x"}, nil); !errors.Is(err, delegation.ErrLimit) {
		t.Errorf("more runs than allowed: %v", err)
	}
}

func TestApprovalsAreDeclinedByDefault(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		access        agent.Access
		asks, approve bool
		waits         bool
	}{
		"default":       {agent.AccessWrite, false, false, false},
		"asks the user": {agent.AccessWrite, true, false, true},
		"may approve":   {agent.AccessWrite, false, true, true},
		"only may read": {agent.AccessRead, true, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := settings(t)
			s.Access, s.Approve = agent.AccessWrite, c.approve
			b := broker(t, s)
			status := start(t, b, delegation.Task{Prompt: "approve", Access: c.access}, c.asks)
			if !c.waits {
				if len(status.Requests) > 0 || status.Text != "decision: decline" {
					t.Errorf("%+v", status)
				}
				return
			}
			if status.State != session.StateWaiting || len(status.Requests) != 1 || status.Requests[0].Tool != "Bash" || status.Requests[0].Input != `{"command":"make"}` {
				t.Fatalf("%+v", status)
			}
			if _, err := b.Send(t.Context(), status.SessionID, "x", 0, nil); !errors.Is(err, agent.ErrUsage) {
				t.Errorf("a message meanwhile: %v", err)
			}
			id := status.Requests[0].ID
			after, err := b.Answer(t.Context(), status.SessionID, id, delegation.Reply{Decision: session.Accept}, nil)
			if !c.approve {
				if !errors.Is(err, agent.ErrUsage) || len(after.Requests) != 1 {
					t.Errorf("the caller accepts: %+v, %v", after, err)
				}
				after, err = b.Answer(t.Context(), status.SessionID, id, delegation.Reply{Decision: session.Accept, ByUser: true}, nil)
			}
			if err != nil || after.Text != "decision: accept" {
				t.Errorf("%+v, %v", after, err)
			}
			if _, err := b.Answer(t.Context(), status.SessionID, id, delegation.Reply{Decision: session.Decline}, nil); !errors.Is(err, agent.ErrUsage) {
				t.Errorf("a second answer: %v", err)
			}
		})
	}
}

func TestCallerAnswersQuestions(t *testing.T) {
	t.Parallel()
	b := broker(t, settings(t))
	status := start(t, b, delegation.Task{Prompt: "question"}, false)
	if len(status.Requests) != 1 || len(status.Requests[0].Questions) != 1 {
		t.Fatalf("%+v", status)
	}
	id := status.Requests[0].ID
	if _, err := b.Answer(t.Context(), status.SessionID, id, delegation.Reply{Answers: []string{"green"}}, nil); !errors.Is(err, agent.ErrUsage) {
		t.Errorf("an answer that is not an option: %v", err)
	}
	status, err := b.Answer(t.Context(), status.SessionID, id, delegation.Reply{Answers: []string{"2"}}, nil)
	if err != nil || status.Text != "answer: blue" {
		t.Errorf("%+v, %v", status, err)
	}
}

func TestCancelInterruptsTheTurn(t *testing.T) {
	t.Parallel()
	b := broker(t, settings(t))
	status := start(t, b, delegation.Task{Prompt: "x"}, false)
	running := filepath.Join(t.TempDir(), "running")
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		testwait.Exists(running)
		cancel()
	}()
	if _, err := b.Send(ctx, status.SessionID, "hold "+running, 0, nil); !errors.Is(err, agent.ErrCanceled) {
		t.Errorf("%v", err)
	}
	text := testwait.Until(t, "an answer of the session", func() (string, bool) {
		after, err := b.Send(t.Context(), status.SessionID, "again", 0, nil)
		if err != nil {
			return err.Error(), false
		}
		return after.Text, true
	})
	if text != "again" {
		t.Errorf("the answer is %q", text)
	}
}

// Of two messages at a time, each gets its own answer or is not sent.
func TestMessagesAtATimeGetTheirOwnAnswers(t *testing.T) {
	t.Parallel()
	s := settings(t)
	s.Runs = 10_000
	b := broker(t, s)
	id := start(t, b, delegation.Task{Prompt: "x"}, false).SessionID
	var wg sync.WaitGroup
	for range 100 {
		for _, text := range strings.Split("abcdefgh", "") {
			wg.Go(func() {
				status, err := b.Send(t.Context(), id, text, 0, nil)
				if err == nil && status.Text != text || err != nil && !errors.Is(err, agent.ErrUsage) {
					t.Errorf("%s: %q, %v", text, status.Text, err)
				}
			})
		}
		wg.Wait()
	}
}

func TestCancelOfTheStartEndsTheSession(t *testing.T) {
	t.Parallel()
	b := broker(t, settings(t))
	running := filepath.Join(t.TempDir(), "running")
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		testwait.Exists(running)
		cancel()
	}()
	status, err := b.Start(ctx, delegation.Task{Prompt: "hold " + running}, false, nil)
	if !errors.Is(err, agent.ErrCanceled) {
		t.Errorf("%v", err)
	}
	if after, _ := b.Read(status.SessionID, 1); after.State != session.StateStopped {
		t.Errorf("%+v", after)
	}
}

// The user may see a request, so it has no control characters.
func TestRequestsAreBounded(t *testing.T) {
	t.Parallel()
	s := settings(t)
	s.Access, s.Approve, s.Output = agent.AccessWrite, true, 100
	const mark = len("\n[…]\n")
	r := start(t, broker(t, s), delegation.Task{Prompt: "approve " + strings.Repeat("x", 1000) + "\x1b[2J"}, false).Requests
	if len(r) != 1 || len(r[0].Input) > 100+mark || len(r[0].Reason) > 100+mark || strings.Contains(r[0].Reason, "\x1b") {
		t.Errorf("%+v", r)
	}
	r = start(t, broker(t, s), delegation.Task{Prompt: "question " + strings.Repeat("x", 1000)}, false).Requests
	if len(r) != 1 || len(r[0].Questions) != 1 || len(r[0].Questions[0].Text) > 100+mark {
		t.Errorf("%+v", r)
	}
}

func TestCloseEndsSessions(t *testing.T) {
	t.Parallel()
	b := broker(t, settings(t))
	status := start(t, b, delegation.Task{Prompt: "x"}, false)
	b.Close()
	if after, err := b.Read(status.SessionID, 1); err != nil || after.State != session.StateStopped {
		t.Errorf("%+v, %v", after, err)
	}
}

func TestOldNotesAreLost(t *testing.T) {
	t.Parallel()
	s := settings(t)
	s.Runs, s.Output = 2000, 1024
	b := broker(t, s)
	status := start(t, b, delegation.Task{Prompt: strings.Repeat("x", 1000)}, false)
	for range 1001 {
		if _, err := b.Send(t.Context(), status.SessionID, strings.Repeat("x", 1000), 0, nil); err != nil {
			t.Fatal(err)
		}
	}
	reading, err := b.Read(status.SessionID, 1)
	if err != nil || len(reading.Notes) != 1 || reading.Lost != 2 || reading.Notes[0].Number != 3 || reading.Next != 4 {
		t.Errorf("%d notes, %d lost, next %d, %v", len(reading.Notes), reading.Lost, reading.Next, err)
	}
}
