package delegation_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/backendtest"
	"github.com/busdk/bus-agent/delegation"
	"github.com/busdk/bus-agent/internal/process"
	"github.com/busdk/bus-agent/internal/testneed"
	"github.com/busdk/bus-agent/internal/testwait"
	"github.com/busdk/bus-agent/session/control"
)

func TestRunReturnsTheAnswer(t *testing.T) {
	t.Parallel()
	b := broker(t, settings(t))
	var lines []string
	answer, err := b.Run(t.Context(), delegation.Task{Prompt: "call {\"command\":\"ls -l\\nrm x\"}\nchange a.txt\nDone."}, func(line string) { lines = append(lines, line) })
	if err != nil || answer.Text != "Done." || answer.Runtime != "mimic" || answer.Model != "mimic-1" || answer.SessionID != "native-1" ||
		!slices.Equal(answer.Changes, []string{"a.txt"}) {
		t.Errorf("%+v, %v", answer, err)
	}
	if want := []string{"Bash ls -l …", "add a.txt", "Done."}; !slices.Equal(lines, want) {
		t.Errorf("progress %q, want %q", lines, want)
	}
}

func TestRunFollowsASchema(t *testing.T) {
	t.Parallel()
	b := broker(t, settings(t))
	schema := json.RawMessage(`{"type":"object","required":["n"],"properties":{"n":{"type":"integer"}}}`)
	answer, err := b.Run(t.Context(), delegation.Task{Prompt: `{"n":7}`, Schema: schema}, nil)
	if text, _ := json.Marshal(answer.Value); err != nil || string(text) != `{"n":7}` {
		t.Errorf("value %s, %v", text, err)
	}
	answer, err = b.Run(t.Context(), delegation.Task{Prompt: `{"n":"x"}`, Schema: schema}, nil)
	if err == nil || answer.Value != nil {
		t.Errorf("an answer that does not follow the schema: %+v, %v", answer, err)
	}
	_, err = b.Run(t.Context(), delegation.Task{Prompt: "x", Schema: json.RawMessage(`{"type":7}`)}, nil)
	if !errors.Is(err, agent.ErrUsage) {
		t.Errorf("a schema that is not valid: %v", err)
	}
}

func TestRunReportsAFailure(t *testing.T) {
	t.Parallel()
	b := broker(t, settings(t))
	_, err := b.Run(t.Context(), delegation.Task{Prompt: "fail no luck"}, nil)
	if delegation.KindOf(err) != "agent" || !strings.Contains(err.Error(), "no luck") {
		t.Errorf("%q, %v", delegation.KindOf(err), err)
	}
	_, err = b.Run(t.Context(), delegation.Task{Prompt: "x", Runtime: "bogus"}, nil)
	if delegation.KindOf(err) != "usage" {
		t.Errorf("an unknown runtime: %v", err)
	}
}

func TestAccessIsNeverAboveTheCeiling(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		ceiling, asked agent.Access
		want           string // what the agent gets, "" if it is refused
	}{
		{"", "", "read"},
		{"", "read", "read"},
		{"", "write", ""},
		{"write", "", "write"},
		{"write", "read", "read"},
		{"write", "full", ""},
		{"full", "full", "full"},
		{"full", "bogus", ""},
	} {
		s := settings(t)
		s.Access = c.ceiling
		answer, err := broker(t, s).Run(t.Context(), delegation.Task{Prompt: "access", Access: c.asked}, nil)
		if answer.Text != c.want || (err == nil) != (c.want != "") || err != nil && !errors.Is(err, agent.ErrUsage) {
			t.Errorf("%q of %q: %q, %v", c.asked, c.ceiling, answer.Text, err)
		}
	}
}

func TestAgentsInheritNarrowerBounds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		inherited string // by the broker
		want      string // for the agent; "" if it is refused
	}{
		{"", "access=write,depth=2"},
		{"access=full,depth=9", "access=write,depth=2"},
		{"access=read,depth=9", "access=read,depth=2"},
		{"access=full,depth=1", "access=write,depth=0"},
		{"access=full,depth=0", ""},
		{"access=full", ""},
		{"access=bogus,depth=5", ""},
		{"access=full,depth=-1", ""},
		{"anything", ""},
	} {
		s := settings(t, delegation.EnvBounds+"="+c.inherited)
		if c.inherited == "" {
			s = settings(t)
		}
		s.Access, s.Depth = agent.AccessWrite, 3
		answer, err := broker(t, s).Run(t.Context(), delegation.Task{Prompt: "env " + delegation.EnvBounds}, nil)
		if answer.Text != c.want || (err == nil) != (c.want != "") || err != nil && !errors.Is(err, delegation.ErrLimit) {
			t.Errorf("with %q the agent gets %q, %v", c.inherited, answer.Text, err)
		}
	}
}

// A CLI that clears the environment of the programs it starts does not lift the bounds.
func TestBoundsOfAncestorsApply(t *testing.T) {
	t.Parallel()
	for _, bounds := range process.AncestorValues(delegation.EnvBounds) {
		if strings.HasSuffix(bounds, "depth=0") || strings.HasSuffix(bounds, "depth=1") {
			testneed.Lacking(t, "an agent with the bounds %s runs the tests", bounds)
		}
	}
	s := settings(t)
	s.Depth = 3
	answer, err := broker(t, s).Run(t.Context(), delegation.Task{Prompt: "nest"}, nil)
	if err != nil || answer.Text != "read 2" {
		t.Errorf("a nested broker has the bounds %q, %v", answer.Text, err)
	}
}

func TestRunsAreCounted(t *testing.T) {
	t.Parallel()
	s := settings(t)
	s.Runs = 2
	b := broker(t, s)
	for i, want := range []string{"", "", "limit", "limit"} {
		if _, err := b.Run(t.Context(), delegation.Task{Prompt: "x"}, nil); delegation.KindOf(err) != want {
			t.Errorf("run %d: %v", i, err)
		}
	}
	if o := b.Runtimes(t.Context(), true); o.RunsLeft != 0 || o.Default != "mimic" || len(o.Runtimes) != 1 || len(o.Runtimes[0].Access) != 1 {
		t.Errorf("%+v", o)
	}
}

// To ask again for an answer that follows the schema is a run.
func TestRunsOfASchemaAreCounted(t *testing.T) {
	t.Parallel()
	for allowed, want := range map[int]string{1: "limit", 2: "agent"} {
		s := settings(t)
		s.Runs, s.RunsRoot = allowed, t.TempDir()
		s.Record = &control.RecordSettings{Root: s.RunsRoot, Required: true}
		b := broker(t, s)
		_, err := b.Run(t.Context(), delegation.Task{Prompt: "x", Schema: json.RawMessage(`{"type":"integer"}`)}, nil)
		list, listErr := b.Records(t.Context(), "", "", 0)
		if delegation.KindOf(err) != want || len(list) != allowed || listErr != nil {
			t.Errorf("%d allowed: %d runs, %v, %v", allowed, len(list), err, listErr)
		}
	}
}

func TestAgentsAtATimeAreLimited(t *testing.T) {
	t.Parallel()
	s := settings(t)
	s.Concurrent = 1
	b := broker(t, s)
	running := filepath.Join(t.TempDir(), "running")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := b.Run(ctx, delegation.Task{Prompt: "hang " + running}, nil)
		ended <- err
	}()
	testwait.File(t, running)
	if _, err := b.Run(t.Context(), delegation.Task{Prompt: "x"}, nil); !errors.Is(err, delegation.ErrLimit) {
		t.Errorf("a second agent: %v", err)
	}
	cancel()
	if err := testwait.Receive(t, "the end of the run", ended); !errors.Is(err, agent.ErrCanceled) {
		t.Errorf("a canceled run: %v", err)
	}
	if _, err := b.Run(t.Context(), delegation.Task{Prompt: "x"}, nil); err != nil {
		t.Errorf("after it: %v", err)
	}
}

func TestTimeIsLimited(t *testing.T) {
	t.Parallel()
	s := settings(t)
	s.Timeout, s.TotalTimeout = time.Hour, 50*time.Millisecond
	for _, schema := range []json.RawMessage{nil, json.RawMessage(`{"type":"object"}`)} {
		b := broker(t, s)
		for _, want := range []string{"timeout", "limit"} { // the time left is used by the first
			_, err := b.Run(t.Context(), delegation.Task{Prompt: "hang " + filepath.Join(t.TempDir(), "x"), Schema: schema}, nil)
			if delegation.KindOf(err) != want {
				t.Errorf("%v, want %s", err, want)
			}
		}
	}
}

func TestCloseEndsRuns(t *testing.T) {
	t.Parallel()
	b := broker(t, settings(t))
	running := filepath.Join(t.TempDir(), "running")
	ended := make(chan error, 1)
	go func() {
		_, err := b.Run(context.Background(), delegation.Task{Prompt: "hang " + running}, nil)
		ended <- err
	}()
	testwait.File(t, running)
	b.Close()
	if held, err := backendtest.Locked(running); held || err != nil {
		t.Errorf("Close returned before the agent ended: %t, %v", held, err)
	}
	if err := testwait.Receive(t, "the end of the run", ended); !errors.Is(err, agent.ErrCanceled) {
		t.Errorf("the run ends with %v", err)
	}
	if _, err := b.Run(t.Context(), delegation.Task{Prompt: "x"}, nil); !errors.Is(err, agent.ErrCanceled) {
		t.Errorf("a run after Close: %v", err)
	}
}

func TestOnlySessionsOfTheBrokerAreResumed(t *testing.T) {
	t.Parallel()
	s := settings(t)
	b := broker(t, s)
	if _, err := b.Run(t.Context(), delegation.Task{Prompt: "x", Resume: "native-1"}, nil); !errors.Is(err, agent.ErrUsage) {
		t.Errorf("a session of another caller: %v", err)
	}
	for range 2 {
		if _, err := b.Run(t.Context(), delegation.Task{Prompt: "x"}, nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.Run(t.Context(), delegation.Task{Prompt: "x", Resume: "native-1"}, nil); err != nil {
		t.Errorf("its own session: %v", err)
	}
	if err := os.Mkdir(filepath.Join(s.Workdir, "other"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Run(t.Context(), delegation.Task{Prompt: "x", Resume: "native-1", Workdir: "other"}, nil); !errors.Is(err, agent.ErrUsage) {
		t.Errorf("its session in another folder: %v", err)
	}
}

func TestAnswersAreBounded(t *testing.T) {
	t.Parallel()
	s := settings(t)
	s.Output = 1001
	answer, err := broker(t, s).Run(t.Context(), delegation.Task{Prompt: "long"}, nil)
	if err != nil || !answer.Truncated || len(answer.Text) > 1001+len("\n[…]\n") ||
		!strings.HasPrefix(answer.Text, "beginé") || !strings.HasSuffix(answer.Text, "éend") || strings.ContainsRune(answer.Text, '\ufffd') {
		t.Errorf("%d bytes, %v: %.20q", len(answer.Text), err, answer.Text)
	}
}
