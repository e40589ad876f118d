// Command demo shows bus-agent at work without account or key: it runs the real Codex
// CLI against a scripted model server on loopback, or, without npm, plays a recorded
// run through a stub.
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
	version := flag.String("codex", "", "version of @openai/codex")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *binary, *agents, *version); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, binary, agents, version string) error {
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
	if _, err := process.LookPath("npm", os.Getenv("PATH")); err != nil {
		return d.replay(ctx, dir)
	}
	if err := d.install(ctx, agents, version); err != nil {
		return err
	}
	return d.real(ctx, agents)
}

type demo struct {
	binary, project, home string
}

func (d demo) install(ctx context.Context, agents, version string) error {
	fmt.Printf("Installing the Codex CLI %s into %s ...\n", version, agents)
	return d.start(ctx, os.Stdout, "scripts/install-agents.sh", os.Environ(), ".", agents, "@openai/codex@"+version)
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
	fmt.Printf("\nThe model server was asked %d times; the text of AGENTS.md stands %d time in the first request.\n",
		len(requests), requests[0].Count("Answer in one short sentence."))
	return nil
}

// replay plays a recorded run through a stub of the CLI.
func (d demo) replay(ctx context.Context, dir string) error {
	fmt.Println("npm is not installed here, so this plays a recorded run of the Codex CLI through a stub.")
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

// show prints a command of bus-agent and runs it, without this user's settings and
// logins.
func (d demo) show(ctx context.Context, path string, args ...string) error {
	fmt.Printf("\n$ bus-agent %s\n", strings.Join(quoted(args), " "))
	env := []string{"PATH=" + path, "HOME=" + d.home, "TERM=" + os.Getenv("TERM"), "LANG=" + os.Getenv("LANG")}
	var answer bytes.Buffer
	if err := d.start(ctx, &answer, d.binary, env, d.project, args...); err != nil {
		return err
	}
	fmt.Printf("\nThat was standard error, as it happened. Standard output has the answer alone:\n%s", answer.Bytes())
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
	if exit.Code != 0 {
		return fmt.Errorf("%s ended with exit code %d %s", filepath.Base(path), exit.Code, exit.Signal)
	}
	return nil
}
