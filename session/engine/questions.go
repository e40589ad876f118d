package engine

import (
	"maps"
	"slices"
	"strconv"
	"sync"
)

// MaxQuestions is how many questions for permission can be open in [Questions].
const MaxQuestions = 100

// Asked is what [Questions.Open] makes of a question.
type Asked int

// The results of [Questions.Open]. The engine declines what is not new.
const (
	AskedNew Asked = iota // it is open now
	// AskedTwice: the agent has a question open under the same ID, so that an answer
	// could be taken for one to either. Neither is open now.
	AskedTwice
	AskedTooMany // MaxQuestions are open
)

// Denied returns the reason why a question was declined without asking the user,
// empty for one that is open.
func (a Asked) Denied() string {
	switch a {
	case AskedTwice:
		return "declined: the agent asked another question under the same ID"
	case AskedTooMany:
		return "declined: " + strconv.Itoa(MaxQuestions) + " questions are open already"
	}
	return ""
}

// Questions are the questions for permission that an agent has open, for engines.
// It gives each an ID of its own: agents use theirs again, and an answer to one
// question must never reach another one. Q is what the engine keeps of a question.
// The zero value is empty. Its methods may be called concurrently.
type Questions[Q any] struct {
	mu    sync.Mutex
	asked int
	open  map[int]openQuestion[Q]
}

type openQuestion[Q any] struct {
	agentID string
	kept    Q
}

// Open opens a question that the agent calls agentID. It returns the ID for
// [Approval], which a user can type. For one that is asked twice that is the ID of
// the question which was open, and other is what was kept of it.
func (q *Questions[Q]) Open(agentID string, keep Q) (id string, asked Asked, other Q) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for n, o := range q.open {
		if o.agentID == agentID {
			delete(q.open, n)
			return strconv.Itoa(n), AskedTwice, o.kept
		}
	}
	if len(q.open) >= MaxQuestions {
		return "", AskedTooMany, other
	}
	if q.open == nil {
		q.open = map[int]openQuestion[Q]{}
	}
	q.asked++
	q.open[q.asked] = openQuestion[Q]{agentID, keep}
	return strconv.Itoa(q.asked), AskedNew, other
}

// Take closes the question with an ID of [Questions.Open] and reports whether it
// was open.
func (q *Questions[Q]) Take(id string) (kept Q, ok bool) {
	n, err := strconv.Atoi(id)
	if err != nil {
		return kept, false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	o, ok := q.open[n]
	delete(q.open, n)
	return o.kept, ok
}

// Withdraw closes the question that the agent calls agentID, and returns its ID.
func (q *Questions[Q]) Withdraw(agentID string) (id string, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for n, o := range q.open {
		if o.agentID == agentID {
			delete(q.open, n)
			return strconv.Itoa(n), true
		}
	}
	return "", false
}

// Clear closes all questions and returns them, oldest first.
func (q *Questions[Q]) Clear() []Q {
	q.mu.Lock()
	defer q.mu.Unlock()
	var list []Q
	for _, n := range slices.Sorted(maps.Keys(q.open)) {
		list = append(list, q.open[n].kept)
	}
	clear(q.open)
	return list
}
