//go:build linux || darwin

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session"
)

// sessions measures many sessions at once and how long a message takes, for each
// protocol.
func (b *bench) sessions() error {
	for _, p := range protocols {
		if err := b.sessionsAtOnce(p); err != nil {
			return fmt.Errorf("sessions, %s: %w", p.name, err)
		}
	}
	for _, p := range protocols {
		if err := b.messages(p); err != nil {
			return fmt.Errorf("messages, %s: %w", p.name, err)
		}
	}
	return nil
}

// linear is how much more a session may cost among ten times as many.
const linear = 1.25

// sessionsAtOnce compares what a session costs among many with what it costs
// among a tenth of them. All are open at the same time, and have answered a
// message, when the memory is measured.
func (b *bench) sessionsAtOnce(p protocol) error {
	many := b.agents / 5
	few := many / 10
	j := job{Protocol: p.name, Agents: many}
	tenth := job{Protocol: p.name, Agents: few}
	costs, err := inTurn(b.rounds, 0, b.inChild(2, tenth.as(talkMany)), b.inChild(2, j.as(talkMany)), b.inChild(2, j.as(talkRaw)))
	if err != nil {
		return err
	}
	each := func(costs []cost, n int, of func(cost) time.Duration) float64 {
		return ms(median(costs, of)) / float64(n)
	}
	tenthTime, time := each(costs[0], few, wall), each(costs[1], many, wall)
	b.table.add(row{
		work:   fmt.Sprintf("%d sessions at once, %s: open, one turn, stop", many, p.name),
		figure: fmt.Sprintf("%.2f ms each, %.2f of processor", time, each(costs[1], many, cpu)),
		limit:  fmt.Sprintf("%d at once %.2f ms; raw os/exec %.2f ms", few, tenthTime, each(costs[2], many, wall)),
		ratio:  times(time / tenthTime), target: fmt.Sprintf("linear: ≤ %.2f ×", linear), met: time <= linear*tenthTime,
	})
	heap := func(c cost) int64 { return c.Heap }
	tenthHeap, heapEach := float64(median(costs[0], heap))/float64(few)/1024, float64(median(costs[1], heap))/float64(many)/1024
	b.table.add(row{
		work:   "heap and stacks in use a session, all open",
		figure: fmt.Sprintf("%.1f KiB (%s resident in all)", heapEach, mebibytes(median(costs[1], peak))),
		limit:  fmt.Sprintf("%d at once %.1f KiB", few, tenthHeap),
		ratio:  times(heapEach / tenthHeap), target: fmt.Sprintf("linear: ≤ %.2f ×", linear), met: heapEach <= linear*tenthHeap,
	})
	return nil
}

// talkMany holds sessions at once, each with one turn.
func (j job) talkMany() (got cost, err error) {
	p, err := protocolOf(j.Protocol)
	if err != nil {
		return got, err
	}
	b := &bench{dir: j.Dir, work: j.Work}
	return j.atOnce(func() (func() error, error) {
		s, err := p.open(b, session.Options{Events: func(*agent.Event) error { return nil }})
		if err != nil {
			return nil, err
		}
		result, err := s.Send(session.Message{Text: prompt}).Wait(context.Background())
		if err == nil && result.Text != "hello" {
			err = fmt.Errorf("the stub said %q", result.Text)
		}
		return func() error { s.Stop(context.Background(), ""); return s.Err() }, err
	})
}

// talkRaw is the limit: the same with os/exec.
func (j job) talkRaw() (got cost, err error) {
	p, err := protocolOf(j.Protocol)
	if err != nil {
		return got, err
	}
	return j.atOnce(func() (func() error, error) {
		r, err := p.raw(j.stub(), j.Work)
		if err != nil {
			return nil, err
		}
		if err := r.say(p.message); err != nil {
			return nil, err
		}
		return r.close, r.until(p.end)
	})
}

// atOnce begins all conversations at the same time, measures the memory when all
// have begun, and ends them at the same time. The first one of all, which finds
// nothing ready, is not measured.
func (j job) atOnce(begin func() (end func() error, err error)) (got cost, err error) {
	end, err := begin()
	if err == nil {
		err = end()
	}
	if err != nil {
		return got, err
	}
	before := inUse()
	ends := make([]func() error, j.Agents)
	all := func(do func(i int) error) (wall, cpu time.Duration, err error) {
		errs := make([]error, j.Agents)
		return clock(func() error {
			var done sync.WaitGroup
			for i := range j.Agents {
				done.Go(func() { errs[i] = do(i) })
			}
			done.Wait()
			return errors.Join(errs...)
		})
	}
	begun, begunCPU, err := all(func(i int) (err error) { ends[i], err = begin(); return err })
	if err != nil {
		return got, err
	}
	got.Heap = inUse() - before
	ended, endedCPU, err := all(func(i int) error { return ends[i]() })
	got.Wall, got.CPU = begun+ended, begunCPU+endedCPU
	return got, err
}

// messages compares the time from a message to the first event of its answer with
// that of writing the same bytes to the agent and reading its line. Both agents
// run all the time.
func (b *bench) messages(p protocol) error {
	var first time.Time
	s, err := p.open(b, session.Options{Events: func(e *agent.Event) error {
		if e.Kind == agent.KindText {
			first = time.Now()
		}
		return nil
	}})
	if err != nil {
		return err
	}
	defer s.Stop(context.Background(), "")
	raw, err := p.raw((job{Dir: b.dir}).stub(), b.work)
	if err != nil {
		return err
	}
	costs, err := inTurn(b.starts, warmUpStarts, func() (time.Duration, error) {
		begun := time.Now()
		if err := raw.say(p.message); err != nil {
			return 0, err
		}
		if err := raw.until(hello); err != nil {
			return 0, err
		}
		return time.Since(begun), raw.until(p.end)
	}, func() (time.Duration, error) {
		begun := time.Now()
		_, err := s.Send(session.Message{Text: prompt}).Wait(context.Background())
		return first.Sub(begun), err
	})
	if err != nil {
		return err
	}
	if err := raw.close(); err != nil {
		return err
	}
	limit, got := median(costs[0], itself), median(costs[1], itself)
	b.table.add(row{
		work:   fmt.Sprintf("message to first event, %s, %d messages", p.name, b.starts),
		figure: fmt.Sprintf("%s (min %.3f)", milliseconds(got), ms(slices.Min(costs[1]))),
		limit:  fmt.Sprintf("raw pipe %s (min %.3f)", milliseconds(limit), ms(slices.Min(costs[0]))),
		ratio:  fmt.Sprintf("%s, %+.3f ms", times(float64(got)/float64(limit)), ms(got-limit)),
		target: "≤ 1 ms more", met: got-limit <= time.Millisecond,
	})
	return nil
}
