package supervisor

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/process"
	"github.com/busdk/bus-agent/session/sessiontest"
)

// dialVariable makes the test binary a client of the socket that it names.
const dialVariable = "SUPERVISOR_TEST_DIAL"

func TestMain(m *testing.M) {
	if path := os.Getenv(dialVariable); path != "" {
		os.Exit(dial(path))
	}
	if os.Getenv(holdVariable) != "" {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}
	code := 0
	if left := sessiontest.Leaks(func() { code = m.Run() }); left != "" {
		fmt.Fprintf(os.Stderr, "goroutines are left:\n%s\n", left)
		code = 1
	}
	os.Exit(code)
}

// dial says "connected" and what it is answered.
func dial(path string) int {
	conn, err := net.Dial("unix", path)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Print("connected ")
	answer, _ := ask(conn, `{"v":1,"op":"show"}`)
	os.Stdout.Write(answer)
	return 0
}

// ask sends a call and returns all that is answered.
func ask(conn net.Conn, call string) ([]byte, error) {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.WriteString(conn, call+"\n"); err != nil {
		return nil, err
	}
	return io.ReadAll(conn)
}

// A process of another user gets no answer, even where it can connect.
func TestPeersOfOtherUsersAreRefused(t *testing.T) {
	t.Parallel()
	all, entry := newEntry(t)
	var refused atomic.Int32
	entry = serve(t, Options{Sessions: all, Entry: entry, Open: openEcho, peer: func(net.Conn) bool { refused.Add(1); return false }})
	conn, err := net.Dial("unix", all.socket(entry.ID))
	if err != nil {
		t.Fatal(err)
	}
	if answer, _ := ask(conn, `{"v":1,"op":"show"}`); len(answer) > 0 || refused.Load() != 1 {
		t.Errorf("%d asked, %s", refused.Load(), answer)
	}
}

func TestOtherUsersAreRefused(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can be another user; TestPeersOfOtherUsersAreRefused is what there is")
	}
	dir, err := os.MkdirTemp("/tmp", "supervisor-test-") // where others get to
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	all := &Sessions{Folder: filepath.Join(dir, "s")}
	entry, err := all.Create(t.Context(), Entry{Workdir: "/"})
	if err != nil {
		t.Fatal(err)
	}
	entry = serve(t, Options{Sessions: all, Entry: entry, Open: openEcho})
	socket := all.socket(entry.ID)
	program := filepath.Join(dir, "client")
	copySelf(t, program)
	for path, mode := range map[string]os.FileMode{dir: 0o711, all.Folder: 0o711, all.folder(entry.ID): 0o711, socket: 0o666} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	for uid, want := range map[uint32]string{0: `"state":"ready"`, 65534: ""} {
		cmd := exec.CommandContext(t.Context(), program)
		cmd.Dir, cmd.Env = "/", []string{dialVariable + "=" + socket, "GORACE=atexit_sleep_ms=0"}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		out, err := cmd.CombinedOutput()
		answer, ok := strings.CutPrefix(string(out), "connected ")
		if err != nil || !ok || (want == "") != (answer == "") || !strings.Contains(answer, want) {
			t.Errorf("user %d: %q, %v", uid, out, err)
		}
	}
}

func copySelf(t *testing.T, to string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// Another process copies: what this one has open for writing, a child that is
	// being started keeps open, and what is open for writing cannot be run.
	if out, err := exec.Command("cp", self, to).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// What stands where a supervisor is about to listen is replaced, whatever it is,
// and nobody trusts it before.
func TestStaleSocketIsReplaced(t *testing.T) {
	t.Parallel()
	for name, place := range map[string]func(t *testing.T, path string){
		"of a dead supervisor": func(t *testing.T, path string) {
			l, err := net.Listen("unix", path)
			if err != nil {
				t.Fatal(err)
			}
			l.(*net.UnixListener).SetUnlinkOnClose(false)
			l.Close()
		},
		"of somebody who listens": func(t *testing.T, path string) {
			l, err := net.Listen("unix", path)
			if err != nil {
				t.Fatal(err)
			}
			l.(*net.UnixListener).SetUnlinkOnClose(false)
			heard := make(chan struct{})
			go func() {
				defer close(heard)
				if conn, err := l.Accept(); err == nil {
					t.Error("somebody has trusted it")
					conn.Close()
				}
			}()
			t.Cleanup(func() { l.Close(); <-heard })
		},
		"a link": func(t *testing.T, path string) {
			target := filepath.Join(t.TempDir(), "target")
			if err := os.WriteFile(target, []byte("mine"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(target, path); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if text, err := os.ReadFile(target); err != nil || string(text) != "mine" {
					t.Errorf("%q, %v", text, err)
				}
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all, entry := newEntry(t)
			entry.Stored, entry.Supervisor = StateLive, deadProcess(t)
			if err := all.Save(entry); err != nil {
				t.Fatal(err)
			}
			place(t, all.socket(entry.ID))
			if _, _, err := all.Send(t.Context(), entry, "hi", true, Watcher{}); err == nil || !strings.Contains(err.Error(), "has crashed") {
				t.Error(err)
			}
			if st, err := all.Show(t.Context(), entry); err != nil || st.State != StateCrashed {
				t.Errorf("%+v, %v", st, err)
			}
			entry = serve(t, Options{Sessions: all, Entry: entry, Open: openEcho})
			if _, result, err := all.Send(t.Context(), entry, "hi", true, Watcher{}); err != nil || result.Text != "hi" {
				t.Errorf("%+v, %v", result, err)
			}
			if info, err := os.Lstat(all.socket(entry.ID)); err != nil || info.Mode() != os.ModeSocket|0o600 {
				t.Errorf("%v, %v", info.Mode(), err)
			}
		})
	}
}

// deadProcess returns what identified a process that has ended.
func deadProcess(t *testing.T) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/bin/cat")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	identity, err := process.Identify(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	return identity
}

// A folder that others can look into is no place for a socket, nor is one of
// somebody else's for a session.
func TestFoldersOfOthersAreRefused(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "open")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if l, err := listen(filepath.Join(dir, "socket")); err == nil {
		l.Close()
		t.Error("it is used")
	}
	if _, err := (&Sessions{Folder: dir}).Create(t.Context(), Entry{}); err == nil {
		t.Error("a session is put there")
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(t.TempDir(), link); err != nil {
		t.Fatal(err)
	}
	if l, err := listen(filepath.Join(link, "socket")); err == nil {
		l.Close()
		t.Error("a link is used")
	}
}

// A message that the session does not take is not written down as one.
func TestRefusedMessage(t *testing.T) {
	t.Parallel()
	all, entry := newEntry(t)
	entry = serve(t, Options{Sessions: all, Entry: entry, Open: openChoosy})
	if _, _, err := all.Send(t.Context(), entry, "bad", true, Watcher{}); err == nil || !strings.Contains(err.Error(), "too bad") || agent.KindOf(err) != "usage" {
		t.Error(err)
	}
	if _, _, err := all.Steer(t.Context(), entry, "bad"); err == nil || !strings.Contains(err.Error(), "too bad") {
		t.Error(err)
	}
	if turn, result, err := all.Send(t.Context(), entry, "good", true, Watcher{}); err != nil || result.Text != "good" {
		t.Errorf("%d, %+v, %v", turn, result, err)
	}
	var seen bytes.Buffer
	if err := all.Watch(t.Context(), entry, -1, false, "", Watcher{Record: func(r *Record) error {
		fmt.Fprint(&seen, r.Message, r.Warning, ";")
		return nil
	}}); err != nil {
		t.Fatal(err)
	}
	if got := seen.String(); strings.Contains(got, "bad") || !strings.HasPrefix(got, "choosy;good;") {
		t.Error(got)
	}
	if st, err := all.Show(t.Context(), entry); err != nil || st.Waiting != 0 || st.Turns != 1 || st.State != "ready" {
		t.Errorf("%+v, %v", st, err)
	}
}
