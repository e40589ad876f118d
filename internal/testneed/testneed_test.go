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

func TestLackingFailsInCI(t *testing.T) {
	linux, root := runtime.GOOS == "linux", os.Geteuid() == 0
	for _, ci := range []bool{false, true} {
		t.Setenv("CI", map[bool]string{true: "true"}[ci])
		var tool, program, disk end
		testneed.Lacking(&tool, "no %s", "tool")
		testneed.Program(&program, "no-such-program")
		testneed.LackingAsRoot(&disk, "no disk")
		if want := ci && linux; tool.failed != want || program.failed != want || tool.skipped == want || program.skipped == want {
			t.Errorf("CI %t: failed %t, skipped %t", ci, tool.failed, tool.skipped)
		}
		if want := ci && linux && root; disk.failed != want || disk.skipped == want {
			t.Errorf("CI %t, root: failed %t, skipped %t", ci, disk.failed, disk.skipped)
		}
	}
}
