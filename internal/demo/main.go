// Command demo shows bus-agent at work without account or key: it runs the real Codex
// CLI against a scripted model server on loopback. If npm cannot install that, it plays a
// recorded run through a stub.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/busdk/bus-agent/internal/process"
	"github.com/busdk/bus-agent/modeltest"
)

const (
	prompt       = "How many files are here? Look, then answer in one sentence."
	instructions = "# Project rules\n\nAnswer in one short sentence.\n"
)

func main() {
	binary := flag.String("bus-agent", "bin/bus-agent", "the binary to show")
	agents := flag.String("agents", ".cache/agents", "where agent CLIs are installed")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *binary, *agents); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, binary, agents string) error {
	binary, err := filepath.Abs(binary)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "bus-agent-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	project, home := filepath.Join(dir, "project"), filepath.Join(dir, "home")
	for _, d := range []string{project, home} {
		if err := os.Mkdir(d, 0o700); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(project, "AGENTS.md"), []byte(instructions), 0o600); err != nil {
		return err
	}
	d := demo{binary: binary, project: project, home: home}
	if err := d.install(ctx, agents); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		fmt.Printf("The Codex CLI could not be installed: %v.\nA recorded run of it is played through a stub instead.\n", err)
		return d.replay(ctx, dir)
	}
	return d.real(ctx, agents)
}

type demo struct {
	binary, project, home string
}

// install installs the CLI if it is not installed. npm's own limits would let it try for
// minutes without a network.
func (d demo) install(ctx context.Context, agents string) error {
	env := append(os.Environ(), "npm_config_fetch_retries=1", "npm_config_fetch_retry_mintimeout=1000", "npm_config_fetch_timeout=20000")
	return d.start(ctx, os.Stdout, "scripts/install-agents.sh", env, ".", agents, "codex")
}

// real runs the real CLI against a scripted model.
func (d demo) real(ctx context.Context, agents string) error {
	srv, err := modeltest.Start(modeltest.Replies(
		modeltest.Reply{
			modeltest.Text{"I will look. "},
			modeltest.ToolCall{Name: "exec_command", Arguments: `{"cmd":"ls"}`},
		},
		modeltest.Reply{modeltest.Text{"There is one file: ", "AGENTS.md."}},
	))
	if err != nil {
		return err
	}
	defer srv.Close()
	defer cleanUp()()
	bin, err := filepath.Abs(filepath.Join(agents, "node_modules", ".bin"))
	if err != nil {
		return err
	}
	provider := fmt.Sprintf(`model_providers.demo={name="demo",base_url=%q,wire_api="responses",env_key="DEMO_API_KEY"}`, srv.OpenAIURL())
	err = d.show(ctx, bin+string(filepath.ListSeparator)+os.Getenv("PATH"),
		"run", "--agent", "codex", "--model", "gpt-5.5", "--workdir", d.project, "--text", prompt,
		"--env", "DEMO_API_KEY=not-a-real-key", "--", "-c", "model_provider=demo", "-c", provider)
	if err != nil {
		return err
	}
	requests := srv.ModelRequests()
	if len(requests) == 0 {
		return fmt.Errorf("the model server got no request")
	}
	fmt.Printf("\nThe model server got %d requests. The text of AGENTS.md occurs %d time(s) in the first one.\n",
		len(requests), requests[0].Count("Answer in one short sentence."))
	return nil
}

// cleanUp returns a function that removes the empty folder that Codex 0.169.0 leaves
// in /tmp, whatever TMPDIR is, unless it exists already.
func cleanUp() func() {
	left := fmt.Sprintf("/tmp/codex-daemon-%d", os.Getuid())
	if _, err := os.Lstat(left); err == nil {
		return func() {}
	}
	return func() { os.Remove(left) }
}

// replay plays a recorded run through a stub of the CLI.
func (d demo) replay(ctx context.Context, dir string) error {
	bin := filepath.Join(dir, "bin")
	goTool, err := process.LookPath("go", os.Getenv("PATH"))
	if err != nil {
		return err
	}
	if err := d.start(ctx, os.Stdout, goTool, os.Environ(), ".", "build", "-o", filepath.Join(bin, "codex"), "./internal/demo/replay"); err != nil {
		return err
	}
	return d.show(ctx, bin, "run", "--agent", "codex", "--workdir", d.project, "--text", prompt)
}

// show prints a bus-agent command and runs it without the user's settings and logins.
func (d demo) show(ctx context.Context, path string, args ...string) error {
	fmt.Printf("\n$ bus-agent %s\n", strings.Join(quoted(args), " "))
	env := []string{"PATH=" + path, "HOME=" + d.home, "TERM=" + os.Getenv("TERM"), "LANG=" + os.Getenv("LANG")}
	var answer bytes.Buffer
	if err := d.start(ctx, &answer, d.binary, env, d.project, args...); err != nil {
		return err
	}
	fmt.Printf("\nThe lines above are standard error. Standard output has only the answer:\n%s", answer.Bytes())
	return nil
}

func quoted(args []string) []string {
	out := make([]string, len(args))
	for i, a := range args {
		out[i] = a
		if strings.ContainsAny(a, " \"{}[]") {
			out[i] = "'" + a + "'"
		}
	}
	return out
}

func (d demo) start(ctx context.Context, stdout io.Writer, path string, env []string, dir string, args ...string) error {
	abs, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	exit, err := process.Run(ctx, process.Spec{
		Path: abs, Args: args, Env: env, Dir: dir,
		Stdout: stdout, Stderr: os.Stderr,
	})
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	if exit.Signal != "" {
		return fmt.Errorf("%s was ended by %s", filepath.Base(path), exit.Signal)
	}
	if exit.Code != 0 {
		return fmt.Errorf("%s ended with exit code %d", filepath.Base(path), exit.Code)
	}
	return nil
}
