package supervisor

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session"
)

// deaf answers neither messages nor interrupts.
type deaf struct{ *echo }

func (deaf) Send(context.Context, string) error { return nil }

func (deaf) Interrupt(ctx context.Context) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

func openDeaf(ctx context.Context, o session.Options, notes Notes) (Agent, error) {
	notes.Started(agent.Start{Runtime: "deaf"})
	e := deaf{&echo{turns: make(chan string, 1), done: make(chan struct{})}}
	s, err := session.Open(ctx, "deaf", e, e, session.Transport{}, session.Start{}, o)
	return echoAgent{s}, err
}

// An agent that does not answer an interrupt keeps neither its caller for ever, nor
// others.
func TestInterruptHasALimit(t *testing.T) {
	t.Parallel()
	all, entry := newEntry(t)
	entry = serve(t, Options{Sessions: all, Entry: entry, Open: openDeaf})
	if _, _, err := all.Send(t.Context(), entry, "hi", false, Watcher{}); err != nil {
		t.Fatal(err)
	}
	const want = `session one: the agent does not heed the interrupt; "session stop one" ends it`
	if _, err := all.Interrupt(t.Context(), entry, 50*time.Millisecond); err == nil || err.Error() != want || agent.KindOf(err) == "timeout" {
		t.Errorf("%v, want %s", err, want)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	if _, err := all.Interrupt(ctx, entry, time.Hour); err == nil || strings.Contains(err.Error(), "heed") {
		t.Errorf("canceled: %v", err)
	}
}

// What ends a session whose socket is gone is said, and only of such a one.
func TestSocketThatIsGone(t *testing.T) {
	t.Parallel()
	all, entry := serveEcho(t, 0)
	if err := os.Remove(all.socket(entry.ID)); err != nil {
		t.Fatal(err)
	}
	const hint = `; "session stop one" ends it`
	_, _, err := all.Send(t.Context(), entry, "hi", true, Watcher{})
	if !errors.Is(err, ErrUnreachable) || !strings.HasPrefix(err.Error(), "session one cannot be reached: dial unix ") || !strings.HasSuffix(err.Error(), hint) {
		t.Error(err)
	}
	if err := all.Stop(t.Context(), entry, ""); !errors.Is(err, ErrUnreachable) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := all.Stop(ctx, entry, ""); err == nil || errors.Is(err, ErrUnreachable) {
		t.Errorf("a stop that is canceled: %v", err)
	}
	entry.Stored = StateStarting
	if err := all.Stop(t.Context(), entry, ""); err == nil || errors.Is(err, ErrUnreachable) || strings.Contains(err.Error(), hint) {
		t.Errorf("before it listens: %v", err)
	}
}

// A program in the place of the socket that answers without end is given up.
func TestAnswerWithoutEnd(t *testing.T) {
	t.Parallel()
	all, entry := serveEcho(t, 0)
	path := all.socket(entry.ID)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	l, err := listen(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		for junk := make([]byte, 1<<20); err == nil; {
			_, err = conn.Write(junk)
		}
	}()
	if _, _, err := all.Send(t.Context(), entry, "hi", true, Watcher{}); err == nil || !strings.Contains(err.Error(), "a line of more than") {
		t.Error(err)
	}
}
