// Command demo runs the server, a worker and a task with the real Codex CLI against a
// scripted model on loopback, and shows the commit that landed. It needs no account and
// uses no network and no configuration of the user.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/busdk/bus-agent/modeltest"
)

func main() {
	program := flag.String("program", "bin/bus-integration-task", "the program to show")
	codex := flag.String("codex", "", "the Codex CLI")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	if err := run(ctx, *program, *codex); err != nil {
		fmt.Fprintln(os.Stderr, "demo: "+err.Error())
		os.Exit(1)
	}
}

// cleanUp returns a function that removes the empty folder that Codex 0.169.0 leaves in
// /tmp, whatever TMPDIR is, unless it exists already.
func cleanUp() func() {
	left := fmt.Sprintf("/tmp/codex-daemon-%d", os.Getuid())
	if _, err := os.Lstat(left); err == nil {
		return func() {}
	}
	return func() { os.Remove(left) }
}

// demo is what all its commands share.
type demo struct {
	program string
	dir     string
	module  string // repository of the recipient
	environ []string
}

func run(ctx context.Context, program, codex string) (err error) {
	dir, err := os.MkdirTemp("", "bus-task-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	defer cleanUp()()
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return err
	}
	if codex, err = filepath.Abs(codex); err != nil {
		return err
	}
	node, err := exec.LookPath("node")
	if err != nil {
		return err
	}
	model, err := modeltest.Start(modeltest.Replies(
		modeltest.Reply{modeltest.Text{"I add the greeting. "}, command("printf 'Hello\\n' > greeting.txt")},
		modeltest.Reply{command("make test")},
		modeltest.Reply{modeltest.Text{closing}},
	))
	if err != nil {
		return err
	}
	defer model.Close()
	if program, err = filepath.Abs(program); err != nil {
		return err
	}
	home := filepath.Join(dir, "home")
	d := demo{program: program, dir: dir, module: filepath.Join(dir, "workspace", "bus-greeting"), environ: []string{
		"PATH=" + filepath.Dir(codex) + ":" + filepath.Dir(node) + ":/usr/local/bin:/usr/bin:/bin", "HOME=" + home, "LC_ALL=C.UTF-8",
		"DEMO_API_KEY=not-a-real-key", "GIT_CONFIG_NOSYSTEM=1",
	}}
	if err := d.makeModule(ctx, home); err != nil {
		return err
	}
	arguments, err := json.Marshal([]string{
		"-c", "model_provider=demo",
		"-c", fmt.Sprintf(`model_providers.demo={name="demo",base_url=%q,wire_api="responses",env_key="DEMO_API_KEY"}`, model.OpenAIURL()),
	})
	if err != nil {
		return err
	}
	url, end, err := d.dev(ctx, string(arguments))
	if err != nil {
		return err
	}
	connection := []string{"task", "--events-url", url, "--token-file", filepath.Join(dir, "state", "client-token")}
	err = d.task(ctx, connection)
	if err := errors.Join(err, end()); err != nil {
		return err
	}
	return d.show(ctx, d.module, "git", "log", "--stat", "--format=%h %s", "-1")
}

const closing = `The greeting exists, and the test passes.

{"task_complete":true,"status":"done","summary":"add a greeting","changed_files":["greeting.txt"],"plan_closed":false,"no_matching_plan_item":true,"no_matching_plan_reason":"there is no PLAN.md","required_checks":[{"command":"make test","result":"pass","reason":""}],"remaining_blockers":[]}`

func command(line string) modeltest.ToolCall {
	arguments, err := json.Marshal(map[string]string{"cmd": line})
	if err != nil {
		panic(err) // cannot happen for strings
	}
	return modeltest.ToolCall{Name: "exec_command", Arguments: string(arguments)}
}

// makeModule makes the repository that the task is for.
func (d *demo) makeModule(ctx context.Context, home string) error {
	for _, folder := range []string{d.module, home} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
	}
	makefile := "test:\n\tgrep -q Hello greeting.txt\n"
	if err := os.WriteFile(filepath.Join(d.module, "Makefile"), []byte(makefile), 0o644); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"init", "-q", "-b", "main"}, {"add", "."},
		{"-c", "user.name=demo", "-c", "user.email=demo@example.invalid", "commit", "-qm", "begin"},
	} {
		if err := d.start(ctx, d.module, os.Stdout, "git", args...).Run(); err != nil {
			return fmt.Errorf("git %s: %w", args[0], err)
		}
	}
	return nil
}

func (d *demo) start(ctx context.Context, dir string, stdout io.Writer, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = time.Minute
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, d.environ, stdout, os.Stderr
	return cmd
}

// show prints a command and runs it.
func (d *demo) show(ctx context.Context, dir, name string, args ...string) error {
	fmt.Printf("\n$ %s %s\n", filepath.Base(name), strings.Join(args, " "))
	if err := d.start(ctx, dir, os.Stdout, name, args...).Run(); err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(name), err)
	}
	return nil
}

// dev starts the server, the worker and the board, and returns the URL of the server and a
// function that ends them.
func (d *demo) dev(ctx context.Context, arguments string) (url string, end func() error, err error) {
	args := []string{
		"dev", "--store", filepath.Join(d.dir, "state"), "--listen", "127.0.0.1:0",
		"--recipient", "bus-greeting", "--workspace-root", filepath.Dir(d.module),
		"--worktree-root", filepath.Join(d.dir, "worktrees"), "--model", "gpt-5.5", "--args-json", arguments,
		"--require-bus-notes=false",
	}
	fmt.Printf("\n$ bus-integration-task %s\n", strings.Join(args[:len(args)-3], " "))
	r, w := io.Pipe()
	cmd := d.start(ctx, d.dir, w, d.program, args...)
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	ended := make(chan error, 1)
	go func() {
		err := cmd.Wait()
		w.CloseWithError(io.EOF)
		ended <- err
	}()
	lines := bufio.NewScanner(r)
	for url == "" && lines.Scan() {
		fmt.Println(lines.Text())
		url = strings.TrimPrefix(lines.Text(), "events ")
	}
	if url == "" {
		return "", nil, fmt.Errorf("the server has ended: %w", errors.Join(<-ended, lines.Err()))
	}
	go func() {
		for lines.Scan() {
			fmt.Println(lines.Text())
		}
	}()
	return url, func() error {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		return <-ended
	}, nil
}

// task creates a task and watches it.
func (d *demo) task(ctx context.Context, connection []string) error {
	create := append(connection, "new", "@bus-greeting", "Add a greeting to greeting.txt.")
	if err := d.show(ctx, d.dir, d.program, create...); err != nil {
		return err
	}
	return d.show(ctx, d.dir, d.program, append(connection, "watch", "--timeout", "3m", "bus#1.1")...)
}
