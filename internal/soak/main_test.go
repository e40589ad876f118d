package soak

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/busdk/bus-agent/backendtest"
	"github.com/busdk/bus-agent/command"

	_ "github.com/busdk/bus-agent/backends/all"
)

// The test binary is bus-agent when it is called so; BUS_AGENT_BIN names a real
// one, whose memory counts.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "bus-agent" {
		os.Exit(command.Main(""))
	}
	backendtest.PlayAgent()
	code := m.Run()
	if built != "" {
		os.RemoveAll(built)
	}
	os.Exit(code)
}

// binary is the bus-agent that is tested.
var binary = os.Getenv("BUS_AGENT_BIN")

// built is the directory of the stub.
var built string

var buildStub = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "bus-agent-soak-")
	if err != nil {
		return "", err
	}
	built = dir
	stub := filepath.Join(dir, "stub")
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", stub, "./stub")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return stub, nil
})

// stub returns the path of the compiled stub.
func stub(t *testing.T) string {
	t.Helper()
	path, err := buildStub()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// atOnce lets t run in parallel, but not if its figures count.
func atOnce(t *testing.T) {
	if !large {
		t.Parallel()
	}
}
