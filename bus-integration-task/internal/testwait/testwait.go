// Package testwait waits in tests for what other goroutines and processes do. Tests that
// can run in a bubble of testing/synctest need none of it.
package testwait

import (
	"os"
	"testing"
	"time"
)

// Limit is how long a test waits before it fails. It ends tests that would hang, and is so
// long that no busy machine reaches it.
const Limit = 2 * time.Minute

// Until calls look until it reports true, and returns what it saw then. After Limit the
// test fails with what look saw last.
func Until[T any](t testing.TB, what string, look func() (seen T, ok bool)) T {
	t.Helper()
	for deadline := time.Now().Add(Limit); ; time.Sleep(2 * time.Millisecond) {
		seen, ok := look()
		if ok {
			return seen
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: not after %v; seen last: %+v", what, Limit, seen)
		}
	}
}

// Exists waits for a file.
func Exists(t testing.TB, path string) {
	t.Helper()
	Until(t, path, func() (error, bool) {
		_, err := os.Stat(path)
		return err, err == nil
	})
}
