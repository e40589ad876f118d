package runs

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// ordinaryUser is a user without rights, by number.
const ordinaryUser = 65534

// asOrdinaryUser reports whether the test can run in this process. The superuser may
// do anything, so it runs the test again in a process of a user who may not.
func asOrdinaryUser(t *testing.T) bool {
	t.Helper()
	if os.Getuid() != 0 {
		return true
	}
	dir, err := os.MkdirTemp("", "ordinary-") // one of the test's own is closed to others
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "test")
	// Another process copies: what this one has open for writing, a child that is
	// being started keeps open, and what is open for writing cannot be run.
	if out, err := exec.Command("cp", self, program).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := errors.Join(os.Chmod(dir, 0o755), os.Chown(dir, ordinaryUser, ordinaryUser)); err != nil {
		t.Fatal(err)
	}
	c := exec.Command(program, "-test.run=^"+t.Name()+"$", "-test.v")
	c.Dir, c.Env = dir, []string{"TMPDIR=" + dir, "HOME=" + dir, "GORACE=atexit_sleep_ms=0"}
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: ordinaryUser, Gid: ordinaryUser}}
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	return false
}
