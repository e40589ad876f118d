package mcpserver

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/busdk/bus-agent/delegation"
	"github.com/busdk/bus-agent/runs"
)

// addRecords adds the tools for records of runs.
func (t *tools) addRecords(s *mcp.Server) {
	list := schemaOf[listRunsInput]()
	list.Properties["limit"].Minimum = jsonschema.Ptr(1.0)
	for _, status := range []runs.Status{runs.StatusRunning, runs.StatusCompleted, runs.StatusFailed, runs.StatusCrashed, runs.StatusUnknown} {
		list.Properties["status"].Enum = append(list.Properties["status"].Enum, string(status))
	}
	mcp.AddTool(s, &mcp.Tool{
		Name: "list_runs", Title: "List recorded runs",
		Description: "Lists the records of earlier runs in the folder of this server, the latest first.",
		Annotations: reading, InputSchema: list,
	}, t.listRuns)
	read := schemaOf[readRunInput]()
	read.Properties["part"].Enum = []any{"answer", "prompt"}
	mcp.AddTool(s, &mcp.Tool{
		Name: "read_run", Title: "Read a recorded run",
		Description: "Returns the record of a run in the folder of this server, with its answer or its prompt.",
		Annotations: reading, InputSchema: read,
	}, t.readRun)
}

type listRunsInput struct {
	Status  string `json:"status,omitempty" jsonschema:"list the runs with this status only"`
	Runtime string `json:"runtime,omitempty" jsonschema:"list the runs of this runtime only"`
	Limit   int    `json:"limit,omitempty" jsonschema:"how many runs to list; absent: 20, at most 200"`
}

type readRunInput struct {
	Run  string `json:"run_id" jsonschema:"from list_runs"`
	Part string `json:"part,omitempty" jsonschema:"the text to return; absent: the answer"`
}

type listRunsOutput struct {
	failure
	Runs []delegation.Record `json:"runs"`
}

type readRunOutput struct {
	failure
	delegation.Record
}

func (t *tools) listRuns(ctx context.Context, _ *mcp.CallToolRequest, in listRunsInput) (*mcp.CallToolResult, listRunsOutput, error) {
	list, err := t.broker.Records(ctx, runs.Status(in.Status), in.Runtime, in.Limit)
	var lines []string
	for _, r := range list {
		lines = append(lines, recordLine(r))
	}
	if len(lines) == 0 && err == nil {
		lines = []string{"No runs are recorded."}
	}
	f := failureOf(err)
	return result(strings.Join(lines, "\n"), f), listRunsOutput{f, list}, nil
}

func (t *tools) readRun(ctx context.Context, _ *mcp.CallToolRequest, in readRunInput) (*mcp.CallToolResult, readRunOutput, error) {
	file := runs.FileOutput
	if in.Part == "prompt" {
		file = runs.FilePrompt
	}
	r, err := t.broker.Record(ctx, in.Run, file)
	text := r.Text
	if r.RunID != "" {
		text += "\n\n[" + recordLine(r) + "]"
	}
	f := failureOf(err)
	return result(text, f), readRunOutput{f, r}, nil
}

func recordLine(r delegation.Record) string {
	line := fmt.Sprintf("%s %s %s %s", r.RunID, r.Runtime, r.Status, r.Started)
	if r.Reason != "" {
		line += ": " + r.Reason
	}
	return line
}
