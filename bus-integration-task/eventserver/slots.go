package eventserver

import (
	"context"
	"sync"
	"time"
)

// Limits of the events that are in memory while they are published. A body can take up to
// Config.ReadTimeout to arrive, so no identity gets all slots.
const (
	maxBodies           = 64
	maxBodiesOfIdentity = 16
	slotWait            = 10 * time.Second
)

// slots are for the events that are being published.
type slots struct {
	all chan struct{}

	mu  sync.Mutex
	own map[string]*ownSlots // of the identities that publish
}

type ownSlots struct {
	taken chan struct{}
	users int // that have a slot or wait for one
}

func newSlots() *slots {
	return &slots{all: make(chan struct{}, maxBodies), own: map[string]*ownSlots{}}
}

// take waits for a slot of an identity until ctx is done. It reports false without one.
func (s *slots) take(ctx context.Context, identity string) (release func(), free bool) {
	s.mu.Lock()
	own := s.own[identity]
	if own == nil {
		own = &ownSlots{taken: make(chan struct{}, maxBodiesOfIdentity)}
		s.own[identity] = own
	}
	own.users++
	s.mu.Unlock()
	leave := func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if own.users--; own.users == 0 {
			delete(s.own, identity)
		}
	}
	select {
	case own.taken <- struct{}{}:
	case <-ctx.Done():
		leave()
		return nil, false
	}
	select {
	case s.all <- struct{}{}:
		return func() { <-s.all; <-own.taken; leave() }, true
	case <-ctx.Done():
		<-own.taken
		leave()
		return nil, false
	}
}
