package report

import (
	"cmp"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/busdk/bus-agent/runs"
)

const (
	// promptHead is how much of a prompt is read for its first line, which promptLine
	// bounds, in bytes.
	promptHead, promptLine = 16 << 10, 200
	// stderrEnd bounds the end of a run's standard error, stderrEnds that of all runs.
	stderrEnd, stderrEnds = 2 << 10, 750_000
	// busMessages bounds the messages of a run, busText each, in bytes.
	busMessages, busText = 20, 2 << 10
)

// texts are the short texts of a run's files.
type texts struct{ prompt, stderr string }

// readTexts reads the first lines of the prompts and the ends of standard error, those of
// failed runs first.
func readTexts(list []runs.Run, o *Options) []texts {
	all := make([]texts, len(list))
	if o.Open == nil {
		return all
	}
	for i := range list {
		all[i].prompt = promptOf(readFile(o, &list[i], runs.FilePrompt, readHead))
	}
	left := stderrEnds
	for _, failed := range []bool{true, false} {
		for i := range list {
			if run := &list[i]; left > 0 && failed == (failureKind(run) != "") {
				text := plain(readFile(o, run, runs.FileStderr, readEnd))
				for quotedSize(text) > 2*stderrEnd { // much of it had to be made visible
					text = "…" + text[startOfRune(text, len(text)/2):]
				}
				all[i].stderr = text
				left -= quotedSize(text)
			}
		}
	}
	return all
}

// readFile returns what read reads of a file, "" if there is no file or it cannot be read.
func readFile(o *Options, run *runs.Run, name string, read func(io.Reader) string) string {
	file, err := o.Open(run, name)
	if err != nil {
		return ""
	}
	defer file.Close()
	return read(file)
}

// readHead returns the beginning of a file, as far as it can be read.
func readHead(file io.Reader) string {
	text, _ := io.ReadAll(io.LimitReader(file, promptHead))
	return string(text)
}

// readEnd returns the last lines of a file, as far as they can be read.
func readEnd(file io.Reader) string {
	cut := false
	if s, ok := file.(io.Seeker); ok {
		if size, err := s.Seek(0, io.SeekEnd); err == nil {
			at, _ := s.Seek(max(0, size-stderrEnd), io.SeekStart)
			cut = at > 0
		}
	}
	var end []byte
	piece := make([]byte, 16<<10)
	for {
		n, err := file.Read(piece)
		end = append(end, piece[:n]...)
		if over := len(end) - stderrEnd; over > 0 { // it cannot seek, or has grown
			cut, end = true, end[:copy(end, end[over:])]
		}
		if err != nil {
			break
		}
	}
	text := strings.TrimSpace(strings.ToValidUTF8(string(end), "\uFFFD"))
	if !cut {
		return text
	}
	if _, lines, ok := strings.Cut(text, "\n"); ok {
		text = lines
	}
	return "…\n" + text
}

// promptOf returns the first line of a prompt, without the preamble about the record.
func promptOf(text string) string {
	if strings.HasPrefix(text, "JRUN_") {
		if _, after, ok := strings.Cut(text, "\n---\n"); ok {
			text = after
		}
	}
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line(first, promptLine)
}

// A message is one of the task's message bus on the page.
type message struct {
	Time int64  `json:"time,omitempty"`
	Type string `json:"type"`
	Text string `json:"text"`
	// Task reports that the message is of the task, not of the run.
	Task bool `json:"task,omitempty"`
}

// buses are the message buses of the tasks that were read.
type buses map[[3]string]*bus

type bus struct {
	byRun   map[string][]message
	problem string
}

// of returns the last messages of a run and of its task, oldest first.
func (b buses) of(run *runs.Run, o *Options) (list []message, problem string) {
	if o.Messages == nil {
		return nil, ""
	}
	key := [3]string{filepath.Dir(run.Dir), run.ProjectID, run.TaskID}
	if b[key] == nil {
		b[key] = readBus(run, o)
	}
	for _, m := range b[key].byRun[""] {
		m.Task = true
		list = append(list, m)
	}
	if run.RunID != "" {
		list = append(list, b[key].byRun[run.RunID]...)
	}
	slices.SortStableFunc(list, func(a, b message) int { return cmp.Compare(a.Time, b.Time) })
	return list, b[key].problem
}

func readBus(run *runs.Run, o *Options) *bus {
	b := &bus{byRun: map[string][]message{}}
	all, err := o.Messages(run)
	if err != nil {
		b.problem = bounded(err.Error(), metadataText)
	}
	for _, m := range all {
		text, _ := cut(plain(m.Body), busText)
		shown := message{Type: line(m.Type, 80), Text: text}
		if !m.Time.IsZero() {
			shown.Time = m.Time.UnixMilli()
		}
		list := append(b.byRun[m.Run], shown)
		b.byRun[m.Run] = list[max(0, len(list)-busMessages):]
	}
	return b
}
