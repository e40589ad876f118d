package testneed_test

import (
	"os"
	"runtime"
	"testing"

	"github.com/busdk/bus-agent/internal/testneed"
)

// end is how a test ended first.
type end struct {
	testing.TB
	failed, skipped bool
}

func (e *end) Helper()               {}
func (e *end) Fatalf(string, ...any) { e.failed = !e.skipped }
func (e *end) Skipf(string, ...any)  { e.skipped = !e.failed }

func TestLackingFailsOnLinux(t *testing.T) {
	t.Parallel()
	linux, root := runtime.GOOS == "linux", os.Geteuid() == 0
	var e end
	testneed.Lacking(&e, "no %s", "tool")
	if e.failed != linux || e.skipped == linux {
		t.Errorf("failed %t, skipped %t", e.failed, e.skipped)
	}
	e = end{}
	testneed.LackingAsRoot(&e, "no disk")
	if want := linux && root; e.failed != want || e.skipped == want {
		t.Errorf("for root: failed %t, skipped %t", e.failed, e.skipped)
	}
}
