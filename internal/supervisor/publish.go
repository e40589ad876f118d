package supervisor

import (
	"context"
	"os"

	"github.com/busdk/bus-agent/sessions"
)

// publish puts what is known of a session into the store of package sessions,
// where library users and other commands find it.
func (s *Sessions) publish(e Entry) error {
	host, _ := os.Hostname() // without it, only the boot tells
	return sessions.NewStore(s.Folder).Update(context.Background(), e.ID, func(known *sessions.Entry) error {
		known.NativeID, known.Runtime, known.WorkDir, known.Model = e.SessionID, e.Runtime, e.Workdir, e.Model
		known.Mode, known.Reason = sessions.ModeMinimal, e.Reason
		known.Owner, known.Host = e.Supervisor, host
		known.Created, known.Started, known.Ready, known.Ended = e.Ready, e.Started, e.Ready, e.Ended
		switch e.Stored {
		case StateStarting:
			known.State = sessions.StateStarting
		case StateLive:
			known.State = sessions.StateReady
		default:
			known.State = sessions.StateStopped
		}
		return nil
	})
}

// withdraw takes a session out of that store, which keeps those that go on.
func (s *Sessions) withdraw(id string) {
	if e, err := s.Load(id); err == nil {
		e.Stored = StateEnded
		_ = s.publish(e) // what stays is shown as crashed
	}
	_ = sessions.NewStore(s.Folder).Remove(context.Background(), id) // there may be none
}
