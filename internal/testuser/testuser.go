//go:build unix

// Package testuser runs tests as a user without rights.
package testuser

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// unprivileged is the number of a user without rights.
const unprivileged = 65534

// Ordinary reports whether the test can run in this process. The superuser may read
// and write everything, so for that user it runs the test, which is not a subtest,
// again in a process of a user who may not, with the variables in env as well.
func Ordinary(t *testing.T, env ...string) bool {
	t.Helper()
	if os.Getuid() != 0 {
		return true
	}
	dir, err := os.MkdirTemp("", "ordinary-") // t.TempDir is closed to other users
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "test")
	// Another process copies: a file that this one has open for writing stays open in a
	// child that starts meanwhile, and such a file cannot be run.
	if err := run(dir, nil, nil, "/bin/cp", self, program); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Chmod(dir, 0o755), os.Chmod(program, 0o755), os.Chown(dir, unprivileged, unprivileged)); err != nil {
		t.Fatal(err)
	}
	env = append([]string{"TMPDIR=" + dir, "HOME=" + dir, "GORACE=atexit_sleep_ms=0"}, env...)
	user := &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: unprivileged, Gid: unprivileged}}
	if err := run(dir, env, user, program, "-test.run=^"+t.Name()+"$", "-test.v"); err != nil {
		t.Error(err)
	}
	return false
}

// run runs a program and returns its output as the error where it fails.
func run(dir string, env []string, attr *syscall.SysProcAttr, argv ...string) error {
	out, err := os.CreateTemp("", "ordinary-output-")
	if err != nil {
		return err
	}
	defer os.Remove(out.Name())
	defer out.Close()
	p, err := os.StartProcess(argv[0], argv, &os.ProcAttr{Dir: dir, Env: env, Files: []*os.File{nil, out, out}, Sys: attr})
	if err != nil {
		return err
	}
	state, err := p.Wait()
	if err != nil || state.Success() {
		return err
	}
	text, err := os.ReadFile(out.Name())
	return errors.Join(errors.New(state.String()+"\n"+string(text)), err)
}
