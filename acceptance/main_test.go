//go:build acceptance

package acceptance

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
)

// The variables with the paths of the programs under test. bus-agent is built if its
// variable is not set; the others are required.
const (
	busAgentEnv = "BUS_AGENT_BIN"
	codexEnv    = "BUS_AGENT_CODEX"
	claudeEnv   = "BUS_AGENT_CLAUDE"
	geminiEnv   = "BUS_AGENT_GEMINI"
	qwenEnv     = "BUS_AGENT_QWEN"
	opencodeEnv = "BUS_AGENT_OPENCODE"
	acpEnv      = "BUS_AGENT_ACP_CLIENTS" // the folder node_modules with clients of ACP
)

var (
	busAgent string // absolute path of the bus-agent under test
	codex    string // absolute path of the real Codex CLI
	claude   string // absolute path of the real Claude Code
	gemini   string // absolute path of the real Gemini CLI
	qwen     string // absolute path of the real Qwen Code, which has no backend
	opencode string // absolute path of the real opencode
	git      string
	node     string

	acpModules string // absolute path of the folder node_modules with clients of ACP
)

func TestMain(m *testing.M) {
	os.Exit(func() int {
		cleanUp, err := findPrograms()
		if err != nil {
			fmt.Fprintln(os.Stderr, "acceptance:", err)
			return 1
		}
		defer cleanUp()
		defer removeREST()
		// Children inherit ignored signals, for example from nohup, unless we handle them.
		for _, sig := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT} {
			if signal.Ignored(sig) {
				signal.Notify(make(chan os.Signal, 1), sig)
			}
		}
		return m.Run()
	}())
}

func findPrograms() (cleanUp func(), err error) {
	cleanUp = func() {}
	for _, cli := range []struct {
		env, name string
		path      *string
	}{
		{codexEnv, "the Codex CLI", &codex}, {claudeEnv, "Claude Code", &claude},
		{geminiEnv, "the Gemini CLI", &gemini}, {qwenEnv, "Qwen Code", &qwen},
		{opencodeEnv, "opencode", &opencode},
	} {
		*cli.path = os.Getenv(cli.env)
		if !filepath.IsAbs(*cli.path) {
			return cleanUp, fmt.Errorf("%s is not the absolute path of %s; run `make acceptance`", cli.env, cli.name)
		}
		if _, err := exec.LookPath(*cli.path); err != nil {
			return cleanUp, fmt.Errorf("%s: %w; run `make acceptance`", cli.env, err)
		}
	}
	if acpModules = os.Getenv(acpEnv); !filepath.IsAbs(acpModules) {
		return cleanUp, fmt.Errorf("%s is not the absolute path of a folder; run `make acceptance`", acpEnv)
	}
	if git, err = exec.LookPath("git"); err != nil {
		return cleanUp, err
	}
	if node, err = exec.LookPath("node"); err != nil {
		return cleanUp, err
	}
	if busAgent = os.Getenv(busAgentEnv); busAgent != "" {
		_, err := exec.LookPath(busAgent)
		return cleanUp, err
	}
	dir, err := os.MkdirTemp("", "bus-agent-acceptance-")
	if err != nil {
		return cleanUp, err
	}
	cleanUp = func() { _ = os.RemoveAll(dir) }
	busAgent = filepath.Join(dir, "bus-agent")
	build := exec.Command("go", "build", "-tags", "urfave_cli_no_docs", "-o", busAgent, "../cmd/bus-agent")
	mcp := exec.Command("go", "build", "-C", "../bus-agent-mcp", "-tags", "urfave_cli_no_docs", "-o", busAgent+"-mcp", ".")
	for _, build := range []*exec.Cmd{build, mcp} {
		build.Stdout, build.Stderr = os.Stderr, os.Stderr
		if err := build.Run(); err != nil {
			cleanUp()
			return func() {}, fmt.Errorf("cannot build bus-agent: %w", err)
		}
	}
	return cleanUp, nil
}
