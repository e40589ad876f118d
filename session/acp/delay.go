package acp

import (
	"context"
	"time"
)

// waitToLoad waits until a session may be loaded.
func (e *Engine) waitToLoad(ctx context.Context, created time.Time) error {
	if e.LoadDelay == nil {
		return nil
	}
	if created.IsZero() {
		created = time.Now() // it may have been
	}
	// Agents go by the clock on the wall, which a timer does not.
	for {
		d := e.LoadDelay(created.Round(0), time.Now().Round(0))
		if d <= 0 {
			return nil
		}
		timer := time.NewTimer(d)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
	}
}
