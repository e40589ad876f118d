package verify_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/busdk/bus-agent/instructions"
	"github.com/busdk/bus-agent/modeltest"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/verify"
)

// killedEnv makes the test binary verify the stub with this PATH and then wait, with its
// folders made, until it is killed.
const killedEnv = "VERIFY_KILLED_PATH"

func waitForTheKill(path string) int {
	target := stubTarget("keep")
	target.Env = func(*modeltest.Server) []string {
		fmt.Println("made")
		select {}
	}
	reg := &registry.Registry{}
	if err := reg.Register(stubRuntime()); err != nil {
		fmt.Println(err)
		return 1
	}
	_, err := verify.Run(context.Background(), target, verify.Options{Registry: reg, Environ: []string{"PATH=" + path}, Checks: []string{"prompt-dash"}})
	fmt.Println(err) // it was not killed
	return 1
}

func TestSweepRemovesFoldersOfAKilledVerify(t *testing.T) {
	t.Parallel()
	tmp := t.TempDir()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program)
	o := stubOptions(t, stubRuntime())
	cmd.Env = []string{killedEnv + "=" + o.Environ[0][len("PATH="):], "TMPDIR=" + tmp}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if line != "made\n" || err != nil {
		t.Fatalf("%q, %v", line, err)
	}
	if left, err := os.ReadDir(tmp); err != nil || len(left) == 0 {
		t.Fatalf("left %v, %v: nothing to sweep", left, err)
	}
	for _, f := range (instructions.Locations{TempDirs: []string{tmp}}).RemoveStale(t.Context(), 0) {
		if f.Err != nil {
			t.Errorf("%s: %v", f.Path, f.Err)
		}
	}
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}
