package acpagent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/coder/acp-go-sdk"

	"github.com/busdk/bus-agent/internal/testwait"
	"github.com/busdk/bus-agent/runner"
	"github.com/busdk/bus-agent/session/acpagent"
	"github.com/busdk/bus-agent/session/control"
)

// bench is a server for the stub, and its state folder.
type bench struct {
	t       *testing.T
	server  acpagent.Server
	store   *control.Store
	workdir string
	// before, if not nil, is called before the calls resume, steer, set_model and
	// set_access of the engine, with a context that also ends with the agent. A call
	// fails with its error.
	before func(ctx context.Context, call string) error

	mu       sync.Mutex
	warnings []string
}

func newBench(t *testing.T, runtime string) *bench {
	t.Helper()
	bin, home := t.TempDir(), t.TempDir()
	self, err := os.Executable()
	if err == nil {
		err = os.Symlink(self, filepath.Join(bin, "stub"))
	}
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, workdir: t.TempDir(), store: control.NewStore(filepath.Join(home, "state"))}
	m := &control.Manager{
		Runner: &runner.Runner{Registry: runtimes(b), Environ: []string{"PATH=" + bin, "HOME=" + home, "TMPDIR=" + home, "GORACE=atexit_sleep_ms=0"}, Warn: b.warn},
		Store:  b.store, Serve: true,
	}
	b.server = acpagent.Server{
		Manager: func(context.Context, control.Settings) (*control.Manager, error) { return m, nil },
		Start:   control.StartOptions{Settings: control.Settings{Runtime: runtime}},
		Warn:    b.warn,
	}
	return b
}

func (b *bench) warn(line string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.warnings = append(b.warnings, line)
}

// client is the client of acp-go-sdk.
type client struct {
	*acp.ClientSideConnection
	b      *bench
	input  *io.PipeWriter
	ended  chan error // the result of Serve
	permit func(context.Context, acp.RequestPermissionRequest) (acp.RequestPermissionResponse, error)

	mu      sync.Mutex
	updates []string
}

// connect starts a server and a client.
func (b *bench) connect() *client {
	b.t.Helper()
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	c := &client{b: b, input: toServer, ended: make(chan error, 1)}
	go func() {
		err := b.server.Serve(context.Background(), in, out)
		out.Close()
		c.ended <- err
	}()
	c.ClientSideConnection = acp.NewClientSideConnection(c, toServer, fromServer)
	c.SetLogger(slog.New(slog.DiscardHandler))
	b.t.Cleanup(c.leave)
	got, err := c.Initialize(b.t.Context(), acp.InitializeRequest{ProtocolVersion: acp.ProtocolVersionNumber})
	if err != nil || got.ProtocolVersion != 1 || !got.AgentCapabilities.LoadSession || !got.AgentCapabilities.PromptCapabilities.EmbeddedContext ||
		got.AgentCapabilities.PromptCapabilities.Image != (b.server.Start.Runtime == "stub") {
		b.t.Fatalf("%+v, %v", got, err)
	}
	return c
}

// leave ends the connection and waits for the end of the server.
func (c *client) leave() {
	c.input.Close()
	if err := <-c.ended; err != nil {
		c.b.t.Errorf("Serve: %v", err)
	}
	c.ended <- nil
}

// open starts a session.
func (c *client) open() acp.SessionId {
	c.b.t.Helper()
	got, err := c.NewSession(c.b.t.Context(), acp.NewSessionRequest{Cwd: c.b.workdir, McpServers: []acp.McpServer{}})
	if err != nil {
		c.b.t.Fatal(err)
	}
	return got.SessionId
}

// say sends a prompt and returns how its turn has ended.
func (c *client) say(id acp.SessionId, text string) (acp.PromptResponse, error) {
	return c.Prompt(c.b.t.Context(), acp.PromptRequest{SessionId: id, Prompt: []acp.ContentBlock{acp.TextBlock(text)}})
}

// take returns the updates up to now, and forgets them.
func (c *client) take() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := strings.Join(c.updates, "\n")
	c.updates = nil
	return strings.ReplaceAll(all, c.b.workdir, "DIR")
}

// has waits for an update with a text.
func (c *client) has(text string) {
	c.b.t.Helper()
	testwait.Until(c.b.t, "an update with "+text, func() (string, bool) {
		c.mu.Lock()
		defer c.mu.Unlock()
		all := strings.Join(c.updates, "\n")
		return all, strings.Contains(all, text)
	})
}

// SessionUpdate keeps an update, without the IDs of messages.
func (c *client) SessionUpdate(_ context.Context, n acp.SessionNotification) error {
	line, err := json.Marshal(n.Update)
	if err != nil {
		return err
	}
	var members map[string]any
	if err := json.Unmarshal(line, &members); err != nil {
		return err
	}
	kind := members["sessionUpdate"]
	delete(members, "sessionUpdate")
	delete(members, "messageId")
	line, err = json.Marshal(members)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.updates = append(c.updates, fmt.Sprintf("%s %s", kind, line))
	return err
}

func (c *client) RequestPermission(ctx context.Context, p acp.RequestPermissionRequest) (acp.RequestPermissionResponse, error) {
	return c.permit(ctx, p)
}

var errUnused = errors.New("was not offered")

func (c *client) ReadTextFile(context.Context, acp.ReadTextFileRequest) (r acp.ReadTextFileResponse, err error) {
	return r, errUnused
}
func (c *client) WriteTextFile(context.Context, acp.WriteTextFileRequest) (r acp.WriteTextFileResponse, err error) {
	return r, errUnused
}
func (c *client) CreateTerminal(context.Context, acp.CreateTerminalRequest) (r acp.CreateTerminalResponse, err error) {
	return r, errUnused
}
func (c *client) KillTerminal(context.Context, acp.KillTerminalRequest) (r acp.KillTerminalResponse, err error) {
	return r, errUnused
}
func (c *client) TerminalOutput(context.Context, acp.TerminalOutputRequest) (r acp.TerminalOutputResponse, err error) {
	return r, errUnused
}
func (c *client) ReleaseTerminal(context.Context, acp.ReleaseTerminalRequest) (r acp.ReleaseTerminalResponse, err error) {
	return r, errUnused
}
func (c *client) WaitForTerminalExit(context.Context, acp.WaitForTerminalExitRequest) (r acp.WaitForTerminalExitResponse, err error) {
	return r, errUnused
}
