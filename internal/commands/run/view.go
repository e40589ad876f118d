package run

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/formatters"
	"github.com/busdk/bus-agent/internal/commands/cmdline"
)

// view shows one run.
type view struct {
	prog     *cmdline.Program
	messages *startMessages
	runtime  string
	model    string // last announced
	record   string // ID of the last one, announced
	progress *Progress
	streamed bool              // the conversation goes to standard error
	stderr   *formatters.Lines // the agent's standard error, when it is shown
	expected func([]byte) bool // reports lines of it to leave out; may be nil
}

// output connects a run with standard output and standard error.
func (v *view) output(format agent.OutputFormat) (out agent.Output) {
	prog := v.prog
	switch {
	case format == agent.OutputNDJSON:
		out.Stdout = prog.Out
	case format == agent.OutputEvents:
		out.Text, out.Formatter = prog.Out, formatters.JSON
	case !prog.Global.Quiet:
		out.Text = Conversation(prog)
		v.streamed = true
	}
	if prog.Global.Verbose > 0 {
		v.stderr = v.stderrLines()
		out.Stderr = v.stderr
	}
	out.Events = func(e *agent.Event) error {
		v.noteModel(e)
		if v.progress != nil {
			v.progress.Event(e)
		}
		return nil
	}
	return out
}

// Conversation returns a writer for the readable conversation. It is not a result: if
// standard error cannot be written, that does not stop the agent, unless standard output
// is the same file, whose reader is gone then.
func Conversation(prog *cmdline.Program) io.Writer {
	return writerFunc(func(b []byte) (int, error) {
		if _, err := prog.Screen.Write(b); err != nil && prog.Env.Terminal.SameFile {
			return 0, cmdline.OutputError("standard error", err)
		}
		return len(b), nil
	})
}

// maxStderrLine is how many bytes of a line of the agent's standard error are shown.
const maxStderrLine = 64 << 10

// stderrLines shows the agent's standard error, in whole lines, because the conversation
// arrives at the same time.
func (v *view) stderrLines() *formatters.Lines {
	return &formatters.Lines{
		Max: maxStderrLine,
		Handle: func(line []byte, truncated bool, size int64) error {
			if v.expected != nil && v.expected(line) {
				return nil
			}
			text := formatters.SanitizeString(string(line))
			if truncated {
				text += fmt.Sprintf(" [cut, %d bytes]", size)
			}
			v.prog.Screen.Line(text)
			return nil
		},
	}
}

// close shows what was held back until the end of the run.
func (v *view) close() {
	v.messages.release()
	if v.stderr != nil {
		_ = v.stderr.Close() // only Handle can fail
	}
	v.prog.Screen.Clear()
	v.prog.Screen.EndLine()
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// started shows what is about to run: the first line of a run, and of each further
// attempt.
func (v *view) started(start agent.Start) {
	if v.stderr != nil {
		_ = v.stderr.Close() // the last line of the attempt before
	}
	v.runtime, v.model = start.Runtime, start.Model
	if rt, ok := v.prog.RuntimeOf(start.Runtime); ok {
		v.expected = rt.QuietStderr
	}
	v.record = start.RunID
	Announce(v.prog, start)
	if v.prog.Global.Verbose > 0 {
		v.prog.Screen.Info(fmt.Sprintf("%s runs in %s", cmdline.ShellWord(start.Path), cmdline.ShellWord(start.Workdir)))
		for _, file := range start.UserConfig {
			v.prog.Screen.Info("your configuration: " + file.String())
		}
	}
	v.messages.release()
	v.progress = ShowProgress(v.prog, start.Runtime)
}

// noteRecord shows the ID of the record of an agent that did not start.
func (v *view) noteRecord(id string) {
	if id != v.record {
		AnnounceRecord(v.prog, id)
	}
}

// Announce shows which runtime and model are used, and the ID of the record.
func Announce(prog *cmdline.Program, start agent.Start) {
	announceModel(prog, start.Runtime, start.Model)
	AnnounceRecord(prog, start.RunID)
}

func announceModel(prog *cmdline.Program, runtime, model string) {
	prog.Screen.Info(fmt.Sprintf("%s, model %s", runtime, cmp.Or(model, "auto")))
}

// AnnounceRecord shows the ID of a record, if it has one.
func AnnounceRecord(prog *cmdline.Program, id string) {
	if id != "" {
		prog.Screen.Info("recorded as run " + id)
	}
}

// noteModel corrects the announced model by the one the runtime reports.
func (v *view) noteModel(e *agent.Event) {
	if e.Kind != agent.KindSessionStarted || e.Model == "" || e.Model == v.model || e.Subagent != "" {
		return
	}
	v.model = string(append([]byte(nil), e.Model...))
	announceModel(v.prog, v.runtime, v.model)
}

// summarize shows with --verbose what the run took and how to resume its session.
func (v *view) summarize(r agent.Result) {
	if v.prog.Global.Verbose == 0 || v.runtime == "" {
		return
	}
	text := "it took " + r.Duration.Round(100*time.Millisecond).String()
	if u := r.Usage; u != nil {
		text += fmt.Sprintf(", %d tokens in and %d out", u.Input, u.Output)
		if u.CostUSD != nil {
			text += fmt.Sprintf(", $%.4f", *u.CostUSD)
		}
	}
	if r.SessionID != "" {
		text += "; --resume " + cmdline.ShellWord(r.SessionID) + " continues it"
	}
	v.prog.Screen.Info(text)
}

// PrintAnswer prints the final answer, unless standard output has it already as part of
// the conversation.
func PrintAnswer(prog *cmdline.Program, result agent.Result, streamed bool) error {
	if streamed && prog.Env.Terminal.SameFile && prog.Global.Output == "" {
		return nil
	}
	text := formatters.SanitizeString(result.Text)
	if text != "" && text[len(text)-1] != '\n' {
		text += "\n"
	}
	return prog.Out.Print(text)
}

// startMessages holds warnings back until the first line of a run is shown, and shows
// each of them once.
type startMessages struct {
	screen   *cmdline.Screen
	mu       sync.Mutex
	released bool
	lines    []string
}

func (m *startMessages) warn(line string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if slices.Contains(m.lines, line) {
		return
	}
	m.lines = append(m.lines, line)
	if m.released {
		m.screen.Warn(line)
	}
}

// release shows what was held back.
func (m *startMessages) release() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.released {
		return
	}
	m.released = true
	for _, line := range m.lines {
		m.screen.Warn(line)
	}
}
