package backendtest

import (
	"errors"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/busdk/bus-agent/agent"
)

var reportsResult = func(h *Harness) bool { return h.Runtime.ReportsResult }

var endRules = []rule{
	{name: "exit-code", test: exitCode,
		text: "An exit code that is not 0 is a failure, whatever was reported before, and the error has the code and the last lines of standard error."},
	{name: "failure-result", test: failureResult, spoken: true,
		applies: func(h *Harness) bool { return h.Lines.Failure != "" },
		text:    "A result that says failure is a failure with its reason, also with exit code 0."},
	{name: "no-result", test: noResult, spoken: true, applies: reportsResult,
		text: "A run without a result has failed, also with exit code 0."},
	{name: "last-result", test: lastResult, spoken: true,
		applies: func(h *Harness) bool { return h.Runtime.ReportsResult && h.Lines.Failure != "" },
		text:    "Of several results the last counts."},
	{name: "timeout", test: timeout,
		text: "An agent that continues beyond the timeout is ended, and the error is of that kind."},
	{name: "idle-timeout", test: idleTimeout,
		text: "An agent that shows no progress is ended, and the error is of that kind. A CLI that enforces this itself, see Options, gets the limit."},
	{name: "cancel", test: cancel,
		text: "A canceled run ends the agent, and the error is of that kind."},
	{name: "children", test: children, spoken: true,
		text: "A child that holds the output does not keep a run from ending, and no process is left when it has ended."},
}

// ended checks the kind of the error of a run whose agent was started.
func (w *world) ended(o *outcome, kind error) {
	if !errors.Is(o.err, kind) {
		w.failf("the run ends with %v", o.err)
	}
}

func exitCode(w *world) {
	code := 3
	for w.Runtime.ExitFailure != nil && w.Runtime.ExitFailure(&agent.ExitError{Code: code}) != "" {
		if code++; code > 125 {
			w.fatalf("every exit code has a meaning")
		}
	}
	steps := append(w.answer("fine"), PrintErr("first words\n"), PrintErr("\nbackendtest last words"), Exit(code))
	o := w.run(w.request(), steps...)
	w.ended(o, agent.ErrAgent)
	exit, ok := errors.AsType[*agent.ExitError](o.err)
	if !ok {
		w.fatalf("the error has no exit code: %v", o.err)
	}
	if exit.Code != code || o.result.ExitCode != code {
		w.failf("exit code %d is reported as %d and %d", code, exit.Code, o.result.ExitCode)
	}
	if !strings.HasSuffix(exit.Stderr, "backendtest last words") {
		w.failf("the last lines of standard error are %s", clip(exit.Stderr))
	}
}

func failureResult(w *world) {
	for _, code := range []int{0, 1} {
		s := w.script()
		o := w.run(w.request(), append(slices.Concat(s.say(s.lines.Session, ""), s.say(s.lines.Text, "some words"),
			s.say(s.lines.Failure, "no luck today")), Exit(code))...)
		w.ended(o, agent.ErrAgent)
		if o.err != nil && strings.Contains(s.lines.Failure, "{text}") && !strings.Contains(o.err.Error(), "no luck today") {
			w.failf("with exit code %d the error says %v", code, o.err)
		}
	}
}

func noResult(w *world) {
	s := w.script()
	o := w.run(w.request(), slices.Concat(s.say(s.lines.Session, ""), s.say(s.lines.Text, "some words"))...)
	w.ended(o, agent.ErrAgent)
	w.ended(w.run(w.request()), agent.ErrAgent)
}

func lastResult(w *world) {
	s := w.script()
	bad, good := s.say(s.lines.Failure, "no luck today"), s.say(s.lines.Success, "")
	words := func() []Step { return s.say(s.lines.Text, "some words") }
	w.succeed(w.request(), slices.Concat(s.say(s.lines.Session, ""), bad, words(), good)...)
	w.ended(w.run(w.request(), slices.Concat(s.say(s.lines.Session, ""), words(), good, words(), bad)...), agent.ErrAgent)
}

func timeout(w *world) {
	req := w.request()
	req.Timeout = 100 * time.Millisecond
	w.ended(w.run(req, Hang()), agent.ErrTimeout)
}

func idleTimeout(w *world) {
	if w.Runtime.Run.Options.IdleTimeout {
		req := w.request()
		req.IdleTimeout = time.Minute
		if w.difference(req) == w.difference(w.request()) {
			w.failf("the CLI does not get the idle timeout")
		}
		return
	}
	s := w.script()
	req := w.request()
	req.IdleTimeout = 100 * time.Millisecond
	w.ended(w.run(req, append(s.say(s.lines.Session, ""), Hang())...), agent.ErrIdleTimeout)
}

func cancel(w *world) {
	w.ended(w.canceled(), agent.ErrCanceled)
}

func children(w *world) {
	locks := []string{filepath.Join(w.root, "plain child")}
	steps := []Step{Fork(locks[0], ignoreTerm(), Hang())}
	if runtime.GOOS == "linux" {
		locks = append(locks, filepath.Join(w.root, "session child"))
		steps = append(steps, ForkSession(locks[1], ignoreTerm(), Hang()))
	}
	o := w.succeed(w.request(), append(steps, w.answer("an answer")...)...)
	if strings.TrimSpace(o.result.Text) != "an answer" {
		w.failf("the answer is %s", clip(o.result.Text))
	}
	for _, lock := range locks {
		alive, err := Locked(lock)
		w.must(err)
		if alive {
			w.failf("the %s is alive", filepath.Base(lock))
		}
	}
}
