package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/busdk/bus-agent/command"
	"github.com/busdk/bus-agent/internal/testwait"
)

// Copies of the test binary are the programs, by the name of the file.
func TestMain(m *testing.M) {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	switch filepath.Base(self) {
	case "bus-agent-mcp":
		main()
	case "bus-agent":
		os.Exit(command.Main("1.2.3"))
	}
	os.Exit(m.Run())
}

// stubCodex is an agent that makes a file and never ends.
const stubCodex = `#!/bin/sh
read -r prompt
: > "$prompt"
exec sleep 3600
`

// An installation is a folder with programs.
type installation struct {
	bin, home, workdir string
}

func install(t *testing.T, programs ...string) *installation {
	t.Helper()
	p := &installation{bin: t.TempDir(), home: t.TempDir(), workdir: t.TempDir()}
	for _, name := range programs {
		p.add(t, p.bin, name)
	}
	return p
}

// add puts a program into a folder.
func (p *installation) add(t *testing.T, dir, name string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, name)
	if os.Link(self, file) != nil { // on another file system
		if out, err := exec.Command("cp", self, file).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
}

// command returns a command of the installation.
func (p *installation) command(ctx context.Context, path string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, filepath.Join(p.bin, args[0]), args[1:]...)
	c.Dir = p.workdir
	c.Env = []string{"PATH=" + path, "HOME=" + p.home, "TMPDIR=" + p.home, "GORACE=atexit_sleep_ms=0"}
	return c
}

const handshake = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
`

// A client that configures either program gets the same server, and nothing but messages
// of the protocol on standard output.
func TestBothProgramsServe(t *testing.T) {
	t.Parallel()
	p := install(t, "bus-agent", "bus-agent-mcp")
	for _, args := range [][]string{
		{"bus-agent", "mcp"},
		{"bus-agent", "--quiet", "mcp", "--access", "read"},
		{"bus-agent-mcp"},
		{"bus-agent-mcp", "--access=read", "--max-runs=3"},
	} {
		c := p.command(t.Context(), "/usr/bin:/bin", args...)
		// The server answers while its input is open.
		stdin, err := c.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		stdout, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		var stderr bytes.Buffer
		c.Stderr = &stderr
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(stdin, handshake+`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`+"\n")
		for lines := json.NewDecoder(stdout); ; {
			var message struct {
				ID     int
				Result struct{ Tools []struct{ Name string } }
			}
			if err := lines.Decode(&message); err != nil {
				t.Errorf("%q: %v: %s", args, err, &stderr)
				break
			}
			if message.ID == 2 {
				if len(message.Result.Tools) < 2 {
					t.Errorf("%q: %+v", args, message)
				}
				_ = stdin.Close()
				break
			}
		}
		rest, _ := io.ReadAll(stdout)
		if err := c.Wait(); err != nil || len(rest) > 0 || stderr.Len() > 0 {
			t.Errorf("%q: %v, %q, %s", args, err, rest, &stderr)
		}
	}
}

func TestServesWithoutHome(t *testing.T) {
	t.Parallel()
	p := install(t, "bus-agent", "bus-agent-mcp")
	for _, program := range [][]string{{"bus-agent", "mcp"}, {"bus-agent-mcp"}} {
		c := p.command(t.Context(), "/usr/bin:/bin", program...)
		c.Env = slices.DeleteFunc(c.Env, func(entry string) bool { return strings.HasPrefix(entry, "HOME=") })
		if out, err := c.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%q: %v: %s", program, err, out)
		}
	}
}

func TestProgramIsFoundInPath(t *testing.T) {
	t.Parallel()
	p := install(t, "bus-agent")
	elsewhere := t.TempDir()
	p.add(t, elsewhere, "bus-agent-mcp")
	c := p.command(t.Context(), elsewhere, "bus-agent", "mcp")
	if out, err := c.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v: %s", err, out)
	}
}

// A repository does not decide which program serves.
func TestHostileRepositoryIsNotServed(t *testing.T) {
	t.Parallel()
	p := install(t, "bus-agent")
	for _, name := range []string{".git", "bin"} {
		if err := os.Mkdir(filepath.Join(p.workdir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	planted := filepath.Join(p.workdir, "bin", "bus-agent-mcp")
	if err := os.WriteFile(planted, []byte("#!/bin/sh\necho planted\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Dir(planted), "bin", t.TempDir()} {
		c := p.command(t.Context(), path, "bus-agent", "mcp")
		var stdout, stderr bytes.Buffer
		c.Stdout, c.Stderr = &stdout, &stderr
		_ = c.Run()
		if text := stderr.String(); c.ProcessState.ExitCode() != 2 || stdout.Len() > 0 ||
			!strings.Contains(text, "bus-agent-mcp is not installed") || !strings.Contains(text, "make install") || strings.Count(text, "\n") != 1 {
			t.Errorf("with PATH=%s: exit code %d, %q, %q", path, c.ProcessState.ExitCode(), &stdout, text)
		}
	}
}

func TestUsageErrors(t *testing.T) {
	t.Parallel()
	p := install(t, "bus-agent-mcp")
	for _, args := range [][]string{
		{"bus-agent-mcp", "--access", "all"},
		{"bus-agent-mcp", "--max-depth", "0"},
		{"bus-agent-mcp", "--workdir", "missing"},
		{"bus-agent-mcp", "more"},
	} {
		c := p.command(t.Context(), "/usr/bin:/bin", args...)
		if out, _ := c.CombinedOutput(); c.ProcessState.ExitCode() != 2 || bytes.Count(out, []byte("\n")) != 1 {
			t.Errorf("%q: exit code %d: %s", args, c.ProcessState.ExitCode(), out)
		}
	}
}

// One signal ends the server and the agent that it runs.
func TestSignalEndsTheAgent(t *testing.T) {
	t.Parallel()
	p := install(t, "bus-agent-mcp")
	if err := os.WriteFile(filepath.Join(p.bin, "codex"), []byte(stubCodex), 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*testwait.Limit)
	defer cancel()
	c := p.command(ctx, p.bin+":/usr/bin:/bin", "bus-agent-mcp")
	running := filepath.Join(t.TempDir(), "running")
	stdin, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(stdin, handshake+`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"run_agent","arguments":{"prompt":"`+running+`"}}}`+"\n")
	testwait.Exists(running)
	_ = c.Process.Signal(syscall.SIGTERM)
	if _ = c.Wait(); ctx.Err() != nil || c.ProcessState.ExitCode() != 1 {
		t.Errorf("the program ends with %v", c.ProcessState)
	}
}
