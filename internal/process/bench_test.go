package process

import (
	"bytes"
	"os/exec"
	"testing"
)

const prompt = "say something"

func BenchmarkRun(b *testing.B) {
	for b.Loop() {
		var out, errs bytes.Buffer
		exit, err := Run(b.Context(), Spec{Path: "/bin/echo", Args: []string{"done"}, Dir: "/", Stdin: prompt, Stdout: &out, Stderr: &errs})
		if err != nil || exit != (Exit{}) || out.String() != "done\n" {
			b.Fatal(exit, err, out.String())
		}
	}
}

// BenchmarkExec is the limit for BenchmarkRun: the same with os/exec alone.
func BenchmarkExec(b *testing.B) {
	for b.Loop() {
		var out, errs bytes.Buffer
		cmd := exec.CommandContext(b.Context(), "/bin/echo", "done")
		cmd.Env = []string{}
		cmd.Dir = "/"
		cmd.Stdin = bytes.NewBufferString(prompt)
		cmd.Stdout, cmd.Stderr = &out, &errs
		if err := cmd.Run(); err != nil || out.String() != "done\n" {
			b.Fatal(err, out.String())
		}
	}
}
