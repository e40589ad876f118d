package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Every command knows the third party's runtime.
func TestEveryCommandKnowsTheRuntime(t *testing.T) {
	t.Parallel()
	bin, home := t.TempDir(), t.TempDir()
	for name, pkg := range map[string]string{"bus-agent": ".", "parrot": "../parrot"} {
		if out, err := exec.Command("go", "build", "-o", filepath.Join(bin, name), pkg).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	work := t.TempDir()
	if err := os.WriteFile(filepath.Join(work, "AGENTS.md"), []byte("Be colourful.\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args  string
		stdin string
		want  []string
	}{
		{args: "detect", want: []string{"parrot\n"}},
		{args: "help run", want: []string{"parrot"}},
		{args: "set runtime parrot"},
		{args: "config show", want: []string{"parrot"}},
		{args: "run --model macaw --text hello --format json", want: []string{`"runtime": "parrot"`, `"model": "macaw"`, "Be colourful.", "hello"}},
		{args: "format", stdin: `{"parrot":"says","text":"squawk"}` + "\n", want: []string{"squawk\n"}},
		{args: "__complete run --agent pa", want: []string{"parrot\n"}},
	} {
		cmd := exec.Command(filepath.Join(bin, "bus-agent"), strings.Fields(c.args)...)
		cmd.Dir = work
		cmd.Env = []string{"PATH=" + bin, "HOME=" + home}
		cmd.Stdin = strings.NewReader(c.stdin)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Errorf("bus-agent %s: %v\n%s", c.args, err, stderr.Bytes())
		}
		for _, want := range c.want {
			if !strings.Contains(string(out), want) {
				t.Errorf("bus-agent %s prints no %q:\n%s", c.args, want, out)
			}
		}
	}
}
