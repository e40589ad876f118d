package acpagent

import "time"

// SetTurnGrace replaces session.TurnGrace.
func (s *Server) SetTurnGrace(d time.Duration) { s.turnGrace = d }
