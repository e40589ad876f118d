// Package testwait waits in tests for what other goroutines and processes do. Tests that
// can run in a bubble of testing/synctest need none of it.
package testwait

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"
)

// Limit is how long a test waits before it fails. It ends tests that would hang, and is so
// long that no busy machine reaches it.
const Limit = 2 * time.Minute

const pause = 2 * time.Millisecond

// Until calls look until it reports true, and returns what it saw then. After Limit the
// test fails with what look saw last.
func Until[T any](t testing.TB, what string, look func() (seen T, ok bool)) T {
	t.Helper()
	var seen T
	if !Poll(func() (ok bool) { seen, ok = look(); return ok }) {
		t.Fatalf("%s: not after %v; seen last: %+v", what, Limit, seen)
	}
	return seen
}

// Poll is Until for stubs, which are processes without a test: it reports whether look
// reported true within Limit.
func Poll(look func() bool) bool {
	for deadline := time.Now().Add(Limit); !look(); time.Sleep(pause) {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}

// File waits for a file to exist and to have content, and returns the content. A writer
// that does not write at once renames a finished file to path.
func File(t testing.TB, path string) string {
	t.Helper()
	return Until(t, path, func() (text string, ok bool) {
		content, err := os.ReadFile(path)
		if err != nil {
			return fmt.Sprint(err), false
		}
		return string(content), len(content) > 0
	})
}

// Exists is File for stubs: it waits for a file of any length, and reports whether it
// exists.
func Exists(path string) bool {
	return Poll(func() bool {
		_, err := os.Lstat(path)
		return !errors.Is(err, os.ErrNotExist)
	})
}

// Receive returns the next value of a channel, or the zero value if it is closed. After
// Limit the test fails.
func Receive[T any](t testing.TB, what string, from <-chan T) T {
	t.Helper()
	limit := time.NewTimer(Limit)
	defer limit.Stop()
	select {
	case value := <-from:
		return value
	case <-limit.C:
		t.Fatalf("%s: nothing was sent after %v", what, Limit)
		panic("not reached")
	}
}
