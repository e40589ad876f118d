package structured

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/busdk/bus-agent/agent"
)

// endless returns a schema whose validator does not come to an end before the test
// does; begun is called when it begins.
func endless(t *testing.T, begun func()) *Schema {
	t.Helper()
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	return &Schema{source: []byte(weather), validate: func(_ *budget, _ any, _ func(string) string) Violations {
		begun()
		<-release
		return nil
	}}
}

// after is a turn that takes some time.
func after(d time.Duration, play func(agent.Request) (agent.Result, error)) func(agent.Request) (agent.Result, error) {
	return func(req agent.Request) (agent.Result, error) {
		time.Sleep(d)
		return play(req)
	}
}

// A check ends with the context of the run.
func TestContextEndsTheCheck(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	cause := errors.New("a signal")
	r := Enforcer{Next: &turns{play: []func(agent.Request) (agent.Result, error){says(good)}}, Schema: endless(t, func() { cancel(cause) })}
	result, err := r.Run(ctx, agent.Request{Prompt: "x"}, agent.Output{})
	if !errors.Is(err, agent.ErrCanceled) || !errors.Is(err, cause) || result.Text != good {
		t.Errorf("canceled: %v, %+v", err, result)
	}
	if want := "fake: stopped during the check of the answer: a signal"; err == nil || err.Error() != want {
		t.Errorf("it says %q, want %q", err, want)
	}
	ctx, end := context.WithDeadline(t.Context(), time.Now())
	defer end()
	r = Enforcer{Next: &turns{play: []func(agent.Request) (agent.Result, error){says(good)}}, Schema: endless(t, func() {})}
	if _, err := r.Run(ctx, agent.Request{Prompt: "x"}, agent.Output{}); !errors.Is(err, agent.ErrTimeout) {
		t.Errorf("a deadline: %v", err)
	}
}

// A check ends with the time of the run, and has a separate bound.
func TestTimeEndsTheCheck(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		request, own, turn, want time.Duration
		says                     string
	}{
		"of the request":     {10 * time.Second, time.Hour, 4 * time.Second, 6 * time.Second, "longer than 6s, the rest of the timeout of 10s"},
		"of the runner":      {0, 10 * time.Second, 4 * time.Second, 6 * time.Second, "longer than 6s, the rest of the timeout of 10s"},
		"none":               {0, 0, time.Hour, maxCheck, "longer than 30s, the limit of a check"},
		"much":               {time.Hour, 0, time.Minute, maxCheck, "longer than 30s, the limit of a check"},
		"at the last moment": {time.Minute, 0, time.Minute - 1, minCheck, "longer than 1s, the rest of the timeout of 1m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				next := &turns{play: []func(agent.Request) (agent.Result, error){after(c.turn, says(good))}}
				r := Enforcer{Next: next, Schema: endless(t, func() {}), Timeout: c.own}
				begun := time.Now()
				result, err := r.Run(t.Context(), agent.Request{Prompt: "x", Timeout: c.request}, agent.Output{})
				if took := time.Since(begun) - c.turn; took != c.want {
					t.Errorf("the check took %v, want %v", took, c.want)
				}
				if !errors.Is(err, agent.ErrTimeout) || !strings.HasSuffix(err.Error(), c.says) || result.Text != good || len(next.requests) != 1 {
					t.Errorf("%v, %+v", err, result)
				}
			})
		})
	}
}

// The check of the second answer has what both turns have left.
func TestTimeEndsTheSecondCheck(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		schema := endless(t, func() {})
		slow, checked := schema.validate, false
		schema.validate = func(b *budget, value any, mask func(string) string) Violations {
			if !checked {
				checked = true
				return Violations{"it is wrong"}
			}
			return slow(b, value, mask)
		}
		next := &turns{play: []func(agent.Request) (agent.Result, error){after(20*time.Second, says(wrong)), after(30*time.Second, says(good))}}
		r := Enforcer{Next: next, Schema: schema}
		begun := time.Now()
		result, err := r.Run(t.Context(), agent.Request{Prompt: "x", Timeout: time.Minute}, agent.Output{})
		if took := time.Since(begun); took != time.Minute || !errors.Is(err, agent.ErrTimeout) {
			t.Errorf("%v after %v", err, took)
		}
		if result.Text != good || result.Duration != 2*time.Second || len(result.Warnings) != 1 {
			t.Errorf("result %+v", result)
		}
	})
}

// A schema that doubles the work with each level of the answer is not checked for ever.
func TestHostileRecursion(t *testing.T) {
	t.Parallel()
	const levels = 60
	schema, err := Compile([]byte(`{"type":"object","properties":{"child":{"$ref":"#"}},"patternProperties":{"^c":{"$ref":"#"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	answer := strings.Repeat(`{"child":`, levels) + "{}" + strings.Repeat("}", levels)
	r := Enforcer{Next: &turns{play: []func(agent.Request) (agent.Result, error){says(answer)}}, Schema: schema}
	if _, err := r.Run(t.Context(), agent.Request{Prompt: "x"}, agent.Output{}); !errors.Is(err, agent.ErrAgent) || !errors.Is(err, errSteps) {
		t.Errorf("Run: %v", err)
	}
}

// The goroutine of a check that was given up ends.
func TestCheckThatIsGivenUpIsStopped(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var b *budget
	begun, release := make(chan bool, 1), make(chan bool)
	schema := &Schema{source: []byte(weather), validate: func(got *budget, _ any, _ func(string) string) Violations {
		b = got
		begun <- true
		cancel()
		<-release
		return nil
	}}
	defer close(release)
	r := Enforcer{Next: &turns{play: []func(agent.Request) (agent.Result, error){says(good)}}, Schema: schema}
	_, err := r.Run(ctx, agent.Request{Prompt: "x"}, agent.Output{})
	if <-begun; !errors.Is(err, agent.ErrCanceled) || !b.isOver() {
		t.Errorf("%v, stopped %t", err, b.isOver())
	}
	p := part{rules: []rule{func(*trial, any, *place) { t.Error("a rule is tried after the stop") }}}
	if tried := p.apply(b, nil, nil, 1); (printer{strings.Clone, b}).list(tried, nil, 1) != nil {
		t.Error("violations are printed after the stop")
	}
}
