package runner_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/testneed"
	"github.com/busdk/bus-agent/internal/testwait"
)

// A descendant of the agent holds its output open. The sweep ends the process.
func TestRunEndsThoughAChildHoldsTheOutput(t *testing.T) {
	t.Parallel()
	b := newBench(t, "alpha")
	h := newTether(t)
	gate, open := newGate(t)
	req := b.request("leave "+h.path, "wait "+gate, "say text:hi", "stderr the end", "say ok:")
	ended := b.start(t.Context(), req, agent.Output{})
	testwait.Receive(t, "the start of the child", h.held)
	open()
	end := within(t, ended)
	if end.err != nil || end.result.Text != "hi" || end.result.Stderr.String() != "the end\n" {
		t.Errorf("Run = %+v, %v, want success", end.result, end.err)
	}
	h.expectGone(t, "the child")
}

// A foreign process, which no sweep may end, holds standard output or standard error
// open.
func TestRunEndsThoughAStrangerHoldsTheOutput(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self/fd/1"); err != nil {
		testneed.Lacking(t, "cannot get hold of the output of another process: %v", err)
	}
	for fd, name := range map[int]string{1: "stdout", 2: "stderr"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, "alpha")
			gate, open := newGate(t)
			req := b.request("pid", "wait "+gate, "say text:hi", "stderr the end", "say ok:")
			var holder *os.File
			var out agent.Output
			out.Events = func(e *agent.Event) (err error) {
				if e.Kind == agent.KindText && holder == nil {
					defer open()
					holder, err = os.OpenFile(fmt.Sprintf("/proc/%s/fd/%d", e.Text, fd), os.O_WRONLY, 0)
				}
				return err
			}
			end := within(t, b.start(t.Context(), req, out))
			if end.err != nil || end.result.Text != "hi" || end.result.Stderr.String() != "the end\n" {
				t.Errorf("Run = %+v, %v, want success", end.result, end.err)
			}
			if holder == nil {
				t.Fatal("no process held the output")
			}
			holder.Close()
		})
	}
}

func TestRunDoesNotWaitForAnAgentToReadItsPrompt(t *testing.T) {
	t.Parallel()
	prompt := strings.Repeat("0123456789abcde\n", 8<<20/16)
	for name, c := range map[string]struct {
		script []string
		want   error
	}{
		"agent that exits":                          {[]string{"say text:hi", "say ok:"}, nil},
		"agent that closes it":                      {[]string{"deaf", "say text:hi", "say ok:"}, nil},
		"agent that hangs":                          {[]string{"say text:hi", "hang"}, agent.ErrCanceled},
		"agent that closes it and hangs":            {[]string{"deaf", "say text:hi", "hang"}, agent.ErrCanceled},
		"agent that does not exit after its result": {[]string{"say text:hi", "say ok:", "hang"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.takesAnyPrompt(t)
			b.SetResultSilence(50 * time.Millisecond)
			req := b.request(c.script...)
			req.Prompt = prompt
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var out agent.Output
			out.Events = func(*agent.Event) error {
				if c.want != nil {
					cancel()
				}
				return nil
			}
			end := within(t, b.start(ctx, req, out))
			if !errors.Is(end.err, c.want) || end.result.Text != "hi" {
				t.Errorf("Run = %q, %v, want %v", end.result.Text, end.err, c.want)
			}
		})
	}
}

// Where one of timeout and idle timeout is to end the run, the other is long.
func TestRunEndsAnAgentThatHangs(t *testing.T) {
	t.Parallel()
	const soon = 300 * time.Millisecond
	for name, c := range map[string]struct {
		script        []string
		timeout, idle time.Duration
		want          error // nil: success with a warning
	}{
		"no output at all":                      {[]string{"hang"}, tooLong, soon, agent.ErrIdleTimeout},
		"heartbeats for ever":                   {[]string{"say text:hi", "forever beat:"}, tooLong, soon, agent.ErrIdleTimeout},
		"retries for ever":                      {[]string{"say text:hi", "forever retry:"}, tooLong, soon, agent.ErrIdleTimeout},
		"heartbeats as fast as they go":         {[]string{"flood beat:"}, tooLong, soon, agent.ErrIdleTimeout},
		"noise on standard error only":          {[]string{"say text:hi", "stderr noise", "hang"}, tooLong, soon, agent.ErrIdleTimeout},
		"half a line":                           {[]string{"part text:h", "hang"}, tooLong, soon, agent.ErrIdleTimeout},
		"output for ever":                       {[]string{"forever text:hi"}, soon, tooLong, agent.ErrTimeout},
		"output as fast as it goes":             {[]string{"flood text:hi"}, soon, tooLong, agent.ErrTimeout},
		"heartbeats for ever after its result":  {[]string{"say ok:", "forever beat:"}, tooLong, ample, nil},
		"lines for ever after its result":       {[]string{"say ok:", "forever noise"}, ample, tooLong, nil},
		"a turn without end after its result":   {[]string{`bytes "ok:\ntext:hi\n"`, "forever text:hi"}, soon, tooLong, agent.ErrTimeout},
		"heartbeats for ever with an open task": {[]string{"say open:x", "say ok:", "forever beat:"}, tooLong, soon, agent.ErrIdleTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, "alpha")
			h := newTether(t)
			b.SetResultSilence(tooLong)
			req := b.request(append([]string{"hold " + h.path}, c.script...)...)
			req.Timeout, req.IdleTimeout = c.timeout, c.idle
			end := within(t, b.start(t.Context(), req, agent.Output{}))
			if !errors.Is(end.err, c.want) || (c.want == nil) != (len(end.result.Warnings) == 1) {
				t.Errorf("Run = %v, warnings %q, want %v", end.err, end.result.Warnings, c.want)
			}
			h.expectGone(t, "the agent")
		})
	}
}

// Output after the result is delivered, and the last result counts.
func TestRunTakesOutputAfterTheResult(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		after  []string
		kinds  string
		answer string
		want   error
	}{
		"sign of life":   {[]string{"say beat:"}, "heartbeat", "first", nil},
		"unknown line":   {[]string{"say what?"}, "raw", "first", nil},
		"half a line":    {[]string{"part text:la"}, "text", "la", nil},
		"more text":      {[]string{"say text:last"}, "text", "last", nil},
		"failure":        {[]string{"say failed: late"}, "result", "first", agent.ErrAgent},
		"other success":  {[]string{"say failed: no", "say ok:"}, "result result", "first", nil},
		"failing exit":   {[]string{"say beat:", "exit 3"}, "heartbeat", "first", agent.ErrAgent},
		"refused log-in": {[]string{"say retry:authentication", "hang"}, "retry", "first", agent.ErrAuthentication},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, "alpha")
			req := b.request(append([]string{"say text:first", "say ok:"}, c.after...)...)
			var list func() string
			var out agent.Output
			out.Events, list = kinds()
			end := within(t, b.start(t.Context(), req, out))
			if !errors.Is(end.err, c.want) || end.result.Text != c.answer {
				t.Errorf("Run = %q, %v, want %q, %v", end.result.Text, end.err, c.answer, c.want)
			}
			if want := "text result " + c.kinds; list() != want {
				t.Errorf("events are %q, want %q", list(), want)
			}
		})
	}
}

func TestRunOfAnEndedContextStartsNothing(t *testing.T) {
	t.Parallel()
	why := errors.New("why")
	for name, c := range map[string]struct {
		end  func(cancel context.CancelCauseFunc)
		late bool // after the request is resolved
		kind error
	}{
		"canceled":                  {func(cancel context.CancelCauseFunc) { cancel(why) }, false, agent.ErrCanceled},
		"deadline":                  {func(cancel context.CancelCauseFunc) { cancel(context.DeadlineExceeded) }, false, agent.ErrTimeout},
		"canceled before the start": {func(cancel context.CancelCauseFunc) { cancel(why) }, true, agent.ErrCanceled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, "alpha")
			ctx, cancel := context.WithCancelCause(t.Context())
			req := b.request("stray", "say text:started", "say ok:")
			var out agent.Output
			out.Started = func(agent.Start) {
				if !c.late {
					t.Error("it was about to be started")
				}
				c.end(cancel)
			}
			if !c.late {
				c.end(cancel)
			}
			result, err := b.Run(ctx, req, out)
			if !errors.Is(err, c.kind) || result.ExitCode != -1 || result.Text != "" || result.Stdout.Size != 0 {
				t.Errorf("Run = %+v, %v, want %v and no agent", result, err, c.kind)
			}
			tmp, _ := agent.LookupEnv(b.Environ, "TMPDIR")
			for _, dir := range []string{b.dir, tmp} {
				if entries, _ := os.ReadDir(dir); len(entries) != 0 {
					t.Errorf("left behind: %v", entries)
				}
			}
		})
	}
}
