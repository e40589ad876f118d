package verify

import (
	"os/exec"
	"strings"
	"testing"
)

func TestRunningProcessIsFound(t *testing.T) {
	t.Parallel()
	tr := &trial{home: t.TempDir()}
	left := exec.Command("sleep", "600")
	left.Env = []string{"HOME=" + tr.home}
	if err := left.Start(); err != nil {
		t.Fatal(err)
	}
	err := tr.checkProcesses()
	_ = left.Process.Kill()
	_ = left.Wait()
	if err == nil || !strings.Contains(err.Error(), "sleep 600") {
		t.Errorf("while it runs: %v", err)
	}
	if err := tr.checkProcesses(); err != nil {
		t.Errorf("after its end: %v", err)
	}
}
