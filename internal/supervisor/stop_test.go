package supervisor

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/busdk/bus-agent/internal/process"
)

// holdVariable makes the test binary a process that ends when its standard input
// does.
const holdVariable = "SUPERVISOR_TEST_HOLD"

// heldBy makes another process the holder of a session, which ends when end is
// called.
func heldBy(t *testing.T, all *Sessions, e Entry, state string) (held Entry, end func()) {
	t.Helper()
	holder := exec.Command(os.Args[0])
	holder.Env = append(os.Environ(), holdVariable+"=1")
	stdin, err := holder.StdinPipe()
	if err == nil {
		err = holder.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	end = func() {
		stdin.Close()
		_ = holder.Wait() // again in the cleanup
	}
	t.Cleanup(end)
	e.PID, e.Stored = holder.Process.Pid, state
	if e.Supervisor, err = process.Identify(e.PID); err != nil {
		t.Fatal(err)
	}
	if err := all.Save(e); err != nil {
		t.Fatal(err)
	}
	if held, err = all.Load(e.ID); err != nil {
		t.Fatal(err)
	}
	return held, end
}

// answering is a socket of a session on which every call is answered with reply.
func answering(t *testing.T, all *Sessions, e Entry, reply func() string) {
	t.Helper()
	l, err := net.Listen("unix", all.socket(e.ID))
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	t.Cleanup(func() { l.Close(); <-served })
	go func() {
		defer close(served)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = bufio.NewReader(conn).ReadString('\n')
			_, _ = io.WriteString(conn, reply())
			conn.Close()
		}
	}()
}

// Whatever is known of the end of a session, what promises its end returns only
// when the process that held it has ended, or reports that it has not.
func TestEndOfTheHolderIsWaitedFor(t *testing.T) {
	t.Parallel()
	type ender func(*testing.T, *Sessions, Entry) error
	stop := func(t *testing.T, all *Sessions, e Entry) error { return all.Stop(t.Context(), e, "") }
	done := func() string { return fmt.Sprintf(`{"v":%d,"last":true}`+"\n", ProtocolVersion) }
	for name, c := range map[string]struct {
		state string
		reply func() string
		end   ender
	}{
		"stop":               {StateLive, done, stop},
		"stop of an ended":   {StateEnded, nil, stop},
		"stop, no answer":    {StateLive, func() string { return "" }, stop},
		"resume of an ended": {StateEnded, nil, func(t *testing.T, all *Sessions, e Entry) error { return all.Launch(t.Context(), e, Launch{}) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all, entry := newEntry(t)
			all.stopLimit = 50 * time.Millisecond // the holder ends when it is told, not before
			entry, end := heldBy(t, all, entry, c.state)
			if c.reply != nil {
				answering(t, all, entry, c.reply)
			}
			want := fmt.Sprintf(`session one: process %d, which holds it, has not ended within 50ms; end it with "kill -KILL %[1]d", then run "session stop %s" again`, entry.PID, entry.ID)
			if err := c.end(t, all, entry); err == nil || err.Error() != want {
				t.Errorf("%v, want %s", err, want)
			}
			end()
			all.stopLimit = 0
			if name == "resume of an ended" {
				if err := c.end(t, all, entry); err == nil || strings.Contains(err.Error(), "holds it") {
					t.Errorf("after its end: %v, want that nothing was started", err)
				}
				return
			}
			if err := c.end(t, all, entry); err != nil {
				t.Errorf("after its end: %v", err)
			}
			if now, err := all.Load(entry.ID); err != nil || now.State() != StateEnded {
				t.Errorf("%s, %v", now.State(), err)
			}
		})
	}
}

// A supervisor that crashes while it ends its session leaves one that is ended.
func TestCrashDuringStop(t *testing.T) {
	t.Parallel()
	all, entry := newEntry(t)
	entry, end := heldBy(t, all, entry, StateLive)
	answering(t, all, entry, func() string { end(); return "" })
	if err := all.Stop(t.Context(), entry, ""); err != nil {
		t.Error(err)
	}
	if now, err := all.Load(entry.ID); err != nil || now.State() != StateEnded || now.Reason != "crashed" {
		t.Errorf("%s for %q, %v", now.State(), now.Reason, err)
	}
}
