package simulate

import "time"

// timer is a step at a virtual time. The step of a worker is dropped when the program of
// the worker has ended since, and put off while the worker is paused.
type timer struct {
	at     time.Duration
	seq    uint64 // order of timers with the same time
	worker *worker
	life   int
	run    func()
}

// timers is a heap in which each node has four children.
type timers []timer

func (t *timer) before(other *timer) bool {
	return t.at < other.at || t.at == other.at && t.seq < other.seq
}

func (q *timers) push(t timer) {
	*q = append(*q, t)
	list := *q
	i := len(list) - 1
	for i > 0 {
		parent := (i - 1) / 4
		if !t.before(&list[parent]) {
			break
		}
		list[i] = list[parent]
		i = parent
	}
	list[i] = t
}

func (q *timers) pop() timer {
	list := *q
	first, n := list[0], len(list)-1
	last := list[n]
	list[n] = timer{}
	list = list[:n]
	*q = list
	if n == 0 {
		return first
	}
	i := 0
	for {
		child := 4*i + 1
		if child >= n {
			break
		}
		least := child
		for c := child + 1; c < min(child+4, n); c++ {
			if list[c].before(&list[least]) {
				least = c
			}
		}
		if !list[least].before(&last) {
			break
		}
		list[i] = list[least]
		i = least
	}
	list[i] = last
	return first
}
