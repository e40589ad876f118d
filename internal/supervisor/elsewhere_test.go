package supervisor

import (
	"net"
	"os"
	"strings"
	"testing"
)

// A session whose supervisor cannot be seen from here is left alone as long as
// that holds the lock: a container may share the folder.
func TestSessionElsewhere(t *testing.T) {
	t.Parallel()
	all, entry := newEntry(t)
	entry.Stored, entry.Supervisor = StateLive, "other:1:2:3"
	if err := all.Save(entry); err != nil {
		t.Fatal(err)
	}
	lock, err := takeLock(all.lockFile(entry.ID))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Release()
	l, err := net.Listen("unix", all.socket(entry.ID))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()

	entry, err = all.Find("one")
	if err != nil || entry.State() != StateElsewhere || entry.Live() {
		t.Errorf("%s, %v", entry.State(), err)
	}
	_, _, sendErr := all.Send(t.Context(), entry, "hi", true, Watcher{})
	for what, err := range map[string]error{
		"send": sendErr, "stop": all.Stop(t.Context(), entry, ""), "resume": all.Launch(t.Context(), entry, Launch{}),
	} {
		if err == nil || !strings.Contains(err.Error(), "goes on elsewhere") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := all.Create(t.Context(), Entry{Name: "one"}); err == nil {
		t.Error("its name is taken by another one")
	}
	if _, err := os.Lstat(all.socket(entry.ID)); err != nil {
		t.Error(err)
	}
	lock.Release()
	if entry, err = all.Find("one"); err != nil || entry.State() != StateCrashed {
		t.Errorf("without the lock: %s, %v", entry.State(), err)
	}
	if _, err := os.Lstat(all.socket(entry.ID)); err == nil {
		t.Error("the socket of a crashed one is left")
	}
}
