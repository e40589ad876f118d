package control_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/process"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/control"
)

// heldBy makes another process, which ends when end is called, the holder of a
// session called one in a state.
func heldBy(t *testing.T, b *bench, state session.State) (e control.Entry, end func()) {
	t.Helper()
	holder := exec.Command(filepath.Join(b.bin, "holder"))
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
	e = control.Entry{SessionID: "0123abcd", Name: "one", NativeID: "n", Folder: "0123abcd", State: state, OwnerPID: holder.Process.Pid, OwnerEnds: true}
	if e.Owner, err = process.Identify(e.OwnerPID); err != nil {
		t.Fatal(err)
	}
	save(t, b.Store, e)
	if err := os.MkdirAll(b.Store.Folder(e), 0o700); err != nil {
		t.Fatal(err)
	}
	return e, end
}

// answering is a socket of a session on which every call is answered with reply.
func answering(t *testing.T, b *bench, e control.Entry, reply func() string) {
	t.Helper()
	_ = os.MkdirAll(filepath.Dir(b.Store.Socket(e)), 0o700) // which Listen checks
	l, err := control.Listen(b.Store.Socket(e))
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
			if _, err := bufio.NewReader(conn).ReadString('\n'); err == nil {
				_, _ = io.WriteString(conn, reply())
			}
			conn.Close()
		}
	}()
}

// clientForAnswers returns a client that lets the test answer for the process that
// holds a session.
func clientForAnswers(b *bench) *control.Client {
	c := &control.Client{Store: b.Store}
	c.AllowAnyPeer()
	return c
}

// A process that an agent has started takes over the socket of the session. It gets
// no call, and the session can be stopped all the same.
func TestSocketThatAnotherProcessHasTakenOver(t *testing.T) {
	t.Parallel()
	for name, reply := range map[string]func(t *testing.T) string{
		"it claims that all is done": func(*testing.T) string { return fmt.Sprintf(`{"v":%d,"last":true}`+"\n", control.ProtocolVersion) },
		"it never answers":           func(t *testing.T) string { <-t.Context().Done(); return "" },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			e, end := heldBy(t, b, session.StateReady)
			var calls atomic.Int32
			answering(t, b, e, func() string { calls.Add(1); return reply(t) })
			client := &control.Client{Store: b.Store}
			if _, err := client.Send(t.Context(), e, control.Message{Text: "a secret"}); !errors.Is(err, control.ErrUnreachable) ||
				!strings.Contains(err.Error(), fmt.Sprintf("another process listens at its socket: process %d", os.Getpid())) {
				t.Error(err)
			}
			if err := client.Stop(t.Context(), e, ""); !errors.Is(err, control.ErrUnreachable) {
				t.Error(err)
			}
			go end() // it ends by a signal, or like this
			if err := client.Terminate(t.Context(), e); err != nil {
				t.Error(err)
			}
			if now, err := b.Store.Get(e.SessionID); err != nil || now.State != session.StateStopped {
				t.Errorf("%s, %v", now.State, err)
			}
			if n := calls.Load(); n > 0 {
				t.Errorf("it got %d calls", n)
			}
		})
	}
}

// Whatever is known of the end of a session, what promises its end returns only
// when the process that held it has ended, or reports that it has not.
func TestEndOfTheHolderIsWaitedFor(t *testing.T) {
	t.Parallel()
	done := func() string { return fmt.Sprintf(`{"v":%d,"last":true}`+"\n", control.ProtocolVersion) }
	for name, c := range map[string]struct {
		state session.State
		reply func() string
	}{
		"stop":                {session.StateReady, done},
		"stop of a stopped":   {session.StateStopped, nil},
		"stop, no answer":     {session.StateReady, func() string { return "" }},
		"resume of a stopped": {session.StateStopped, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			e, end := heldBy(t, b, c.state)
			client := clientForAnswers(b)
			client.SetStopLimit(50 * time.Millisecond) // the holder ends on request, not before
			if c.reply != nil {
				answering(t, b, e, c.reply)
			}
			try := func() error {
				if strings.HasPrefix(name, "resume") {
					_, err := client.Resume(t.Context(), e, control.ResumeOptions{})
					return err
				}
				return client.Stop(t.Context(), e, "")
			}
			want := fmt.Sprintf(`session one: process %d, which holds it, has not ended within 50ms; end it with "kill -KILL %[1]d", then run "session stop %s" again`, e.OwnerPID, e.SessionID)
			if err := try(); err == nil || err.Error() != want {
				t.Errorf("%v, want %s", err, want)
			}
			end()
			client.SetStopLimit(0)
			err := try()
			if strings.HasPrefix(name, "resume") {
				if err == nil || strings.Contains(err.Error(), "holds it") {
					t.Errorf("after its end: %v, want that nothing was started", err)
				}
				return
			}
			if err != nil {
				t.Errorf("after its end: %v", err)
			}
			if now, err := b.Store.Get(e.SessionID); err != nil || now.State != session.StateStopped {
				t.Errorf("%s, %v", now.State, err)
			}
		})
	}
}

// A session that is ending is resumed after its end.
func TestResumeWaitsForTheEnd(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*control.Entry){
		"it is stopping":      func(e *control.Entry) {},
		"its agent has ended": func(e *control.Entry) { e.Process, _ = deadProcess(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			e, _ := heldBy(t, b, session.StateReady)
			change(&e)
			save(t, b.Store, e)
			state := session.StateReady
			if e.Process == "" {
				state = session.StateStopping
			}
			calls := 0
			answering(t, b, e, func() string {
				if calls++; calls == 3 { // it has ended, and nothing of it can be resumed
					now := e
					now.State, now.NativeID, now.OwnerEnds = session.StateCrashed, "", false
					save(t, b.Store, now)
				}
				return fmt.Sprintf(`{"v":%d,"last":true,"status":{"session_id":%q,"folder":%q,"state":%q,"process":%q}}`+"\n",
					control.ProtocolVersion, e.SessionID, e.Folder, state, e.Process)
			})
			if _, err := clientForAnswers(b).Resume(t.Context(), e, control.ResumeOptions{}); !errors.Is(err, control.ErrNotResumable) {
				t.Errorf("after %d calls: %v", calls, err)
			}
		})
	}
}

// A process that crashes while it ends its session leaves one that has stopped.
func TestCrashDuringStop(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e, end := heldBy(t, b, session.StateReady)
	answering(t, b, e, func() string { end(); return "" })
	if err := clientForAnswers(b).Stop(t.Context(), e, ""); err != nil {
		t.Error(err)
	}
	if now, err := b.Store.Get(e.SessionID); err != nil || now.State != session.StateStopped || now.Reason != "crashed" {
		t.Errorf("%s for %q, %v", now.State, now.Reason, err)
	}
}

// A session whose holder cannot be seen from here is left alone while that holds the
// lock: a container may share the folder.
func TestSessionElsewhere(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e := control.Entry{SessionID: "0123abcd", Name: "one", NativeID: "n", Folder: "0123abcd", State: session.StateReady, Owner: "other:1:2:3", Host: "other"}
	save(t, b.Store, e)
	if err := os.MkdirAll(b.Store.Folder(e), 0o700); err != nil {
		t.Fatal(err)
	}
	lock, err := os.OpenFile(b.Store.LockFile(e), os.O_CREATE|os.O_RDWR, 0o600)
	if err == nil {
		err = unix.Flock(int(lock.Fd()), unix.LOCK_EX)
	}
	if err != nil {
		t.Fatal(err)
	}
	answering(t, b, e, func() string { t.Error("it is called"); return "" })
	e, err = b.Store.Find("one")
	if err != nil || e.State != session.StateElsewhere || e.Served() {
		t.Errorf("%s, %v", e.State, err)
	}
	client := &control.Client{Store: b.Store}
	_, sendErr := client.Send(t.Context(), e, control.Message{Text: "hi"})
	_, resumeErr := client.Resume(t.Context(), e, control.ResumeOptions{})
	for what, err := range map[string]error{"send": sendErr, "stop": client.Stop(t.Context(), e, ""), "resume": resumeErr} {
		if err == nil || !strings.Contains(err.Error(), "elsewhere") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := b.Start(t.Context(), control.StartOptions{Name: "one", Settings: control.Settings{Runtime: "talker", Workdir: b.workdir}}); err == nil {
		t.Error("its name is taken by another one")
	}
	if _, err := os.Lstat(b.Store.Socket(e)); err != nil {
		t.Error(err)
	}
	// Explicitly, because a process that another test starts holds a copy of the
	// descriptor for a moment.
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_UN); err != nil {
		t.Fatal(err)
	}
	lock.Close()
	if e, err = b.Store.Find("one"); err != nil || e.State != session.StateCrashed {
		t.Errorf("without the lock: %s, %v", e.State, err)
	}
	if _, err := os.Lstat(b.Store.Socket(e)); err == nil {
		t.Error("the socket of a crashed one is left")
	}
}

// A session whose socket is gone is reported as ended, and no other session.
func TestSocketThatIsGone(t *testing.T) {
	t.Parallel()
	b, _, client, e := serve(t)
	if err := os.Remove(b.Store.Socket(e)); err != nil {
		t.Fatal(err)
	}
	const hint = `; "session stop one" ends it`
	_, err := client.Send(t.Context(), e, control.Message{Text: "hi"})
	if !errors.Is(err, control.ErrUnreachable) || !strings.HasPrefix(err.Error(), "session one cannot be reached: dial unix ") || !strings.HasSuffix(err.Error(), hint) {
		t.Error(err)
	}
	if st, err := client.Show(t.Context(), e); err != nil || st.State != session.StateUnreachable {
		t.Errorf("%s, %v", st.State, err)
	}
	if err := client.Stop(t.Context(), e, ""); !errors.Is(err, control.ErrUnreachable) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := client.Stop(ctx, e, ""); err == nil || errors.Is(err, control.ErrUnreachable) {
		t.Errorf("a stop that is canceled: %v", err)
	}
	e.State = session.StateStarting
	if err := client.Stop(t.Context(), e, ""); err == nil || errors.Is(err, control.ErrUnreachable) || strings.Contains(err.Error(), hint) {
		t.Errorf("before it listens: %v", err)
	}
}

// An agent that does not answer an interrupt keeps neither its caller for ever, nor
// others.
func TestInterruptHasALimit(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e, _ := heldBy(t, b, session.StateReady)
	l, err := control.Listen(b.Store.Socket(e))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client := clientForAnswers(b)
	const want = `session one: the agent did not respond to the interrupt; "session stop one" ends it`
	if _, err := client.Interrupt(t.Context(), e, 50*time.Millisecond); err == nil || err.Error() != want || errors.Is(err, agent.ErrTimeout) {
		t.Errorf("%v, want %s", err, want)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	if _, err := client.Interrupt(ctx, e, time.Hour); err == nil || strings.Contains(err.Error(), "respond") {
		t.Errorf("canceled: %v", err)
	}
}

// A program in the place of the socket that answers without end is given up.
func TestAnswerWithoutEnd(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e, _ := heldBy(t, b, session.StateReady)
	l, err := control.Listen(b.Store.Socket(e))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		for junk := make([]byte, 1<<20); err == nil; {
			_, err = conn.Write(junk)
		}
	}()
	client := clientForAnswers(b)
	if _, err := client.Send(t.Context(), e, control.Message{Text: "hi"}); err == nil || !strings.Contains(err.Error(), "a line of more than") {
		t.Error(err)
	}
}

// A session that a program with another version of the protocol holds cannot be
// called, and is ended by a signal.
func TestHolderOfAnotherVersion(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	e, end := heldBy(t, b, session.StateReady)
	answering(t, b, e, func() string {
		return `{"v":1,"failure":{"kind":"usage","text":"this session speaks version 1 of the protocol, not 2"},"last":true}` + "\n"
	})
	client := clientForAnswers(b)
	if _, err := client.Send(t.Context(), e, control.Message{Text: "hi"}); err == nil || !strings.Contains(err.Error(), "session one: this session speaks version 1") {
		t.Error(err)
	}
	if st, err := client.Show(t.Context(), e); err != nil || st.State != session.StateUnreachable {
		t.Errorf("%s, %v", st.State, err)
	}
	if err := client.Stop(t.Context(), e, ""); !errors.Is(err, control.ErrUnreachable) {
		t.Error(err)
	}
	go end() // it ends by a signal, or like this
	if err := client.Terminate(t.Context(), e); err != nil {
		t.Error(err)
	}
	if now, err := b.Store.Get(e.SessionID); err != nil || now.State != session.StateStopped {
		t.Errorf("%s, %v", now.State, err)
	}
}
