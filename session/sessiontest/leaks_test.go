package sessiontest_test

import (
	"os"
	"os/signal"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/busdk/bus-agent/session/sessiontest"
)

func wait(end chan struct{}) { <-end }

func TestLeaks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // its time passes at once
		end := make(chan struct{})
		defer close(end)
		go wait(end) // not started by the call
		var ended sync.WaitGroup
		if left := sessiontest.Leaks(func() { ended.Go(func() {}) }); left != "" {
			t.Errorf("left is %s", left)
		}
		left := sessiontest.Leaks(func() { go func() { go wait(end) }() })
		if strings.Count(left, "sessiontest_test.wait") != 1 {
			t.Errorf("left is %q", left)
		}
		if left := sessiontest.Leaks(func() {}); left != "" {
			t.Errorf("of another call is left %s", left)
		}
	})
}

// The first wait for a signal, as in a fuzz test, starts a goroutine that never ends.
func TestWaitingForSignalsIsNotALeak(t *testing.T) {
	t.Parallel()
	if left := sessiontest.Leaks(func() {
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, os.Interrupt)
		signal.Stop(signals)
	}); left != "" {
		t.Errorf("left is %s", left)
	}
}
