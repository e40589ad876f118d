package mcpserver

import (
	"context"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/busdk/bus-agent/delegation"
	"github.com/busdk/bus-agent/session"
)

// addSessions adds the tools for sessions.
func (t *tools) addSessions(s *mcp.Server) {
	mcp.AddTool(s, &mcp.Tool{
		Name: "start_session", Title: "Start a session with an agent",
		Description: "Starts a conversation of many turns with an agent and waits for its first answer. " +
			"The session lasts until stop_session. If state is waiting, the agent waits for answer_request.",
		Annotations: t.acting(), InputSchema: schemaOf[agentInput](),
	}, t.startSession)
	mcp.AddTool(s, &mcp.Tool{
		Name: "send_message", Title: "Send a message to an agent",
		Description: "Sends the next message to the agent of a session and waits for the answer. If state is waiting, the agent waits for answer_request.",
		Annotations: t.acting(), InputSchema: schemaOf[sendInput](),
	}, t.sendMessage)
	mcp.AddTool(s, &mcp.Tool{
		Name: "answer_request", Title: "Answer an agent",
		Description: "Answers an approval request of an agent with a decision, or its questions with answers, and waits until the turn ends. " +
			"Approval requests can be accepted only if list_runtimes shows approve.",
		Annotations: t.acting(), InputSchema: schemaOf[answerInput](),
	}, t.answerRequest)
	mcp.AddTool(s, &mcp.Tool{
		Name: "read_session", Title: "Read a session",
		Description: "Returns what the agent of a session did, and its last answer, without waiting.",
		Annotations: reading, InputSchema: schemaOf[readInput](),
	}, t.readSession)
	mcp.AddTool(s, &mcp.Tool{
		Name: "stop_session", Title: "Stop a session",
		Description: "Ends a session and its agent.",
		Annotations: &mcp.ToolAnnotations{IdempotentHint: true, DestructiveHint: new(bool), OpenWorldHint: new(bool)}, InputSchema: schemaOf[stopInput](),
	}, t.stopSession)
}

type sendInput struct {
	Session string `json:"session_id" jsonschema:"from start_session"`
	Message string `json:"message" jsonschema:"the message"`
	Timeout int    `json:"timeout_seconds,omitempty" jsonschema:"interrupt the agent after this time; absent: the limit of the server"`
}

type answerInput struct {
	Session  string   `json:"session_id" jsonschema:"from start_session"`
	Request  string   `json:"request_id" jsonschema:"id of the request, from requests"`
	Decision string   `json:"decision,omitempty" jsonschema:"accept or decline an approval request, decline questions, or cancel to end the turn"`
	Answers  []string `json:"answers,omitempty" jsonschema:"an answer for each question: the label or number of an option, or a text"`
}

type readInput struct {
	Session string `json:"session_id" jsonschema:"from start_session"`
	From    int    `json:"from,omitempty" jsonschema:"number of the first note to return: next of the last reading; absent: all that are kept"`
}

type stopInput struct {
	Session string `json:"session_id" jsonschema:"from start_session"`
}

type statusOutput struct {
	failure
	delegation.Status
}

type readOutput struct {
	failure
	delegation.Reading
}

func (t *tools) startSession(ctx context.Context, req *mcp.CallToolRequest, in agentInput) (*mcp.CallToolResult, statusOutput, error) {
	return t.converse(ctx, req, func(report func(string)) (delegation.Status, error) {
		task, err := in.task(ctx, req.Session)
		if err != nil {
			return delegation.Status{}, err
		}
		return t.broker.Start(ctx, task, elicits(req.Session), report)
	})
}

func (t *tools) sendMessage(ctx context.Context, req *mcp.CallToolRequest, in sendInput) (*mcp.CallToolResult, statusOutput, error) {
	return t.converse(ctx, req, func(report func(string)) (delegation.Status, error) {
		return t.broker.Send(ctx, in.Session, in.Message, seconds(in.Timeout), report)
	})
}

func (t *tools) answerRequest(ctx context.Context, req *mcp.CallToolRequest, in answerInput) (*mcp.CallToolResult, statusOutput, error) {
	return t.converse(ctx, req, func(report func(string)) (delegation.Status, error) {
		reply := delegation.Reply{Decision: session.Decision(in.Decision), Answers: in.Answers}
		return t.broker.Answer(ctx, in.Session, in.Request, reply, report)
	})
}

// converse makes a call that waits for an agent. While the agent waits for approvals, it
// asks the user of the client, if the client can.
func (t *tools) converse(ctx context.Context, req *mcp.CallToolRequest, begin func(report func(string)) (delegation.Status, error)) (*mcp.CallToolResult, statusOutput, error) {
	report, end := progress(ctx, req)
	defer end()
	status, err := begin(report)
	for err == nil && elicits(req.Session) {
		request, ok := approvalOf(status)
		if !ok {
			break
		}
		decision, asked := elicit(ctx, req.Session, status, request)
		if !asked {
			break
		}
		status, err = t.broker.Answer(ctx, status.SessionID, request.ID, delegation.Reply{Decision: decision, ByUser: true}, report)
	}
	return statusResult(status, err)
}

// approvalOf returns the first approval request that is open.
func approvalOf(status delegation.Status) (delegation.Request, bool) {
	for _, r := range status.Requests {
		if len(r.Questions) == 0 {
			return r, true
		}
	}
	return delegation.Request{}, false
}

// elicits reports whether the client can ask its user.
func elicits(client *mcp.ServerSession) bool {
	params := client.InitializeParams()
	return params != nil && params.Capabilities != nil && params.Capabilities.Elicitation != nil
}

// elicit asks the user of the client about an approval request. Without an answer of the
// user, the request is declined; asked reports whether the client has asked.
func elicit(ctx context.Context, client *mcp.ServerSession, status delegation.Status, r delegation.Request) (decision session.Decision, asked bool) {
	text := fmt.Sprintf("The agent in session %s asks for approval: %s %s", status.SessionID, r.Tool, r.Input)
	if r.Reason != "" {
		text += "\nIts reason: " + r.Reason
	}
	answer, err := client.Elicit(ctx, &mcp.ElicitParams{
		Message: text,
		RequestedSchema: map[string]any{
			"type": "object", "required": []string{"approve"},
			"properties": map[string]any{"approve": map[string]any{"type": "boolean", "title": "Approve"}},
		},
	})
	switch {
	case err != nil:
		return "", false
	case answer.Action == "accept" && answer.Content["approve"] == true:
		return session.Accept, true
	}
	return session.Decline, true
}

func (t *tools) readSession(_ context.Context, _ *mcp.CallToolRequest, in readInput) (*mcp.CallToolResult, readOutput, error) {
	r, err := t.broker.Read(in.Session, in.From)
	var lines []string
	for _, n := range r.Notes {
		lines = append(lines, fmt.Sprintf("%d. %s: %s", n.Number, n.Kind, n.Text))
	}
	f := failureOf(err)
	return result(strings.Join(append(lines, statusText(r.Status)), "\n"), f), readOutput{f, r}, nil
}

func (t *tools) stopSession(ctx context.Context, _ *mcp.CallToolRequest, in stopInput) (*mcp.CallToolResult, statusOutput, error) {
	status, err := t.broker.Stop(ctx, in.Session)
	f := failureOf(err)
	return result(fmt.Sprintf("[session_id %s; state %s]", status.SessionID, status.State), f), statusOutput{f, status}, nil
}

func statusResult(status delegation.Status, err error) (*mcp.CallToolResult, statusOutput, error) {
	f := failureOf(err)
	return result(statusText(status), f), statusOutput{f, status}, nil
}

// statusText returns a status for readers.
func statusText(status delegation.Status) string {
	if status.SessionID == "" {
		return ""
	}
	var b strings.Builder
	if status.Text != "" {
		b.WriteString(status.Text + "\n\n")
	}
	for _, r := range status.Requests {
		if len(r.Questions) == 0 {
			fmt.Fprintf(&b, "Request %s asks for approval: %s %s\n", r.ID, r.Tool, r.Input)
			continue
		}
		fmt.Fprintf(&b, "Request %s has questions:\n", r.ID)
		for _, q := range r.Questions {
			b.WriteString("- " + q.Text)
			for i, o := range q.Options {
				fmt.Fprintf(&b, " (%d) %s", i+1, o.Label)
			}
			b.WriteString("\n")
		}
	}
	fmt.Fprintf(&b, "[session_id %s; state %s", status.SessionID, status.State)
	if summary := summarize(status.Answer); summary != "" {
		b.WriteString("; " + summary)
	}
	return b.String() + "]"
}
