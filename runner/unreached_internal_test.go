package runner

import (
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/busdk/bus-agent/agent"
)

func TestRetries(t *testing.T) {
	t.Parallel()
	const limit, first = unreachedDelay, unansweredDelay
	begin := (*retries).begin
	const silent = "alpha has had no answer from its model for 25s; check the network or the provider, or wait"
	retry := func(reason string) func(*retries) {
		return func(r *retries) { r.note(&agent.Event{Kind: agent.KindRetry, Text: reason}) }
	}
	event := func(kind agent.Kind) func(*retries) {
		return func(r *retries) { r.note(&agent.Event{Kind: kind}) }
	}
	wait := func(d time.Duration) func(*retries) {
		return func(*retries) { time.Sleep(d); synctest.Wait() }
	}
	var busy, idle atomic.Bool
	set := func(to *atomic.Bool, value bool) func(*retries) { return func(*retries) { to.Store(value) } }
	for name, c := range map[string]struct {
		steps []func(*retries)
		want  []string // reasons
	}{
		"the first repetition counts":    {[]func(*retries){retry("a"), wait(limit - 1), retry("b"), wait(1)}, []string{"b"}},
		"not before the limit":           {[]func(*retries){retry("a"), wait(limit - 1)}, nil},
		"once in a turn":                 {[]func(*retries){retry("a"), wait(limit), event(agent.KindText), retry("b"), wait(limit)}, []string{"a"}},
		"again in the next turn":         {[]func(*retries){retry("a"), wait(limit), event(agent.KindResult), retry("b"), wait(limit)}, []string{"a", "b"}},
		"not after text":                 {[]func(*retries){retry("a"), event(agent.KindText), wait(limit)}, nil},
		"not after an approval request":  {[]func(*retries){retry("a"), event(agent.KindApproval), wait(limit)}, nil},
		"not after the result":           {[]func(*retries){retry("a"), event(agent.KindResult), wait(limit)}, nil},
		"a heartbeat is not an answer":   {[]func(*retries){retry("a"), event(agent.KindHeartbeat), wait(limit)}, []string{"a"}},
		"an answer starts the time anew": {[]func(*retries){retry("a"), wait(limit - 1), event(agent.KindText), retry("b"), wait(limit - 1)}, nil},
		"not while output is passed on":  {[]func(*retries){retry("a"), set(&busy, true), wait(2 * limit), event(agent.KindText), set(&busy, false), wait(limit)}, nil},
		"when output was passed on":      {[]func(*retries){retry("a"), set(&busy, true), wait(2 * limit), set(&busy, false), wait(busyCheck)}, []string{"a"}},
		"not without a turn":             {[]func(*retries){set(&idle, true), retry("a"), wait(limit)}, nil},
		"a first request without answer": {[]func(*retries){begin, event(agent.KindSessionStarted), event(agent.KindHeartbeat), wait(first)}, []string{silent}},
		"not before its limit":           {[]func(*retries){begin, wait(first - 1)}, nil},
		"not for an answered request":    {[]func(*retries){begin, event(agent.KindText), wait(2 * first)}, nil},
		"not for a message to a turn":    {[]func(*retries){begin, event(agent.KindToolCall), begin, wait(2 * first)}, nil},
		"in each turn":                   {[]func(*retries){begin, wait(first), event(agent.KindResult), begin, wait(first)}, []string{silent, silent}},
		"a repetition at the limit":      {[]func(*retries){begin, wait(first - 1), retry("a"), wait(limit)}, []string{"a"}},
		"only once":                      {[]func(*retries){begin, retry("a"), wait(2 * first)}, []string{"a"}},
		"no request after the end":       {[]func(*retries){begin, (*retries).close, begin, wait(first)}, nil},
		"not after the end":              {[]func(*retries){retry("a"), (*retries).close, retry("b"), wait(limit)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				busy.Store(false)
				idle.Store(false)
				var got []string
				p := &prepared{unreached: limit, unanswered: first, purpose: forSession, warn: func(line string) { got = append(got, line) }}
				p.req.Runtime = "alpha"
				r := &retries{of: p, busy: busy.Load, active: func() bool { return !idle.Load() }}
				for _, step := range c.steps {
					step(r)
				}
				r.close()
				var want []string
				for _, reason := range c.want {
					if reason == silent {
						want = append(want, silent)
						continue
					}
					want = append(want, "alpha gets no answer from its model ("+reason+"); it keeps trying until the turn is interrupted")
				}
				if !slices.Equal(got, want) {
					t.Errorf("warnings %q, want %q", got, want)
				}
			})
		})
	}
}
