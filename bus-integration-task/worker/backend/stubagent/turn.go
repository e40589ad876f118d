package stubagent

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// turn is one turn of the thread.
type turn struct {
	server    *server
	id        string
	number    int
	items     int
	interrupt context.CancelFunc
	guidance  chan string
	failure   object // nil unless the turn failed

	late    chan struct{}     // nil without the step late; closed by the first message
	refused []json.RawMessage // IDs of the messages; guarded by the server's mu
}

// ends ends the step late; the server's mu is held.
func (t *turn) ends() {
	if len(t.refused) == 1 {
		close(t.late)
	}
}

// play does the steps of a prompt.
func (t *turn) play(ctx context.Context, prompt string) {
	for _, step := range stepsOf(prompt) {
		verb, rest, _ := strings.Cut(step, " ")
		t.do(ctx, verb, rest)
		if ctx.Err() != nil || t.failure != nil {
			return
		}
	}
}

func stepsOf(prompt string) (steps []string) {
	for text := range strings.Lines(prompt) {
		if step, ok := strings.CutPrefix(strings.TrimSpace(text), "stub: "); ok {
			steps = append(steps, step)
		}
	}
	return steps
}

func (t *turn) do(ctx context.Context, verb, rest string) {
	first, second, _ := strings.Cut(rest, " ")
	number, _ := strconv.Atoi(first) // 0 for none
	switch verb {
	case "say":
		t.item("agentMessage", object{"text": rest})
	case "stream":
		t.stream(number)
	case "run":
		t.run(number, second)
	case "write":
		t.writeFile(first, second)
	case "plan":
		t.plan(number, second)
	case "ask":
		t.ask(ctx, rest)
	case "question":
		t.question(ctx, rest)
	case "guide":
		select {
		case text := <-t.guidance:
			if len(stepsOf(text)) == 0 {
				text = "stub: say guidance: " + text
			}
			t.play(ctx, text)
		case <-ctx.Done():
		}
	case "late":
		select {
		case <-t.late:
		case <-ctx.Done():
		}
	case "await":
		for !exists(rest) && ctx.Err() == nil {
			time.Sleep(2 * time.Millisecond)
		}
	case "touch":
		_ = os.WriteFile(rest, nil, 0o600) // the test that waits for it fails
	case "thread":
		t.item("agentMessage", object{"text": "thread " + t.server.thread + " turn " + strconv.Itoa(t.number)})
	case "env":
		t.item("agentMessage", object{"text": rest + "=" + os.Getenv(rest)})
	case "quota":
		t.failure = object{"message": "usage limit reached", "codexErrorInfo": "usageLimitExceeded"}
	case "logout":
		t.failure = object{"message": "not logged in", "codexErrorInfo": "unauthorized"}
	case "fail":
		t.failure = object{"message": rest}
	case "die":
		os.Exit(number)
	case "hang":
		<-ctx.Done()
	}
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// newItem returns an item of the turn.
func (t *turn) newItem(kind string) object {
	t.items++
	return object{"id": t.id + "-" + strconv.Itoa(t.items), "type": kind}
}

func (t *turn) item(kind string, fields object) {
	item := t.newItem(kind)
	for name, value := range fields {
		item[name] = value
	}
	t.server.notify("item/completed", object{"turnId": t.id, "item": item})
}

func (t *turn) stream(n int) {
	item := t.newItem("agentMessage")
	var whole strings.Builder
	for i := range n {
		delta := "word" + strconv.Itoa(i) + " "
		whole.WriteString(delta)
		t.server.notify("item/agentMessage/delta", object{"turnId": t.id, "itemId": item["id"], "delta": delta})
	}
	item["text"] = whole.String()
	t.server.notify("item/completed", object{"turnId": t.id, "item": item})
}

func (t *turn) run(code int, command string) {
	item := t.newItem("commandExecution")
	item["command"], item["status"] = command, "inProgress"
	t.server.notify("item/started", object{"turnId": t.id, "item": item})
	item["status"], item["exitCode"], item["aggregatedOutput"] = "completed", code, "output of "+command+"\n"
	if code != 0 {
		item["status"] = "failed"
	}
	t.server.notify("item/completed", object{"turnId": t.id, "item": item})
}

func (t *turn) writeFile(name, text string) {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.failure = object{"message": err.Error()}
		return
	}
	if err := os.WriteFile(name, []byte(text+"\n"), 0o644); err != nil {
		t.failure = object{"message": err.Error()}
		return
	}
	change := object{"path": name, "kind": object{"type": "add"}, "diff": text + "\n"}
	t.item("fileChange", object{"changes": []object{change}, "status": "completed"})
}

func (t *turn) plan(done int, all string) {
	n, _ := strconv.Atoi(all) // 0 for none
	var steps []object
	for i := range n {
		status := "pending"
		if i < done {
			status = "completed"
		}
		steps = append(steps, object{"step": "step " + strconv.Itoa(i+1), "status": status})
	}
	t.server.notify("turn/plan/updated", object{"turnId": t.id, "plan": steps})
}

// ask requests approval of a command and waits for the decision.
func (t *turn) ask(ctx context.Context, command string) {
	item := t.newItem("commandExecution")
	d := t.request(ctx, "item/commandExecution/requestApproval", object{"itemId": item["id"], "reason": "need it", "command": command})
	switch d {
	case "":
	case "cancel":
		t.interrupt()
	default:
		t.item("agentMessage", object{"text": "decision: " + d})
	}
}

// question asks the user and waits for the answer.
func (t *turn) question(ctx context.Context, text string) {
	got := t.request(ctx, "item/tool/requestUserInput", object{"itemId": t.id, "questions": []object{{"id": "q", "header": "Q", "question": text, "isOther": true}}})
	if got != "" {
		t.item("agentMessage", object{"text": "got " + got})
	}
}

// request sends a request and returns what answers it, or "" if ctx ends before.
func (t *turn) request(ctx context.Context, method string, params object) string {
	s := t.server
	decided := make(chan string, 1)
	s.mu.Lock()
	s.requests++
	id := strconv.Itoa(s.requests)
	s.approvals[id] = decided
	s.mu.Unlock()
	params["threadId"], params["turnId"] = s.thread, t.id
	s.send(message{ID: json.RawMessage(id), Method: method, Params: params})
	select {
	case d := <-decided:
		return d
	case <-ctx.Done():
		return ""
	}
}
