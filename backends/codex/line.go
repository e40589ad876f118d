package codex

import (
	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/jsonline"
)

// line holds the members of every kind of line.
type line struct {
	kind     jsonline.Text // type
	threadID jsonline.Text
	message  jsonline.Text
	item     item
	hasItem  bool
	usage    *agent.Usage
	error    jsonline.Text // its message
}

type item struct {
	id     jsonline.Text
	kind   jsonline.Text // type
	status jsonline.Text

	text    jsonline.Text // agent_message, reasoning
	message jsonline.Text // error

	command  jsonline.Text // command_execution
	output   jsonline.Text // aggregated_output
	exitCode int
	exited   bool

	changes []agent.FileChange // file_change

	server    jsonline.Text // mcp_tool_call
	tool      jsonline.Text
	arguments []byte
	result    []byte
	error     jsonline.Text // its message
	failed    bool          // it has an error

	query jsonline.Text // web_search

	plan []agent.PlanStep // todo_list
}

// read reads raw into l and reports whether it is a line of the CLI.
func (l *line) read(raw []byte) bool {
	*l = line{}
	r := jsonline.New(raw)
	if r.Kind() != jsonline.Object {
		return false
	}
	for m := r.Object(); m.Next(); {
		switch string(m.Name()) {
		case "type":
			l.kind = r.Text()
		case "thread_id":
			l.threadID = r.Text()
		case "message":
			l.message = r.Text()
		case "item":
			l.hasItem = r.Kind() == jsonline.Object
			l.item.read(&r)
		case "usage":
			if r.Kind() == jsonline.Object {
				l.usage = readUsage(&r)
			}
		case "error":
			l.error = readMessage(&r)
		}
	}
	return r.End()
}

func (i *item) read(r *jsonline.Reader) {
	*i = item{}
	for m := r.Object(); m.Next(); {
		switch string(m.Name()) {
		case "id":
			i.id = r.Text()
		case "type":
			i.kind = r.Text()
		case "status":
			i.status = r.Text()
		case "text":
			i.text = r.Text()
		case "message":
			i.message = r.Text()
		case "command":
			i.command = r.Text()
		case "aggregated_output":
			i.output = r.Text()
		case "exit_code":
			if i.exited = !r.Null(); i.exited {
				i.exitCode = int(r.Int())
			}
		case "changes":
			i.changes = readChanges(r)
		case "server":
			i.server = r.Text()
		case "tool":
			i.tool = r.Text()
		case "arguments":
			i.arguments = r.Raw()
		case "result":
			i.result = r.Raw()
		case "error":
			i.failed = r.Kind() == jsonline.Object
			i.error = readMessage(r)
		case "query":
			i.query = r.Text()
		case "items":
			i.plan = readPlan(r)
		}
	}
}

// readMessage reads an error and returns its message.
func readMessage(r *jsonline.Reader) (message jsonline.Text) {
	for m := r.Object(); m.Next(); {
		if string(m.Name()) == "message" {
			message = r.Text()
		}
	}
	return message
}

func readUsage(r *jsonline.Reader) *agent.Usage {
	u := new(agent.Usage)
	for m := r.Object(); m.Next(); {
		switch string(m.Name()) {
		case "input_tokens":
			u.Input = r.Int()
		case "cached_input_tokens":
			u.Cached = r.Int()
		case "output_tokens":
			u.Output = r.Int()
		case "reasoning_output_tokens":
			u.Reasoning = r.Int()
		}
	}
	return u
}

// readChanges reads the changes of files. `codex exec --json` (0.169.0) reports no diffs;
// the App Server does.
func readChanges(r *jsonline.Reader) []agent.FileChange {
	changes := []agent.FileChange{}
	for e := r.Array(); e.Next(); {
		var c agent.FileChange
		for m := r.Object(); m.Next(); {
			switch string(m.Name()) {
			case "path":
				c.Path = r.String()
			case "kind":
				c.Action = r.String()
			}
		}
		changes = append(changes, c)
	}
	return changes
}

func readPlan(r *jsonline.Reader) []agent.PlanStep {
	plan := []agent.PlanStep{}
	for e := r.Array(); e.Next(); {
		step := agent.PlanStep{Status: "pending"}
		for m := r.Object(); m.Next(); {
			switch string(m.Name()) {
			case "text":
				step.Text = r.String()
			case "completed":
				if r.Bool() {
					step.Status = "completed"
				}
			}
		}
		plan = append(plan, step)
	}
	return plan
}
