package preferences

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

func init() {
	jobs["full"] = onUserStore(fullDisk)
	jobs["read-only mount"] = onUserStore(readOnlyMount)
}

// mount mounts a small empty file system, visible to this process only, at the
// directory of s. If that is not permitted, it prints noMount and exits.
func mount(s store) string {
	dir := filepath.Dir(s.path)
	err := os.MkdirAll(dir, 0o700)
	if err == nil {
		err = syscall.Mount("none", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, "")
	}
	if err == nil {
		err = syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64k,mode=0700")
	}
	if err != nil {
		fmt.Println(noMount, err)
		os.Exit(0)
	}
	return dir
}

const noMount = "no mount:"

func fullDisk(s store) error {
	ctx := context.Background()
	filler := filepath.Join(mount(s), "filler")
	if err := s.setString(ctx, "a", "old"); err != nil {
		return err
	}
	for size := 1 << 16; size > 0; {
		f, err := os.OpenFile(filler, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			return err
		}
		if _, err = f.Write(make([]byte, size)); err != nil {
			size /= 2
		}
		f.Close()
	}
	if err := wantWriteError(s, syscall.ENOSPC); err != nil {
		return err
	}
	if err := os.Remove(filler); err != nil {
		return err
	}
	return s.setString(ctx, "a", "new")
}

func readOnlyMount(s store) error {
	dir := mount(s)
	if err := s.setString(context.Background(), "a", "old"); err != nil {
		return err
	}
	if err := syscall.Mount("", dir, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		return err
	}
	return wantWriteError(s, syscall.EROFS)
}

func TestFullDisk(t *testing.T)      { testMounted(t, "full") }
func TestReadOnlyMount(t *testing.T) { testMounted(t, "read-only mount") }

// testMounted runs a job in a new mount namespace. Other users than root, whom the system
// may not permit one, skip the test then.
func testMounted(t *testing.T, job string) {
	t.Parallel()
	s := newStore(t)
	cmd := child(t, s, job)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	lacking := t.Fatalf
	if os.Geteuid() != 0 {
		lacking = t.Skipf
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	out, err := cmd.CombinedOutput()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		lacking("no mount namespace: %v", err)
	}
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if len(out) > 0 {
		lacking("%s", out)
	}
}
