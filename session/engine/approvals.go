package engine

import (
	"maps"
	"slices"
	"strconv"
	"sync"
)

// MaxApprovals is how many approval requests can be open in [Approvals].
const MaxApprovals = 100

// Approvals are the approval requests that an agent has open, for engines. It gives
// each an ID of its own: agents use theirs again, and an answer to one request must
// never reach another one. R is what the engine keeps of a request. The zero value is
// empty. Its methods may be called concurrently.
type Approvals[R any] struct {
	mu   sync.Mutex
	last int
	open map[int]openApproval[R]
}

type openApproval[R any] struct {
	agentID string
	kept    R
}

// Open opens the request that the agent calls agentID, and returns the ID for
// [Sink.Event], which a user can type. Otherwise denied is the reason, and the engine
// declines the request: too many are open, or one with the same agentID, so that an
// answer could be taken for one to either. The latter is closed as well: id is its
// ID and other what was kept of it.
func (a *Approvals[R]) Open(agentID string, keep R) (id, denied string, other R) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if n, ok := a.find(agentID); ok {
		other = a.open[n].kept
		delete(a.open, n)
		return strconv.Itoa(n), "declined: the agent sent another approval request with the same ID", other
	}
	if len(a.open) >= MaxApprovals {
		return "", "declined: " + strconv.Itoa(MaxApprovals) + " approval requests are open already", other
	}
	if a.open == nil {
		a.open = map[int]openApproval[R]{}
	}
	a.last++
	a.open[a.last] = openApproval[R]{agentID, keep}
	return strconv.Itoa(a.last), "", other
}

func (a *Approvals[R]) find(agentID string) (int, bool) {
	for n, o := range a.open {
		if o.agentID == agentID {
			return n, true
		}
	}
	return 0, false
}

// Take closes the request with an ID of [Approvals.Open] and reports whether it was
// open.
func (a *Approvals[R]) Take(id string) (kept R, ok bool) {
	n, err := strconv.Atoi(id)
	if err != nil {
		return kept, false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	o, ok := a.open[n]
	delete(a.open, n)
	return o.kept, ok
}

// Withdraw closes the request that the agent calls agentID, and returns its ID.
func (a *Approvals[R]) Withdraw(agentID string) (id string, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	n, ok := a.find(agentID)
	delete(a.open, n)
	return strconv.Itoa(n), ok
}

// Clear closes all requests and returns them, oldest first.
func (a *Approvals[R]) Clear() []R {
	a.mu.Lock()
	defer a.mu.Unlock()
	var list []R
	for _, n := range slices.Sorted(maps.Keys(a.open)) {
		list = append(list, a.open[n].kept)
	}
	clear(a.open)
	return list
}
