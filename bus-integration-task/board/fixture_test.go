package board

import (
	"encoding/json"
	"strings"

	"github.com/busdk/bus-integration-task/task"
)

// hostileTexts act on what shows them, unless they are shown as text.
var hostileTexts = []string{
	`<img src=x onerror="window.zapped=1">`, `<script>window.zapped=1</script>`, `</script><svg onload="window.zapped=1">`, `<a href="javascript:window.zapped=1">x</a>`,
	`"><iframe src="http://127.0.0.1:9/">`, `' onmouseover='window.zapped=1`, "\x1b[2J\x1b]0;title\x07\x9b31m", "a\u202eb\u2066c\u2069\u200b\ufeff\u00ad", "data: x\n\nevent: message\ndata: {}\n\n",
	"\r\n\r\n: x\u2028\u2029\x00\x7f", `__proto__`, `constructor`, strings.Repeat("W", 5000), strings.Repeat("\n\u202e<", 3000), "a&b=c#d?e%2f../../", "\xff\xfe invalid",
}

// hostileLog has a task for each of the texts, which is in each of its fields.
func hostileLog() *memory {
	m := newMemory()
	for _, text := range hostileTexts {
		ref := strings.ToValidUTF8(text[:min(len(text), maxRef-1)], "")
		m.add(task.Created, task.Payload{WorkRef: ref, Recipient: text, Sender: text, Text: text, Body: text, Branch: text, Labels: task.Labels{WorkerProfile: text, RequestedModel: text}})
		p := task.Payload{WorkRef: ref, WorkerID: text, AttemptID: text, LeaseSeconds: 60}
		m.add(task.Claimed, p)
		p.Text, p.Body, p.ThreadID = text, text, text
		m.add(task.Message, p)
		p.ApprovalID = text
		m.add(task.ApprovalRequested, p)
		p.RunID, p.Commit = text, text
		p.Attachments = []task.Attachment{{Path: text, MediaType: "text/x-diff", Content: "+" + text + "\n-" + text}, {Path: text, MediaType: text}, {Path: "e", MediaType: "text/x-diff", ContentEncoding: text}}
		p.Closeout, p.Evidence = json.RawMessage(text), json.RawMessage(`{"x":"<b>"}`)
		end := p
		end.WorkRef = ref + "2"
		created := task.Payload{WorkRef: end.WorkRef, Recipient: text, Text: text}
		m.add(task.Created, created)
		m.add(task.Claimed, task.Payload{WorkRef: end.WorkRef, WorkerID: text, AttemptID: text})
		m.add(task.Done, end)
	}
	return m
}
