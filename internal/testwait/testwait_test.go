package testwait_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/busdk/bus-agent/internal/testwait"
)

// failure is a test that records its failure instead of ending.
type failure struct {
	testing.TB
	text string
}

func (f *failure) Helper()                           {}
func (f *failure) Fatalf(format string, args ...any) { f.text = fmt.Sprintf(format, args...) }

func TestUntilReturnsWhatItSaw(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		seen := testwait.Until(t, "a second", func() (time.Duration, bool) {
			return time.Since(begun), time.Since(begun) >= time.Second
		})
		if seen < time.Second || seen > 2*time.Second {
			t.Errorf("saw %v", seen)
		}
	})
}

func TestUntilFailsWithWhatItSawLast(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var f failure
		calls := 0
		testwait.Until(&f, "the end", func() (int, bool) { calls++; return calls, false })
		if want := fmt.Sprintf("the end: not after 2m0s; seen last: %d", calls); f.text != want {
			t.Errorf("failed with %q, want %q", f.text, want)
		}
	})
}

func TestReceive(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := make(chan int)
		go func() { time.Sleep(time.Second); c <- 7 }()
		if got := testwait.Receive(t, "a number", c); got != 7 {
			t.Errorf("received %d", got)
		}
		var f failure
		func() {
			defer func() { recover() }()
			testwait.Receive(&f, "a number", c)
		}()
		if !strings.HasPrefix(f.text, "a number: nothing") {
			t.Errorf("failed with %q", f.text)
		}
	})
}

func TestFileWaitsForContent(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	go func() {
		os.WriteFile(path+".new", []byte("text"), 0o600)
		os.Rename(path+".new", path)
	}()
	if got := testwait.File(t, path); got != "text" || !testwait.Exists(path) {
		t.Errorf("file has %q", got)
	}
}
