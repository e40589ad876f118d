package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/busdk/bus-agent/delegation"
)

// A Server is an MCP server. The zero value is usable.
type Server struct {
	// Version is what the server reports as its version. Empty is "devel".
	Version string
}

// Serve serves a delegation with the settings s on the streams, a JSON message a line. It
// returns when stdin or ctx ends and all agents, with their processes, are gone. The end
// of stdin is not an error.
func (v Server) Serve(ctx context.Context, s delegation.Settings, stdin io.Reader, stdout io.Writer) error {
	return v.serve(ctx, s, &mcp.IOTransport{Reader: io.NopCloser(stdin), Writer: nopCloser{stdout}})
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// versions are those of the protocol in which a server can ask the client for roots and
// for decisions of the user while it serves a call. Later versions have neither.
var versions = []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}

const instructions = `Runs other AI coding agents on this machine. Call list_runtimes to see which are available and what they may do; then run_agent with a prompt that has all the agent needs to know, because it sees neither this conversation nor its files. Agents work in the same folder.`

func (v Server) serve(ctx context.Context, settings delegation.Settings, t mcp.Transport) error {
	broker, err := delegation.New(settings)
	if err != nil {
		return err
	}
	defer broker.Close()
	defer context.AfterFunc(ctx, broker.Close)() // so that calls return
	version := v.Version
	if version == "" {
		version = "devel"
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "bus-agent", Title: "bus-agent", Version: version}, &mcp.ServerOptions{
		Instructions: instructions, Capabilities: &mcp.ServerCapabilities{}, SupportedProtocolVersions: versions,
	})
	(&tools{broker: broker, settings: settings}).add(server)
	err = server.Run(ctx, t)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, mcp.ErrConnectionClosed) {
		return nil
	}
	return err
}

// failure is how a call failed, as part of its structured result.
type failure struct {
	Kind  string `json:"kind,omitempty" jsonschema:"why the call failed: usage, limit, not_installed, none_available, authentication, quota, agent, timeout, canceled or error; absent on success"`
	Error string `json:"error,omitempty" jsonschema:"the reason, in one line; absent on success"`
}

func failureOf(err error) failure {
	if err == nil {
		return failure{}
	}
	return failure{delegation.KindOf(err), strings.Join(strings.Fields(err.Error()), " ")}
}

// result returns the result of a call with a text for readers.
func result(text string, f failure) *mcp.CallToolResult {
	r := &mcp.CallToolResult{}
	if f.Kind != "" {
		r.IsError = true
		reason := fmt.Sprintf("%s: %s", f.Kind, f.Error)
		if text == "" {
			text = reason
		} else {
			text = reason + "\n\n" + text
		}
	}
	r.Content = []mcp.Content{&mcp.TextContent{Text: text}}
	return r
}
