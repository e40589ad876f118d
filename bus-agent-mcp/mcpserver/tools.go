//lint:file-ignore SA1019 hosts name their folders by roots until protocol 2026-07-28

package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/delegation"
	"github.com/busdk/bus-agent/session"
)

// tools are the tools of one server.
type tools struct {
	broker   *delegation.Broker
	settings delegation.Settings
}

// add adds the tools to a server.
func (t *tools) add(s *mcp.Server) {
	mcp.AddTool(s, &mcp.Tool{
		Name: "list_runtimes", Title: "List agent runtimes",
		Description: "Lists the agents that can be run here, the default one, and the limits of this server. Starts nothing.",
		Annotations: reading, InputSchema: schemaOf[listInput](),
	}, t.listRuntimes)
	mcp.AddTool(s, &mcp.Tool{
		Name: "run_agent", Title: "Run an agent",
		Description: "Runs another agent with a prompt, waits until it ends, and returns its final answer. " +
			"The agent works in the folder of this server and sees nothing of this conversation.",
		Annotations: t.acting(), InputSchema: schemaOf[runInput](),
	}, t.runAgent)
	t.addSessions(s)
	t.addRecords(s)
}

// reading are the annotations of tools that change nothing.
var reading = &mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, OpenWorldHint: new(bool)}

// acting returns the annotations of tools that start agents. An agent with access read
// changes nothing in the folder, but it calls its model.
func (t *tools) acting() *mcp.ToolAnnotations {
	changes := t.settings.Access != "" && t.settings.Access != agent.AccessRead
	return &mcp.ToolAnnotations{ReadOnlyHint: !changes, DestructiveHint: &changes}
}

// schemaOf returns the schema of an input, with the values that its members can have. It
// allows no other members, and no null for an array and no boolean schema, which not every
// client understands.
func schemaOf[T any]() *jsonschema.Schema {
	s, err := jsonschema.For[T](nil)
	if err != nil {
		panic(err) // T is a type of this package
	}
	for _, p := range s.Properties {
		if slices.Equal(p.Types, []string{"null", "array"}) {
			p.Type, p.Types = "array", nil
		}
		if p.Type == "object" {
			p.AdditionalProperties = nil
		}
	}
	if p := s.Properties["decision"]; p != nil {
		p.Enum = []any{string(session.Accept), string(session.Decline), string(session.Cancel)}
	}
	if p := s.Properties["access"]; p != nil {
		for _, a := range agent.Accesses() {
			p.Enum = append(p.Enum, string(a))
		}
	}
	if p := s.Properties["effort"]; p != nil {
		for _, e := range agent.Efforts() {
			p.Enum = append(p.Enum, string(e))
		}
	}
	if p := s.Properties["timeout_seconds"]; p != nil {
		p.Minimum, p.Maximum = jsonschema.Ptr(1.0), jsonschema.Ptr(1e9) // a time.Duration holds it
	}
	return s
}

type listInput struct {
	All bool `json:"all,omitempty" jsonschema:"list runtimes that are not available too, with the reason"`
}

func (t *tools) listRuntimes(ctx context.Context, _ *mcp.CallToolRequest, in listInput) (*mcp.CallToolResult, delegation.Overview, error) {
	o := t.broker.Runtimes(ctx, in.All)
	var b strings.Builder
	for _, r := range o.Runtimes {
		fmt.Fprintf(&b, "%s (%s)", r.ID, r.Name)
		if r.ID == o.Default {
			b.WriteString(", the default")
		}
		if !r.Available {
			b.WriteString(", not available: " + r.Reason)
		}
		b.WriteString("\n")
	}
	if len(o.Runtimes) == 0 {
		b.WriteString("No runtime is available.\n")
	}
	fmt.Fprintf(&b, "Access: %s at most. Runs left: %d. Folder: %s", o.Access, o.RunsLeft, o.Workdir)
	if o.Depth <= 0 {
		b.WriteString("\nAgents at this depth cannot start others.")
	}
	return result(b.String(), failure{}), o, nil
}

// An agentInput says which agent to start, and with what prompt.
type agentInput struct {
	Prompt  string `json:"prompt" jsonschema:"what the agent is to do, with all it needs to know"`
	Runtime string `json:"runtime,omitempty" jsonschema:"ID of the runtime, from list_runtimes; absent: the default"`
	Model   string `json:"model,omitempty" jsonschema:"name of the model, if the runtime takes one; absent: the default"`
	Effort  string `json:"effort,omitempty" jsonschema:"reasoning effort of the model"`
	Access  string `json:"access,omitempty" jsonschema:"what the agent may do: read (no changes), write (edit in the folder), full (no limits); absent: the most that this server allows"`
	Workdir string `json:"workdir,omitempty" jsonschema:"folder to work in, below that of the server; absent: that of the server"`
	Timeout int    `json:"timeout_seconds,omitempty" jsonschema:"end the agent after this time; absent: the limit of the server"`
}

// task returns the task of an input, in the folders that the client works in.
func (in agentInput) task(ctx context.Context, client *mcp.ServerSession) (delegation.Task, error) {
	roots, err := rootsOf(ctx, client)
	return delegation.Task{
		Prompt: in.Prompt, Runtime: in.Runtime, Model: in.Model, Effort: agent.ReasoningEffort(in.Effort),
		Access: agent.Access(in.Access), Workdir: in.Workdir, Roots: roots, Timeout: seconds(in.Timeout),
	}, err
}

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }

type runInput struct {
	agentInput
	Resume string         `json:"resume,omitempty" jsonschema:"session_id of an earlier run, to continue it"`
	Schema map[string]any `json:"schema,omitempty" jsonschema:"JSON Schema that the answer must follow"`
}

type runOutput struct {
	failure
	delegation.Answer
}

func (t *tools) runAgent(ctx context.Context, req *mcp.CallToolRequest, in runInput) (*mcp.CallToolResult, runOutput, error) {
	task, err := in.task(ctx, req.Session)
	if err != nil {
		f := failureOf(err)
		return result("", f), runOutput{failure: f}, nil
	}
	task.Resume = in.Resume
	if in.Schema != nil {
		task.Schema, _ = json.Marshal(in.Schema) // it was JSON
	}
	report, end := progress(ctx, req)
	answer, err := t.broker.Run(ctx, task, report)
	end()
	f := failureOf(err)
	text := answer.Text
	if summary := summarize(answer); text != "" && summary != "" {
		text += "\n\n[" + summary + "]"
	}
	return result(text, f), runOutput{f, answer}, nil
}

// summarize returns what a reader may need of an answer besides its text.
func summarize(a delegation.Answer) string {
	var parts []string
	for _, part := range []struct{ name, value string }{
		{"runtime", a.Runtime}, {"model", a.Model}, {"session_id", a.SessionID}, {"run_id", a.RunID}, {"changed", strings.Join(a.Changes, ", ")},
	} {
		if part.value != "" {
			parts = append(parts, part.name+" "+part.value)
		}
	}
	return strings.Join(parts, "; ")
}

// rootsOf returns the folders that the client works in, none if it does not report them.
func rootsOf(ctx context.Context, client *mcp.ServerSession) ([]string, error) {
	params := client.InitializeParams()
	if params == nil || params.Capabilities == nil || params.Capabilities.RootsV2 == nil {
		return nil, nil
	}
	list, err := client.ListRoots(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("the client does not list its roots: %w; nothing was started", err)
	}
	var roots []string
	for _, root := range list.Roots {
		u, err := url.Parse(root.URI)
		if err != nil || u.Scheme != "file" {
			return nil, agent.Usagef("root %q of the client is not a folder; nothing was started", root.URI)
		}
		roots = append(roots, u.Path)
	}
	return roots, nil
}
