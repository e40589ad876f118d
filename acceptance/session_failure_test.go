//go:build acceptance

package acceptance

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/modeltest"
	"github.com/busdk/bus-agent/session"
)

// disableRetries turns the retries of a CLI off.
func (w *fixture) disableRetries(r *agent.Request) {
	r.Env = append(r.Env, "CLAUDE_CODE_MAX_RETRIES=0")
	for i, arg := range r.Args {
		r.Args[i] = strings.Replace(arg, `wire_api=`, `request_max_retries=0,stream_max_retries=0,wire_api=`, 1)
	}
}

// A failure of the model ends the turn with an error of its kind, and not the session.
func TestSessionContinuesAfterFailures(t *testing.T) {
	t.Parallel()
	eachSessionCLI(t, func(t *testing.T, cli sessionCLI) {
		failures := []struct {
			status int
			kind   error
			says   string
		}{
			{http.StatusUnauthorized, agent.ErrAuthentication, "401"},
			{http.StatusTooManyRequests, agent.ErrQuota, "429"},
			{http.StatusInternalServerError, agent.ErrAgent, ""},
		}
		failing := 0
		w := cli.setup(t, func(r *modeltest.Request) modeltest.Reply {
			if lastPrompt(r) == "fail" {
				return modeltest.Reply{modeltest.HTTPError{Status: failures[failing].status, Message: "no luck"}}
			}
			return modeltest.Reply{modeltest.Text{"fine"}, turnUsage}
		}, nil)
		d := w.startSession(session.Options{}, w.disableRetries)
		d.sendWant("hello", "fine")
		for i, f := range failures {
			failing = i // read when the model is called, within the turn
			r, err := d.send("fail")
			wantErrorIs(t, err, f.kind)
			if err == nil || !strings.Contains(err.Error(), f.says) && !strings.Contains(err.Error(), "no luck") {
				t.Errorf("%d ends the turn with %q", f.status, err)
			}
			if r.Text != "" || r.Usage != nil {
				t.Errorf("%d: a failed turn has the result %+v", f.status, r)
			}
			t.Logf("%d: %v", f.status, err)
			if d.session.State() != session.StateReady {
				t.Fatalf("%d: the session is %s", f.status, d.session.State())
			}
			checkUsage(t, d.sendWant("and now?", "fine"), 1)
		}
		d.stop()
	})
}

// If the agent dies during a turn, the error has its exit code or signal.
func TestSessionEndsWithItsAgent(t *testing.T) {
	t.Parallel()
	eachSessionCLI(t, func(t *testing.T, cli sessionCLI) {
		for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
			t.Run(signal.String(), func(t *testing.T) {
				t.Parallel()
				w := cli.setup(t, modeltest.Replies(answer("ok"), modeltest.Reply{modeltest.Text{"half an"}, modeltest.Silence{}}), nil)
				d := w.startSession(session.Options{}, nil)
				first := d.sendWant("hello", "ok")
				turn := d.session.Send(session.Message{Text: "continue"})
				queued := d.session.Send(session.Message{Text: "and then"})
				ctx, cancel := context.WithTimeout(t.Context(), w.limit)
				defer cancel()
				if _, err := w.model.Await(ctx, 2); err != nil {
					t.Fatal(err)
				}
				d.kill(signal)
				r, err := d.wait(turn)
				wantErrorIs(t, err, agent.ErrAgent)
				exit, ok := errors.AsType[*agent.ExitError](err)
				if signal == syscall.SIGKILL && (!ok || exit.Signal != "SIGKILL" && exit.Code <= 0) || ok && exit.Code == 0 {
					t.Errorf("the turn ends with %v", err)
				}
				if r.ExitCode != -1 || r.SessionID != first.SessionID {
					t.Errorf("result %+v", r)
				}
				t.Logf("%v: %v, %+v", signal, err, exit)
				if _, err := d.wait(queued); !errors.Is(err, session.ErrNotDelivered) {
					t.Errorf("a queued message ends with %v", err)
				}
				if d.session.State() != session.StateStopped {
					t.Errorf("the session is %s", d.session.State())
				}
				w.checkNothingLeft(d.before)
			})
		}
	})
}

// The error contains the exit code and standard error of the CLI.
func TestSessionStartError(t *testing.T) {
	t.Parallel()
	eachSessionCLI(t, func(t *testing.T, cli sessionCLI) {
		w := cli.setup(t, modeltest.Replies(), nil)
		before := w.snapshot()
		_, err := w.tryStartSession(session.Options{}, func(r *agent.Request) { r.Args = append(slices.Clone(r.Args), "--no-such-flag") })
		wantErrorIs(t, err, agent.ErrAgent)
		exit, ok := errors.AsType[*agent.ExitError](err)
		if !ok || exit.Code == 0 || !strings.Contains(exit.Stderr, "--no-such-flag") {
			t.Errorf("want the exit code and standard error: %v, %+v", err, exit)
		}
		w.checkNothingLeft(before)
	})
}
