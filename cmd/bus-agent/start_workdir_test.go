package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/control"
)

// No agent starts or works in a directory that has been removed, and the background
// process never chooses the directory.
func TestSessionInRemovedDirectory(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"current":   {nil, `workdir "."`},
		"named":     {[]string{"--workdir", "."}, `--workdir "."`},
		"changed":   {[]string{"-C", "."}, `workdir "."`},
		"added dir": {[]string{"--workdir", "/", "--add-dir", "."}, `--add-dir "."`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSandbox(t, "claude", "converse\n")
			cmd := s.command(append([]string{"session", "start", "--agent", "claude", "--access", "read"}, test.args...)...)
			cmd.Path, cmd.Args = "/bin/sh", append([]string{"sh", "-c", `/bin/rmdir "$PWD"; exec "$@"`, "sh", cmd.Path}, cmd.Args[1:]...)
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			code := exitCode(t, cmd.Run())
			if want := "bus-agent: " + test.want + ": getwd: no such file or directory"; code != 2 || !strings.HasPrefix(stderr.String(), want) || stdout.Len() > 0 {
				t.Errorf("exit code %d, %q, %q; want %q", code, stdout.String(), stderr.String(), want)
			}
			if list, _, err := sessionsOf(s.path("home")).List(control.Filter{}); err != nil || len(list) > 0 {
				t.Errorf("%d sessions, %v", len(list), err)
			}
		})
	}
}

// What is stored of a session is not trusted to say where the agent works.
func TestResumeWithRelativeWorkdir(t *testing.T) {
	t.Parallel()
	s := newSandbox(t, "claude", "converse\n")
	for _, args := range [][]string{{"start", "--agent", "claude", "--access", "read", "--name", "one"}, {"send", "one", "hi"}, {"stop", "one"}} {
		if out, err := s.command(append([]string{"session"}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("%q: %v\n%s", args, err, out)
		}
	}
	all := sessionsOf(s.path("home"))
	entry, err := all.Find("one")
	if err != nil {
		t.Fatal(err)
	}
	if entry.Workdir != s.path("work") {
		t.Fatalf("the workdir is %s", entry.Workdir)
	}
	entry.Workdir = "."
	writeEntry(t, s.path("home"), entry)
	out, err := s.command("session", "resume", "one").CombinedOutput()
	if code := exitCode(t, err); code != 2 || string(out) != "bus-agent: workdir \".\" is not absolute\n" {
		t.Errorf("exit code %d, %q", code, out)
	}
	if entry, err = all.Find("one"); err != nil || entry.State != session.StateStopped {
		t.Errorf("%s, %v", entry.State, err)
	}
}
