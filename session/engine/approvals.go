package engine

import (
	"maps"
	"slices"
	"strconv"
	"sync"

	"github.com/busdk/bus-agent/agent"
)

// MaxApprovals bounds the approval requests that are open in [Approvals].
const MaxApprovals = 100

// maxBytes bounds what all open approval requests ask for.
const maxBytes = 32 << 20

// Approvals holds an agent's open approval requests and questions, for engines. It gives each
// request a new ID: agents reuse their IDs, and an answer to one request must never
// reach another. R is what the engine stores with a request. The zero value is empty.
// Its methods may be called concurrently.
type Approvals[R any] struct {
	mu   sync.Mutex
	last int
	size int
	open map[int]openApproval[R]
}

type openApproval[R any] struct {
	agentID string
	size    int
	kept    R
}

// Open opens the request with the agent's ID agentID, and returns the ID for
// [Sink.Event], which is short enough to type. The event says what is asked for. If denied
// is not empty, it is the reason why the engine must decline the request: too many or too
// large requests are open, or one with the same agentID is, so that an answer would be
// ambiguous. In the last case Open closes the earlier request too, and returns its ID and
// the value stored with it as id and other.
func (a *Approvals[R]) Open(agentID string, e *agent.Event, keep R) (id, denied string, other R) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if n, ok := a.find(agentID); ok {
		other = a.open[n].kept
		a.remove(n)
		return strconv.Itoa(n), "declined: the agent sent another approval request with the same ID", other
	}
	if len(a.open) >= MaxApprovals {
		return "", "declined: " + strconv.Itoa(MaxApprovals) + " approval requests are open already", other
	}
	size := sizeOf(e)
	if a.size+size > maxBytes {
		return "", "declined: it and the approval requests that are open have more than " + strconv.Itoa(maxBytes>>20) + " MiB", other
	}
	if a.open == nil {
		a.open = map[int]openApproval[R]{}
	}
	a.last++
	a.size += size
	a.open[a.last] = openApproval[R]{agentID, size, keep}
	return strconv.Itoa(a.last), "", other
}

// sizeOf returns about how many bytes a request has.
func sizeOf(e *agent.Event) int {
	n := len(e.Text)
	if e.Tool != nil {
		n += len(e.Tool.Input)
	}
	for _, q := range e.Questions {
		n += len(q.Text)
		for _, o := range q.Options {
			n += len(o.Label) + len(o.Description)
		}
	}
	return n
}

// remove closes the request n, if it is open. a.mu is held.
func (a *Approvals[R]) remove(n int) {
	a.size -= a.open[n].size
	delete(a.open, n)
}

func (a *Approvals[R]) find(agentID string) (int, bool) {
	for n, o := range a.open {
		if o.agentID == agentID {
			return n, true
		}
	}
	return 0, false
}

// Peek returns the value stored with the request with the given ID, returned by
// [Approvals.Open], and reports whether it is open.
func (a *Approvals[R]) Peek(id string) (kept R, ok bool) {
	n, err := strconv.Atoi(id)
	if err != nil {
		return kept, false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	o, ok := a.open[n]
	return o.kept, ok
}

// Take closes the request with the given ID, returned by [Approvals.Open], and
// reports whether it was open.
func (a *Approvals[R]) Take(id string) (kept R, ok bool) {
	n, err := strconv.Atoi(id)
	if err != nil {
		return kept, false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	o, ok := a.open[n]
	a.remove(n)
	return o.kept, ok
}

// Withdraw closes the request with the agent's ID agentID, and returns its ID
// from [Approvals.Open].
func (a *Approvals[R]) Withdraw(agentID string) (id string, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	n, ok := a.find(agentID)
	a.remove(n)
	return strconv.Itoa(n), ok
}

// Clear closes all requests and returns their IDs from [Approvals.Open] and what was stored
// with them, oldest first. The engine must answer them: an agent may still wait.
func (a *Approvals[R]) Clear() (ids []string, kept []R) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, n := range slices.Sorted(maps.Keys(a.open)) {
		ids, kept = append(ids, strconv.Itoa(n)), append(kept, a.open[n].kept)
	}
	clear(a.open)
	a.size = 0
	return ids, kept
}
