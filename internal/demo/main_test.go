package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestRecordingReplacesACLIThatCannotBeInstalled runs the demo without npm and with one
// that reaches no registry.
func TestRecordingReplacesACLIThatCannotBeInstalled(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	programs := t.TempDir()
	for _, p := range []string{"demo", "bus-agent"} {
		from := map[string]string{"demo": "./internal/demo", "bus-agent": "./cmd/bus-agent"}[p]
		build := exec.Command("go", "build", "-o", filepath.Join(programs, p), from)
		build.Dir = root
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	for name, npm := range map[string]string{
		"no npm":              "",
		"unreachable network": "#!/bin/sh\necho 'npm error network' >&2\nexit 1\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bin, tmp := t.TempDir(), t.TempDir()
			for _, p := range []string{"go", "bash", "awk", "dirname", "sed", "head", "mkdir"} {
				path, err := exec.LookPath(p)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.Symlink(path, filepath.Join(bin, p)); err != nil {
					t.Fatal(err)
				}
			}
			if npm != "" {
				if err := os.WriteFile(filepath.Join(bin, "npm"), []byte(npm), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			var stdout, stderr bytes.Buffer
			demo := exec.Command(filepath.Join(programs, "demo"), "-bus-agent", filepath.Join(programs, "bus-agent"), "-agents", filepath.Join(t.TempDir(), "agents"))
			demo.Dir, demo.Stdout, demo.Stderr = root, &stdout, &stderr
			demo.Env = append(os.Environ(), "PATH="+bin, "TMPDIR="+tmp)
			if err := demo.Run(); err != nil {
				t.Fatalf("%v\n%s", err, stderr.Bytes())
			}
			if !strings.Contains(stdout.String(), "The Codex CLI could not be installed") {
				t.Errorf("standard output: %s", stdout.Bytes())
			}
			if !strings.HasSuffix(stdout.String(), "\nThere is one file: AGENTS.md.\n") {
				t.Errorf("the answer is missing: %s", stdout.Bytes())
			}
			if npm == "" && strings.Contains(stderr.String(), "Installing") {
				t.Errorf("it claims to install: %s", stderr.Bytes())
			}
			want := "npm is needed to install @openai/codex@"
			if npm != "" {
				want = "npm error network"
			}
			if !strings.Contains(stderr.String(), want) {
				t.Errorf("standard error lacks %q: %s", want, stderr.Bytes())
			}
			if left, _ := os.ReadDir(tmp); len(left) > 0 {
				t.Errorf("in the temporary folder: %v", left)
			}
		})
	}
}
