package task

import (
	"math/bits"
	"math/rand/v2"
	"time"
)

const (
	// headStart is how many round trips after a task is known the first of many workers
	// usually claims it. It covers the error of the estimate of their number.
	headStart = 2
	maxSpread = 20
	backOff   = 4  // of a refused claim
	period    = 16 // own claims after which the estimate is made anew
)

// Contender spreads the claims of the workers of one recipient, so that about one of all
// that see a task claims it, however many they are. It is the one rule for this; the server
// decides who wins.
//
// For each task, half of the workers wait for the longest time, a quarter for one round
// trip less, an eighth for two less, and so on, in another order for each task. So few
// are first, and the others see their claim and stop. The longest time grows with the
// logarithm of the number of workers, which a worker estimates from the claims in the log:
// of n random worker IDs, the hash of one begins with about log2(n) zero bits. A refused
// claim makes the time longer until a claim is valid.
//
// A worker that knows of no other worker claims the oldest task at once; so does one that
// has claimed 32 tasks since it saw the latest claim of another. A task waits for a worker
// for at most 20 round trips. Of the tasks that no longer wait a worker chooses at random
// among as many of the oldest as it estimates workers, so every task is claimed.
//
// It is deterministic: the same worker ID and the same calls give the same results. Use
// [NewContender]. A Contender must not be used by several goroutines at once.
type Contender struct {
	id     string
	hash   uint64
	random *rand.Rand
	known  int // about the binary logarithm of the number of workers
	recent int // the same, of those seen in this period
	extra  int // for the claims refused since the latest valid one
	won    int // claims in this period
}

// NewContender returns the rule for the claims of that worker.
func NewContender(workerID string) *Contender {
	hash := mix(workerID, 0)
	return &Contender{id: workerID, hash: hash, random: rand.New(rand.NewPCG(hash, 1))}
}

// Saw records a claim for a task of the recipient, by any worker.
func (c *Contender) Saw(workerID string) {
	if workerID != c.id {
		c.recent = max(c.recent, bits.LeadingZeros64(mix(workerID, 0))+headStart)
		c.known = max(c.known, c.recent)
	}
}

// Wait returns how long to wait before a task is claimed or superseded, from the receipt
// of its latest event, or from the end of the lease. lastID is that event. roundTrip is about
// the time from a claim to its receipt by the other workers.
func (c *Contender) Wait(lastID string, roundTrip time.Duration) time.Duration {
	spread := c.spread()
	if spread == 0 {
		return 0
	}
	return time.Duration(max(spread-bits.LeadingZeros64(mix(lastID, c.hash)), 0)) * roundTrip
}

// Choose returns which to claim of that many tasks whose wait is over, oldest first.
func (c *Contender) Choose(tasks int) int {
	return c.random.IntN(max(min(tasks, 1<<c.spread()), 1))
}

// Won records that a claim was valid.
func (c *Contender) Won() {
	c.extra = 0
	if c.won++; c.won == period {
		c.known, c.recent, c.won = c.recent, 0, 0
	}
}

// Lost records that a claim was refused.
func (c *Contender) Lost() { c.extra = min(c.extra+backOff, maxSpread) }

func (c *Contender) spread() int { return min(c.known+c.extra, maxSpread) }

// mix is a hash with all bits random: FNV-1a, finished as MurmurHash3 does.
func mix(text string, seed uint64) uint64 {
	h := seed ^ 14695981039346656037
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * 1099511628211
	}
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}
