//go:build acceptance

package acceptance

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestDemo shows the real Codex CLI, which is installed already.
func TestDemo(t *testing.T) {
	t.Parallel()
	tmp := t.TempDir()
	agents := filepath.Dir(filepath.Dir(filepath.Dir(codex)))
	demo := exec.Command("go", "run", "./internal/demo", "-bus-agent", busAgent, "-agents", agents)
	var stdout, stderr bytes.Buffer
	demo.Dir, demo.Stdout, demo.Stderr = "..", &stdout, &stderr
	demo.Env = append(os.Environ(), "TMPDIR="+tmp, "npm_config_offline=true")
	if err := demo.Run(); err != nil {
		t.Fatalf("%v\n%s", err, stderr.Bytes())
	}
	for _, want := range []string{"\n$ bus-agent run --agent codex ", "\nThere is one file: AGENTS.md.\n", "The model server got 2 requests. The text of AGENTS.md occurs 1 time(s) in the first one."} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("%q is missing in %s", want, stdout.Bytes())
		}
	}
	if strings.Contains(stderr.String(), "Installing") {
		t.Errorf("it installs again: %s", stderr.Bytes())
	}
	if left, _ := os.ReadDir(tmp); len(left) > 0 {
		t.Errorf("in the temporary folder: %v", left)
	}
}
