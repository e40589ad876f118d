package run

import (
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
type View struct {
	Prog     *cmdline.Program
	messages *startMessages
	Runtime  string
	Model    string            // as it was last announced
	Streamed bool              // the conversation goes to standard error
	stderr   *formatters.Lines // the agent's, when it is shown
	expected func([]byte) bool // lines of it that say nothing; may be nil
}

// output returns what connects a run with standard output and standard error.
func (v *View) output(format agent.OutputFormat) (out agent.Output) {
	prog := v.Prog
	switch format {
	case agent.OutputNDJSON:
		out.Stdout = prog.Out
	case agent.OutputEvents:
		out.Text, out.Formatter = prog.Out, formatters.JSON
	default:
		if !prog.Global.Quiet {
			out.Text = v.Conversation()
			v.Streamed = true
		}
	}
	if prog.Global.Verbose > 0 {
		v.stderr = v.stderrLines()
		out.Stderr = v.stderr
	}
	out.Events = func(e *agent.Event) error {
		v.noteModel(e)
		return nil
	}
	return out
}

// conversation is where the readable conversation goes. It is not the result:
// a standard error that cannot be written does not stop the agent, unless it is
// standard output too, whose reader has then gone.
func (v *View) Conversation() io.Writer {
	return writerFunc(func(b []byte) (int, error) {
		_, err := v.Prog.Screen.Write(b)
		if err != nil && v.Prog.Env.Terminal.SameFile {
			return 0, cmdline.OutputError("standard error", err)
		}
		return len(b), nil
	})
}

// maxStderrLine bounds what is shown of one line of the agent's standard error,
// in bytes.
const maxStderrLine = 64 << 10

// stderrLines shows the agent's standard error. Whole lines keep it apart from
// the conversation, which arrives at the same time.
func (v *View) stderrLines() *formatters.Lines {
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
			v.Prog.Screen.Line(text)
			return nil
		},
	}
}

// close shows what is left after the run.
func (v *View) close() {
	v.messages.release()
	if v.stderr != nil {
		_ = v.stderr.Close() // only Handle can fail
	}
	v.Prog.Screen.Clear()
	v.Prog.Screen.EndLine()
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// started says what is about to run. It is the first line of a run, and of each
// further attempt.
func (v *View) started(start agent.Start) {
	if v.stderr != nil {
		_ = v.stderr.Close() // the last line of the attempt before
	}
	v.Runtime, v.Model = start.Runtime, start.Model
	if rt, _, err := v.Prog.Stored.Registry.ParseToken(start.Runtime); err == nil {
		v.expected = rt.QuietStderr
	}
	v.Announce()
	if v.Prog.Global.Verbose > 0 {
		v.Prog.Screen.Info(fmt.Sprintf("%s runs in %s", cmdline.ShellWord(start.Path), cmdline.ShellWord(start.Workdir)))
	}
	v.messages.release()
	if v.MaySpin() {
		v.Prog.Screen.Spin("waiting for " + start.Runtime)
	}
}

func (v *View) Announce() {
	model := v.Model
	if model == "" {
		model = "auto"
	}
	v.Prog.Screen.Info(fmt.Sprintf("%s, model %s", v.Runtime, model))
}

// noteModel corrects the announced model by the one the runtime reports.
func (v *View) noteModel(e *agent.Event) {
	if e.Kind != agent.KindSessionStarted || e.Model == "" || e.Model == v.Model || e.Subagent != "" {
		return
	}
	v.Model = string(append([]byte(nil), e.Model...))
	v.Announce()
}

func (v *View) MaySpin() bool {
	env := v.Prog.Env
	return env.Terminal.Stderr && !v.Prog.Global.Quiet && env.Getenv("TERM") != "dumb"
}

// summarize says what resumes the session and what the run took, when asked to
// say more.
func (v *View) summarize(r agent.Result) {
	if v.Prog.Global.Verbose == 0 || v.Runtime == "" {
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
		text += "; --resume " + cmdline.ShellWord(r.SessionID) + " goes on with it"
	}
	v.Prog.Screen.Info(text)
}

// answer prints the final answer, unless the same terminal shows it already.
func (v *View) Answer(result agent.Result) error {
	prog := v.Prog
	if v.Streamed && prog.Env.Terminal.SameTerminal && prog.Global.Output == "" {
		return nil
	}
	text := formatters.SanitizeString(result.Text)
	if text != "" && text[len(text)-1] != '\n' {
		text += "\n"
	}
	return prog.Out.Print(text)
}

// startMessages holds warnings back until the first line of a run is out, and
// says each of them once.
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

// release says what was held back.
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
