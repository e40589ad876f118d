package task

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

func TestLoneWorkerClaimsAtOnce(t *testing.T) {
	t.Parallel()
	c := NewContender("w1")
	for n := range 100 {
		c.Saw("w1") // its own claim
		if wait, i := c.Wait(eventID(n), time.Second), c.Choose(100); wait != 0 || i != 0 {
			t.Fatalf("task %d: waits %s and chooses %d", n, wait, i)
		}
	}
	for n := range 10_000 {
		c.Saw(fmt.Sprintf("other-%d", n))
	}
	c.Lost()
	if wait := c.Wait(eventID(1), time.Second); wait == 0 || c.Choose(1<<30) == 0 {
		t.Errorf("of 10,000 workers: waits %s", wait)
	}
	for range 2 * period {
		c.Won()
	}
	if wait, i := c.Wait(eventID(1), time.Second), c.Choose(100); wait != 0 || i != 0 {
		t.Errorf("when the others are gone: waits %s and chooses %d", wait, i)
	}
}

// race lets idle workers contend for tasks that are opened at once, in steps of a round
// trip, and returns the refused claims, the steps and the winners.
func race(workers []*Contender, first, tasks int) (refused, steps int, winners []*Contender) {
	type offer struct {
		id    string
		ready [][]*Contender // by step
		by    *Contender
	}
	open := make([]*offer, tasks)
	for i := range open {
		o := &offer{id: eventID(first + i), ready: make([][]*Contender, maxSpread+1)}
		for _, w := range workers {
			wait := w.Wait(o.id, 1)
			o.ready[wait] = append(o.ready[wait], w)
		}
		open[i] = o
	}
	busy := map[*Contender]bool{}
	for ; len(open) > 0 && len(busy) < len(workers); steps++ {
		ready, order := map[*Contender][]*offer{}, []*Contender(nil)
		for _, o := range open {
			for _, list := range o.ready[:min(steps, maxSpread)+1] {
				for _, w := range list {
					if ready[w] == nil {
						order = append(order, w)
					}
					ready[w] = append(ready[w], o)
				}
			}
		}
		for _, w := range order {
			if busy[w] {
				continue
			}
			if o := ready[w][w.Choose(len(ready[w]))]; o.by == nil {
				o.by, busy[w] = w, true
				w.Won()
				winners = append(winners, w)
			} else {
				refused++
				w.Lost()
			}
		}
		open = slices.DeleteFunc(open, func(o *offer) bool {
			if o.by != nil {
				for _, w := range workers {
					w.Saw(o.by.id)
				}
			}
			return o.by != nil
		})
	}
	return refused, steps, winners
}

func contenders(n int) (list []*Contender) {
	for i := range n {
		list = append(list, NewContender(fmt.Sprintf("worker-%d", i)))
	}
	return list
}

// shift opens tasks one after the other. Who claims one is busy for a time in which half as
// many tasks are opened as there are workers.
func shift(workers []*Contender, first, tasks int) (refused, steps int, won map[*Contender]int) {
	won = map[*Contender]int{}
	idle, busy := slices.Clone(workers), []*Contender(nil)
	for i := range tasks {
		r, s, winners := race(idle, first+i, 1)
		refused, steps = refused+r, steps+s
		for _, w := range busy {
			w.Saw(winners[0].id)
		}
		won[winners[0]]++
		i := slices.Index(idle, winners[0])
		idle = append(idle[:i], idle[i+1:]...)
		if busy = append(busy, winners[0]); len(busy) > len(workers)/2 {
			idle, busy = append(idle, busy[0]), busy[1:]
		}
	}
	return refused, steps, won
}

func TestFewClaimsAreRefused(t *testing.T) {
	t.Parallel()
	for _, n := range []int{2, 10, 100, 1_000} {
		workers := contenders(n)
		const tasks = 200
		learning, _, _ := shift(workers, 0, tasks)
		refused, steps, _ := shift(workers, tasks, tasks)
		t.Logf("%d workers: %d refused at first, then %.2f a claim in %.1f round trips", n, learning, float64(refused)/tasks, float64(steps)/tasks)
		if learning > 3*n+2*tasks || refused > 2*tasks || steps > 8*tasks {
			t.Errorf("%d workers: %d refused for %d tasks at first, then %d in %d round trips", n, learning, tasks, refused, steps)
		}
		// Half as many tasks at once, as after a restart of the server.
		if refused, steps, _ := race(workers, 1_000, n/2); refused > 2*n || steps > 2*maxSpread {
			t.Errorf("%d workers, %d tasks: %d refused in %d round trips", n, n/2, refused, steps)
		}
	}
}

func TestNoWorkerStarves(t *testing.T) {
	t.Parallel()
	workers := contenders(20)
	_, _, won := shift(workers, 0, 2_000)
	for _, w := range workers {
		if won[w] < 20 {
			t.Errorf("%s claimed %d of 2,000 tasks", w.id, won[w])
		}
	}
}

// In a backlog that never ends, a worker claims tasks that wait longest.
func TestNoTaskStarves(t *testing.T) {
	t.Parallel()
	for others := range 10 {
		c := NewContender("w")
		for n := range others {
			c.Saw(fmt.Sprint(n))
		}
		queue, longest := make([]int, 1000), 0
		for n := range 10_000 {
			i := c.Choose(len(queue))
			longest = max(longest, n-queue[i])
			copy(queue[i:], queue[i+1:])
			queue[len(queue)-1] = n
		}
		if longest > len(queue)+20<<c.spread() {
			t.Errorf("%d others: a task was passed over %d times", others, longest)
		}
	}
}
