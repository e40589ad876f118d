// Package testneed keeps tests from being skipped where all must run.
package testneed

import (
	"os"
	"runtime"
	"testing"
)

// Lacking ends a test that needs what this system lacks. On Linux, where every test must
// run, the test fails; elsewhere it is skipped.
func Lacking(t testing.TB, format string, args ...any) {
	t.Helper()
	if runtime.GOOS == "linux" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

// LackingAsRoot is Lacking for what Linux guarantees to root alone: the test of another
// user is skipped.
func LackingAsRoot(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skipf(format, args...)
	}
	Lacking(t, format, args...)
}
