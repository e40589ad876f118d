package task

import (
	"hash/fnv"
	"math/rand/v2"
	"time"
)

// maxWindow bounds how far a worker spreads its claims.
const maxWindow = 1 << 12

// Contender orders the claims of one worker so that workers of the same recipient seldom
// try for the same task. Each refused claim doubles the window of tasks, and of time if
// tasks are few, over which the worker spreads its next claim; each claim that it wins
// narrows it again. So n workers that see one task cause a number of refused claims in the
// order of n once, not for every task. A lone worker claims the oldest task at once.
//
// It is deterministic: the same worker ID and the same outcomes give the same order. Use
// [NewContender]. A Contender must not be used by several goroutines at once.
type Contender struct {
	random *rand.Rand
	window int
}

// NewContender returns the order of claims of that worker.
func NewContender(workerID string) *Contender {
	h := fnv.New64a()
	h.Write([]byte(workerID))
	return &Contender{random: rand.New(rand.NewPCG(h.Sum64(), 1)), window: 1}
}

// Window returns the number of tasks, oldest first, among which Next chooses.
func (c *Contender) Window() int { return c.window }

// Next returns which of the tasks that could be claimed, oldest first, to try, and how long
// to wait before that. roundTrip is about the time from a claim to its receipt by other
// workers. After the wait the worker decides again, because another may have claimed the
// task. With available below 1 the index is 0.
func (c *Contender) Next(available int, roundTrip time.Duration) (index int, wait time.Duration) {
	slot := c.random.IntN(c.window)
	available = max(available, 1)
	return slot % available, time.Duration(slot/available) * roundTrip
}

// Won records that a claim was valid.
func (c *Contender) Won() { c.window = max(1, c.window-(c.window+15)/16) }

// Lost records that a claim was refused.
func (c *Contender) Lost() { c.window = min(maxWindow, c.window*2) }
