package runs

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/busdk/bus-agent/internal/statefile"
)

// busName is the message bus file of a task.
const busName = "TASK-MESSAGE-BUS.md"

// The limits of a message bus file that is read.
const maxBus, maxMessages = 16 << 20, 20_000 // bytes, messages

// The types of messages that a run posts.
const (
	MessageStart = "RUN_START"
	MessageStop  = "RUN_STOP"
	MessageCrash = "RUN_CRASH"
)

// A Message is a message in the message bus file of a task.
type Message struct {
	ID      string    `yaml:"msg_id" json:"msg_id"`
	Time    time.Time `yaml:"ts" json:"ts"`
	Type    string    `yaml:"type" json:"type"`
	Project string    `yaml:"project_id" json:"project_id"`
	Task    string    `yaml:"task_id,omitempty" json:"task_id,omitempty"`
	Run     string    `yaml:"run_id,omitempty" json:"run_id,omitempty"`
	Body    string    `yaml:"-" json:"body"`
}

// messageNumber counts the messages of this process.
var messageNumber atomic.Int64

// newMessageID returns an ID as the Agent Protocol defines it.
func newMessageID(now time.Time) string {
	now = now.UTC()
	return fmt.Sprintf("MSG-%s-%09d-PID%05d-%04d", now.Format("20060102-150405"), now.Nanosecond(), os.Getpid(), messageNumber.Add(1))
}

// delimiter is the line before and after the header of a message.
const delimiter = "---"

// marshal returns the message in the form of the file.
func (m *Message) marshal() ([]byte, error) {
	header, err := yaml.Dump(m, yaml.WithV3Defaults(), yaml.WithLineWidth(-1))
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteString(delimiter + "\n")
	b.Write(header)
	b.WriteString(delimiter + "\n")
	for line := range strings.Lines(strings.TrimRight(m.Body, "\n") + "\n") {
		if strings.TrimRight(line, "\r\n") == delimiter { // it would begin a message
			b.WriteByte(' ')
		}
		b.WriteString(line)
	}
	return b.Bytes(), nil
}

// Post appends a message to the message bus file at path, and creates the file if it
// does not exist. It sets ID and Time if they are zero. Several processes may call it
// at once; it fails when another holds the file for more than 10 seconds, or if path is
// not a regular file.
func Post(path string, m Message) error {
	folder, err := statefile.OpenDir(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer folder.Close()
	return postIn(context.Background(), folder, filepath.Base(path), m)
}

func postIn(ctx context.Context, folder *statefile.Dir, name string, m Message) error {
	if m.Time.IsZero() {
		m.Time = time.Now().UTC()
	}
	if m.ID == "" {
		m.ID = newMessageID(m.Time)
	}
	text, err := m.marshal()
	if err != nil {
		return err
	}
	f, err := folder.Append(name)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := statefile.WaitLock(ctx, f); err != nil {
		return err
	}
	defer func() { _ = statefile.Unlock(f) }()
	size, err := f.Seek(0, 2)
	if err != nil {
		return err
	}
	if size > 0 {
		text = append([]byte("\n"), text...)
	}
	if _, err := f.Write(text); err != nil {
		_ = f.Truncate(size) // no half message; err has the cause
		return err
	}
	return nil
}

// Messages returns the messages of the run's task, also those of its other runs; see
// [ReadMessages].
func (r *Run) Messages() ([]Message, error) {
	return ReadMessages(filepath.Join(r.Dir, "..", "..", busName))
}

// ReadMessages returns the messages of a message bus file in order. Text between
// messages belongs to the one before it. A file of more than 16 MiB or 20,000 messages,
// or one that is not regular, is an error.
func ReadMessages(path string) ([]Message, error) {
	return readMessages(path, maxBus, maxMessages)
}

func readMessages(path string, most int64, mostMessages int) ([]Message, error) {
	text, err := statefile.Read(path, most)
	if err != nil {
		return nil, err
	}
	var messages []Message
	lines := strings.SplitAfter(string(text), "\n")
	headers := 0
	for i := 0; i < len(lines); {
		if strings.TrimRight(lines[i], "\r\n") == delimiter {
			if headers++; headers > mostMessages {
				return nil, fmt.Errorf("%s: more than %d messages", path, mostMessages)
			}
		}
		if m, next, ok := parseHeader(lines, i); ok {
			trim(messages)
			messages = append(messages, m)
			i = next
			continue
		}
		if len(messages) > 0 {
			messages[len(messages)-1].Body += lines[i]
		}
		i++
	}
	trim(messages)
	return messages, nil
}

// trim removes the empty lines at the end of the last message.
func trim(messages []Message) {
	if n := len(messages); n > 0 {
		messages[n-1].Body = strings.TrimRight(messages[n-1].Body, "\n")
	}
}

// maxHeader bounds the lines of a message's header.
const maxHeader = 200

// parseHeader parses the header of a message that begins at lines[i].
func parseHeader(lines []string, i int) (m Message, next int, ok bool) {
	if strings.TrimRight(lines[i], "\r\n") != delimiter {
		return m, 0, false
	}
	for end := i + 1; end < len(lines) && end < i+maxHeader; end++ {
		if strings.TrimRight(lines[end], "\r\n") != delimiter {
			continue
		}
		err := loadYAML([]byte(strings.Join(lines[i+1:end], "")), &m)
		if m.Time = m.Time.UTC(); m.Time.Year() < 0 || m.Time.Year() > 9999 {
			m.Time = time.Time{} // which JSON cannot hold
		}
		return m, end + 1, err == nil && m.ID != "" && m.Type != ""
	}
	return m, 0, false
}

// post adds a message of the run to its task.
func (r *record) post(ctx context.Context, kind, body string) error {
	return postIn(ctx, r.taskFolder, busName, Message{Type: kind, Project: r.info.ProjectID, Task: r.info.TaskID, Run: r.info.RunID, Body: body})
}

func (r *record) startText() string {
	return fmt.Sprintf("run started\nrun_dir: %s\nprompt: %s\nstdout: %s\nstderr: %s\noutput: %s\n",
		r.dir, r.info.PromptPath, r.info.StdoutPath, r.info.StderrPath, r.info.OutputPath)
}

// The limits of the standard error in the message of a failed run.
const tailLines, tailBytes = 50, 16 << 10

func (r *record) endText() string {
	text := fmt.Sprintf("run stopped with code %d\nrun_dir: %s\noutput: %s\n", r.info.ExitCode, r.dir, r.info.OutputPath)
	if r.info.Status == StatusCompleted {
		return text
	}
	if r.info.Error != "" {
		text += "error: " + strings.ReplaceAll(r.info.Error, "\n", " ") + "\n"
	}
	if tail := r.stderr.lastLines(); tail != "" {
		text += fmt.Sprintf("\n## stderr (last %d lines)\n%s\n", tailLines, tail)
	}
	return text
}

// lastLines returns the last lines of the file.
func (o *outputFile) lastLines() string {
	written, err := o.written()
	if err != nil {
		return ""
	}
	from := max(0, written.Size()-tailBytes)
	text := make([]byte, written.Size()-from)
	n, _ := written.ReadAt(text, from)
	text = text[:n]
	if from > 0 {
		_, text, _ = bytes.Cut(text, []byte("\n"))
	}
	lines := strings.Split(strings.TrimRight(strings.ToValidUTF8(string(text), "\uFFFD"), "\n"), "\n")
	if len(lines) > tailLines {
		lines = lines[len(lines)-tailLines:]
	}
	return strings.Join(lines, "\n")
}
