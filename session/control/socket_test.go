package control_test

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/control"
)

// A process of another user gets no answer, even where it can connect.
func TestPeersOfOtherUsersAreRefused(t *testing.T) {
	t.Parallel()
	var refused atomic.Int32
	b, _, _, e := serve(t, func(b *bench) { b.SetPeer(func(net.Conn) bool { refused.Add(1); return false }) })
	conn, err := net.Dial("unix", b.Store.Socket(e))
	if err != nil {
		t.Fatal(err)
	}
	if answer, _ := ask(conn, show()); len(answer) > 0 || refused.Load() != 1 {
		t.Errorf("%d asked, %s", refused.Load(), answer)
	}
}

func TestOtherUsersAreRefused(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can be another user; TestPeersOfOtherUsersAreRefused tests the rest")
	}
	dir := shortDir(t)
	b, _, _, e := serve(t, func(b *bench) { b.Store = control.NewStore(filepath.Join(dir, "s")) })
	socket, program := b.Store.Socket(e), filepath.Join(dir, "dialer")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// Another process copies: what this one has open for writing, a child that is
	// being started keeps open, and what is open for writing cannot be run.
	if out, err := exec.Command("cp", self, program).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for path, mode := range map[string]os.FileMode{dir: 0o711, program: 0o755, b.Store.Dir(): 0o711, b.Store.Folder(e): 0o711, socket: 0o666} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	for uid, want := range map[uint32]string{0: `"state":"ready"`, 65534: ""} {
		cmd := exec.CommandContext(t.Context(), program, socket)
		cmd.Dir, cmd.Env = "/", []string{"GORACE=atexit_sleep_ms=0"}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		out, err := cmd.CombinedOutput()
		answer, ok := strings.CutPrefix(string(out), "connected ")
		if err != nil || !ok || (want == "") != (answer == "") || !strings.Contains(answer, want) {
			t.Errorf("user %d: %q, %v", uid, out, err)
		}
	}
	_ = os.Chmod(b.Store.Dir(), 0o700)
}

// shortDir returns a folder that others get to, and whose name leaves room for the
// names of sockets, which t.TempDir does not for all values of TMPDIR.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "control-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// What is where a session is about to listen is replaced, whatever it is, and is
// not trusted before.
func TestStaleSocketIsReplaced(t *testing.T) {
	t.Parallel()
	unlinked := func(t *testing.T, path string) net.Listener {
		l, err := control.Listen(path)
		if err != nil {
			t.Fatal(err)
		}
		l.(*net.UnixListener).SetUnlinkOnClose(false)
		return l
	}
	for name, place := range map[string]func(t *testing.T, path string){
		"of a dead process": func(t *testing.T, path string) { unlinked(t, path).Close() },
		"of another that listens": func(t *testing.T, path string) {
			l, heard := unlinked(t, path), make(chan struct{})
			go func() {
				defer close(heard)
				if conn, err := l.Accept(); err == nil {
					t.Error("it is trusted")
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
			state := filepath.Join(shortDir(t), "s")
			b, h, c, e := serve(t, func(b *bench) { b.Store = control.NewStore(state) })
			if err := b.Stop(t.Context(), h, ""); err != nil {
				t.Fatal(err)
			}
			dead, pid := deadProcess(t)
			e.State, e.Owner, e.OwnerPID, e.Process, e.PID = session.StateReady, dead, pid, "", 0
			e.Fresh = false
			save(t, b.Store, e)
			place(t, b.Store.Socket(e))
			e, err := b.Store.Find("one")
			if err != nil || e.State != session.StateCrashed {
				t.Errorf("%+v, %v", e, err)
			}
			if _, err := c.Send(t.Context(), e, control.Message{Text: "hi"}); err == nil || !strings.Contains(err.Error(), "has crashed") {
				t.Error(err)
			}
			place(t, b.Store.Socket(e))
			if err := b.Resume(t.Context(), h); err != nil {
				t.Fatal(err)
			}
			e, _ = b.Store.Find("one")
			if result, err := c.Ask(t.Context(), e, control.Message{Text: "hi"}, control.Watcher{}); err != nil || result.Text != "hi" {
				t.Errorf("%+v, %v", result, err)
			}
			if info, err := os.Lstat(b.Store.Socket(e)); err != nil || info.Mode() != os.ModeSocket|0o600 {
				t.Errorf("%v, %v", info.Mode(), err)
			}
		})
	}
}

// The end of a session can remove the folder in which another one is about to listen.
func TestSessionsShareTheFolderOfTheirSockets(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(shortDir(t), "sockets")
	var all sync.WaitGroup
	for n := range 4 {
		all.Go(func() {
			path := filepath.Join(dir, strconv.Itoa(n))
			for range 100 {
				l, err := control.Listen(path)
				if err != nil {
					t.Error(err)
					return
				}
				l.Close()
				control.RemoveSocket(path, "")
			}
		})
	}
	all.Wait()
	if _, err := os.Lstat(dir); err == nil {
		t.Error("the folder is left")
	}
}

// A folder that others can look into is not used for a socket.
func TestSocketFoldersOfOthersAreRefused(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "open")
	if err := errors.Join(os.Mkdir(dir, 0o755), os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(t.TempDir(), link); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{dir, link} {
		if l, err := control.Listen(filepath.Join(folder, "socket")); err == nil {
			l.Close()
			t.Errorf("%s is used", folder)
		}
	}
	b := newBench(t)
	b.Serve, b.Store = true, control.NewStore(dir)
	if _, err := b.Start(t.Context(), control.StartOptions{Settings: control.Settings{Runtime: "talker", Workdir: b.workdir}}); err == nil {
		t.Error("a session is put there")
	}
}
