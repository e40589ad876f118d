package process

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// An executable that was just written may be open in a process that another
// goroutine has forked and that has not reached its exec.
func TestBusyExecutableIsTriedAgain(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile(executable())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "agent")
	if err := os.WriteFile(path, content, 0o700); err != nil {
		t.Fatal(err)
	}
	writer, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(5*time.Millisecond, func() { writer.Close() })
	if exit, err := Run(soon(t), Spec{Path: path, Args: fakeArgs(nil), Dir: "/"}); err != nil || exit != (Exit{}) {
		t.Errorf("got %+v, %v", exit, err)
	}
}
