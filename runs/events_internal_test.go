package runs

import (
	"errors"
	"os"
	"syscall"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/testneed"
)

// A failed flush of the timer is reported once, at the next event.
func TestRequiredRecordReportsAFailedFlush(t *testing.T) {
	t.Parallel()
	for _, required := range []bool{true, false} {
		full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		if err != nil {
			testneed.Lacking(t, "no /dev/full: %v", err)
		}
		r := &record{store: &Records{Required: required}}
		r.events = &eventFile{file: full}
		r.events.timer = newStoppedTimer(r.events.flush)
		first := r.event(&agent.Event{Kind: agent.KindText, Text: "x"})
		r.events.flush() // as the timer does
		second, third := r.event(&agent.Event{Kind: agent.KindText}), r.event(&agent.Event{Kind: agent.KindText})
		if first != nil || errors.Is(second, syscall.ENOSPC) != required || third != nil || !errors.Is(r.problem, syscall.ENOSPC) {
			t.Errorf("required %t: %v, %v, %v; %v", required, first, second, third, r.problem)
		}
		full.Close()
	}
}
