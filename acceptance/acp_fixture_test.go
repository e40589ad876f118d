//go:build acceptance

package acceptance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/acp-go-sdk"

	"github.com/busdk/bus-agent/modeltest"
)

// acpTask is what a client of the Agent Client Protocol does with bus-agent.
type acpTask struct {
	Command []string `json:"command"`
	Cwd     string   `json:"cwd"`
	Prompts []string `json:"prompts"`
	Option  string   `json:"option"`         // the kind of the answer to requests for permission
	Load    string   `json:"load,omitempty"` // the session to load, in place of a new one
	Mode    string   `json:"mode,omitempty"`

	killed bool // bus-agent is killed after the last turn; only goClient can
}

// acpResult is what the client got.
type acpResult struct {
	SessionID   string
	Updates     []acpUpdate
	Asked       []acpAsked
	StopReasons []string
}

type acpAsked struct {
	ToolCall struct {
		Title string `json:"title"`
		Kind  string `json:"kind"`
	} `json:"toolCall"`
}

// acpUpdate is what a test needs of an update.
type acpUpdate struct {
	Kind    string          `json:"sessionUpdate"`
	Status  string          `json:"status"`
	Content json.RawMessage `json:"content"`
}

// text returns what updates of a kind say.
func (r *acpResult) text(kind string) string {
	var all strings.Builder
	for _, u := range r.Updates {
		var content struct {
			Text string `json:"text"`
		}
		if u.Kind == kind && json.Unmarshal(u.Content, &content) == nil {
			all.WriteString(content.Text)
		}
	}
	return all.String()
}

// has reports whether there is an update of a kind and a status.
func (r *acpResult) has(kind, status string) bool {
	return slices.ContainsFunc(r.Updates, func(u acpUpdate) bool { return u.Kind == kind && u.Status == status })
}

// acpCLIs are the CLIs behind bus-agent acp, each with a call of a tool that asks for
// permission.
var acpCLIs = map[string]struct {
	setup setupFunc
	call  func(command string) modeltest.ToolCall
}{
	"codex":  {newCodex, escalated},
	"claude": {newClaude, bash},
	"gemini": {newGemini, shell},
}

// acpTask returns a task for the CLI of the fixture.
func (w *fixture) acpTask(prompts ...string) acpTask {
	command := append([]string{w.busAgent(), "acp", "--agent", w.agent, "--model", w.modelID}, w.codexArgs()...)
	return acpTask{Command: command, Cwd: w.repo, Prompts: prompts, Option: "allow_once"}
}

// acpClients are clients of the protocol that others have written.
var acpClients = map[string]func(*fixture, acpTask) acpResult{
	"TypeScript SDK": (*fixture).typescriptClient,
	"Go SDK":         (*fixture).goClient,
	"acpx":           (*fixture).acpx,
}

// typescriptClient is a client that uses the TypeScript SDK.
func (w *fixture) typescriptClient(task acpTask) (r acpResult) {
	w.t.Helper()
	encoded, err := json.Marshal(task)
	if err != nil {
		w.t.Fatal(err)
	}
	script, err := filepath.Abs("testdata/acp_client.mjs")
	if err != nil {
		w.t.Fatal(err)
	}
	sdk := "file://" + filepath.Join(acpModules, "@agentclientprotocol/sdk/dist/v1/stable/acp.js")
	stdout := w.client(node, script, sdk, string(encoded))
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		w.t.Fatalf("%v: %s", err, stdout)
	}
	return r
}

// client runs a client and returns its standard output.
func (w *fixture) client(name string, args ...string) string {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), w.limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = w.repo, w.environ(), 10*time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		w.t.Fatalf("%v\n%s\n%s", err, clip(stdout.String()), clip(stderr.String()))
	}
	return stdout.String()
}

// acpx is the program acpx, which reads JSON-RPC and writes it again.
func (w *fixture) acpx(task acpTask) (r acpResult) {
	w.t.Helper()
	w.keptInHome = append(w.keptInHome, ".acpx")
	script := "#!/bin/sh\nexec"
	for _, arg := range task.Command {
		script += " '" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
	}
	agent := filepath.Join(w.t.TempDir(), "agent")
	if err := os.WriteFile(agent, []byte(script+"\n"), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if w.agent != "codex" { // no argument has to be quoted
		agent = strings.Join(task.Command, " ")
	}
	for _, prompt := range task.Prompts {
		stdout := w.client(node, filepath.Join(acpModules, "acpx/dist/cli.js"), "--approve-all", "--format", "json", "--cwd", task.Cwd, "--agent", agent, "exec", prompt)
		for line := range strings.Lines(stdout) {
			var m struct {
				Method string `json:"method"`
				Params json.RawMessage
				Result struct {
					SessionID  string `json:"sessionId"`
					StopReason string `json:"stopReason"`
				} `json:"result"`
			}
			if json.Unmarshal([]byte(line), &m) != nil {
				w.t.Fatalf("acpx writes %s", line)
			}
			var update struct{ Update acpUpdate }
			var asked acpAsked
			switch {
			case m.Method == "session/update" && json.Unmarshal(m.Params, &update) == nil:
				r.Updates = append(r.Updates, update.Update)
			case m.Method == "session/request_permission" && json.Unmarshal(m.Params, &asked) == nil:
				r.Asked = append(r.Asked, asked)
			case m.Result.SessionID != "":
				r.SessionID = m.Result.SessionID
			case m.Result.StopReason != "":
				r.StopReasons = append(r.StopReasons, m.Result.StopReason)
			}
		}
	}
	return r
}

// goClient is a client that uses the Go SDK.
func (w *fixture) goClient(task acpTask) acpResult {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), w.limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, task.Command[0], task.Command[1:]...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = w.repo, w.environ(), 10*time.Second
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	input, err := cmd.StdinPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	output, toClient := io.Pipe()
	cmd.Stdout = toClient
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	c := &goClient{task: task}
	conn := acp.NewClientSideConnection(c, input, output)
	conn.SetLogger(slog.New(slog.DiscardHandler))
	if err := c.run(ctx, conn); err != nil {
		w.t.Errorf("%v\n%s", err, clip(stderr.String()))
	}
	if task.killed {
		_ = cmd.Process.Kill() // it is running, as its input is open
	}
	input.Close()
	if err := cmd.Wait(); err != nil && !task.killed {
		w.t.Errorf("bus-agent acp: %v\n%s", err, clip(stderr.String()))
	}
	toClient.Close()
	<-conn.Done()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.result
}

type goClient struct {
	acp.Client // what is not offered; it is never called
	task       acpTask

	mu     sync.Mutex
	result acpResult
}

func (c *goClient) run(ctx context.Context, conn *acp.ClientSideConnection) error {
	if _, err := conn.Initialize(ctx, acp.InitializeRequest{ProtocolVersion: acp.ProtocolVersionNumber}); err != nil {
		return err
	}
	id := acp.SessionId(c.task.Load)
	if id != "" {
		if _, err := conn.LoadSession(ctx, acp.LoadSessionRequest{SessionId: id, Cwd: c.task.Cwd, McpServers: []acp.McpServer{}}); err != nil {
			return err
		}
	} else {
		opened, err := conn.NewSession(ctx, acp.NewSessionRequest{Cwd: c.task.Cwd, McpServers: []acp.McpServer{}})
		if err != nil {
			return err
		}
		id = opened.SessionId
	}
	c.result.SessionID = string(id)
	if c.task.Mode != "" {
		if _, err := conn.SetSessionMode(ctx, acp.SetSessionModeRequest{SessionId: id, ModeId: acp.SessionModeId(c.task.Mode)}); err != nil {
			return err
		}
	}
	for _, prompt := range c.task.Prompts {
		got, err := conn.Prompt(ctx, acp.PromptRequest{SessionId: id, Prompt: []acp.ContentBlock{acp.TextBlock(prompt)}})
		if err != nil {
			return err
		}
		c.result.StopReasons = append(c.result.StopReasons, string(got.StopReason))
	}
	return nil
}

// as makes what a test needs of what the SDK gives.
func as[T any](from any) (to T, err error) {
	encoded, err := json.Marshal(from)
	if err == nil {
		err = json.Unmarshal(encoded, &to)
	}
	return to, err
}

func (c *goClient) SessionUpdate(_ context.Context, n acp.SessionNotification) error {
	u, err := as[acpUpdate](n.Update)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.result.Updates = append(c.result.Updates, u)
	return err
}

func (c *goClient) RequestPermission(_ context.Context, p acp.RequestPermissionRequest) (r acp.RequestPermissionResponse, err error) {
	asked, err := as[acpAsked](p)
	if err != nil {
		return r, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.result.Asked = append(c.result.Asked, asked)
	for _, o := range p.Options {
		if string(o.Kind) == c.task.Option {
			r.Outcome = acp.NewRequestPermissionOutcomeSelected(o.OptionId)
			return r, nil
		}
	}
	return r, errors.New("the answer is not offered")
}

// eachACPClient runs a test for each CLI with each client.
func eachACPClient(t *testing.T, test func(t *testing.T, cli, client string)) {
	for cli := range acpCLIs {
		for client := range acpClients {
			t.Run(fmt.Sprintf("%s with %s", cli, client), func(t *testing.T) {
				t.Parallel()
				test(t, cli, client)
			})
		}
	}
}
