package session

import "github.com/busdk/bus-agent/agent"

// PID returns the ID of the agent's process, 0 where it is not known. It belongs
// to the agent until Done is closed.
func (s *Session) PID() int {
	if p, ok := s.process.(interface{ PID() int }); ok {
		return p.PID()
	}
	return 0
}

// Delivered returns a channel that is closed when the agent has got the message,
// before Done is. The turn of a message that it never gets ends without.
func (t *Turn) Delivered() <-chan struct{} { return t.delivered }

// delivered takes note that the agent has got the message of t; s.mu is held.
func (s *Session) delivered(t *Turn) {
	if !t.got {
		t.got = true
		close(t.delivered)
		s.tell(t, t.message)
	}
}

func (s *Session) tell(t *Turn, m Message) {
	if s.options.Delivered != nil {
		s.options.Delivered(t, m)
	}
}

// end ends a turn; s.mu is held.
func (s *Session) end(t *Turn, result agent.Result, err error) {
	t.end(s.runtime, result, err)
	if s.options.Over != nil {
		s.options.Over(t)
	}
}

// Ended returns a channel that is closed when all that the agent has said was read
// and every turn has ended. The agent may still be about to exit.
func (s *Session) Ended() <-chan struct{} { return s.closed }

// Err returns what was wrong with the end of the agent, nil while it runs or when
// it has ended as it should.
func (s *Session) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failure
}
