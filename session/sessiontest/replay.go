package sessiontest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session"
)

// A Log holds what a session reports as lines of text, for comparison. Its
// methods may be called concurrently.
type Log struct {
	mu    sync.Mutex
	lines []string
}

// Addf adds a line.
func (l *Log) Addf(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, fmt.Sprintf(format, args...))
}

// Event adds an event as JSON, unless it is a sign of life. It is for
// session.Options.Events and never fails.
func (l *Log) Event(e *agent.Event) error {
	if e.Kind == agent.KindHeartbeat {
		return nil
	}
	text, err := json.Marshal(e)
	if err != nil {
		text = fmt.Appendf(text, " %v", err)
	}
	l.Addf("%s", text)
	return nil
}

// Turn waits for the end of a turn and adds its result, without its duration,
// and its error.
func (l *Log) Turn(t *session.Turn) {
	result, err := t.Wait(context.Background())
	result.Duration = 0
	text, marshalErr := json.Marshal(result)
	for _, err := range []error{marshalErr, err} {
		if err != nil {
			text = fmt.Appendf(text, " %v", err)
		}
	}
	l.Addf("turn: %s", text)
}

// Lines returns the lines up to now.
func (l *Log) Lines() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.lines)
}

// String returns the lines, each with its line break.
func (l *Log) String() string {
	return strings.Join(l.Lines(), "\n") + "\n"
}

// Replay makes a session send the client's lines of the transcript that peer
// plays, inside a bubble of package testing/synctest. It calls act with each line
// that the peer waits for. act makes the session send such a line, and returns the
// turn that this begins, or nil. Replay returns all these turns.
func Replay(t testing.TB, peer *Peer, act func(line string) *session.Turn) (turns []*session.Turn) {
	t.Helper()
	for {
		synctest.Wait()
		step, ok := peer.awaited()
		if !ok {
			return turns
		}
		if turn := act(step.Line); turn != nil {
			turns = append(turns, turn)
		}
		synctest.Wait()
		if again, ok := peer.awaited(); ok && again == step {
			t.Fatalf("the client does not send %s", step.Line)
		}
	}
}

// Golden compares got with the file at path. If update is set, it writes
// the file first.
func Golden(t testing.TB, path, got string, update bool) {
	t.Helper()
	if update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", path, got, want)
	}
}

// ReadTranscript reads a transcript from a file: see [Transcript].
func ReadTranscript(t testing.TB, path string) []Step {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	steps, err := Transcript(f)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return steps
}
