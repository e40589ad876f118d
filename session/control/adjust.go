package control

import (
	"context"

	"github.com/busdk/bus-agent/agent"
)

// SetModel sets the model of the following turns, also for when the session is resumed. It
// returns session.ErrUnsupported if the runtime cannot change it during a session. This
// Manager must hold the session.
func (m *Manager) SetModel(ctx context.Context, handle SessionHandle, model string) error {
	h, err := m.need(handle)
	if err == nil {
		err = h.s.SetModel(ctx, model)
	}
	if err == nil {
		h.change(func(s *Settings) { s.Model = model })
	}
	return err
}

// SetAccess sets what the agent may do from now on, also when the session is resumed. It
// returns session.ErrUnsupported if the runtime cannot change it during a session. This
// Manager must hold the session.
func (m *Manager) SetAccess(ctx context.Context, handle SessionHandle, access agent.Access) error {
	h, err := m.need(handle)
	if err == nil {
		err = h.s.SetAccess(ctx, access)
	}
	if err == nil {
		h.change(func(s *Settings) { s.Access = access })
	}
	return err
}

// change changes the settings in the entry.
func (h *held) change(how func(*Settings)) {
	h.mu.Lock()
	how(&h.entry.Settings)
	h.mu.Unlock()
	h.signal()
}
