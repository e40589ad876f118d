package cli

import (
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/formatters"
)

// view shows one run.
type view struct {
	inv      *invocation
	messages *startMessages
	runtime  string
	model    string            // as it was last announced
	streamed bool              // the conversation goes to standard error
	stderr   *formatters.Lines // the agent's, when it is shown
	expected func([]byte) bool // lines of it that say nothing; may be nil
}

// output returns what connects a run with standard output and standard error.
func (v *view) output(format agent.OutputFormat) (out agent.Output) {
	inv := v.inv
	switch format {
	case agent.OutputNDJSON:
		out.Stdout = inv.out
	case agent.OutputEvents:
		out.Text, out.Formatter = inv.out, formatters.JSON
	default:
		if !inv.global.quiet {
			out.Text = v.conversation()
			v.streamed = true
		}
	}
	if inv.global.verbose > 0 {
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
func (v *view) conversation() io.Writer {
	return writerFunc(func(b []byte) (int, error) {
		_, err := v.inv.screen.Write(b)
		if err != nil && v.inv.env.Terminal.SameFile {
			return 0, outputError("standard error", err)
		}
		return len(b), nil
	})
}

// maxStderrLine bounds what is shown of one line of the agent's standard error,
// in bytes.
const maxStderrLine = 64 << 10

// stderrLines shows the agent's standard error. Whole lines keep it apart from
// the conversation, which arrives at the same time.
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
			v.inv.screen.line(text)
			return nil
		},
	}
}

// close shows what is left after the run.
func (v *view) close() {
	v.messages.release()
	if v.stderr != nil {
		_ = v.stderr.Close() // only Handle can fail
	}
	v.inv.screen.clear()
	v.inv.screen.endLine()
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// started says what is about to run. It is the first line of a run, and of each
// further attempt.
func (v *view) started(start agent.Start) {
	if v.stderr != nil {
		_ = v.stderr.Close() // the last line of the attempt before
	}
	v.runtime, v.model = start.Runtime, start.Model
	if rt, _, err := v.inv.stored.registry.ParseToken(start.Runtime); err == nil {
		v.expected = rt.QuietStderr
	}
	v.announce()
	if v.inv.global.verbose > 0 {
		v.inv.screen.info(fmt.Sprintf("%s runs in %s", shellWord(start.Path), shellWord(start.Workdir)))
	}
	v.messages.release()
	if v.mayspin() {
		v.inv.screen.spin("waiting for " + start.Runtime)
	}
}

func (v *view) announce() {
	model := v.model
	if model == "" {
		model = "auto"
	}
	v.inv.screen.info(fmt.Sprintf("%s, model %s", v.runtime, model))
}

// noteModel corrects the announced model by the one the runtime reports.
func (v *view) noteModel(e *agent.Event) {
	if e.Kind != agent.KindSessionStarted || e.Model == "" || e.Model == v.model || e.Subagent != "" {
		return
	}
	v.model = string(append([]byte(nil), e.Model...))
	v.announce()
}

func (v *view) mayspin() bool {
	env := v.inv.env
	return env.Terminal.Stderr && !v.inv.global.quiet && env.getenv("TERM") != "dumb"
}

// summarize says what resumes the session and what the run took, when asked to
// say more.
func (v *view) summarize(r agent.Result) {
	if v.inv.global.verbose == 0 || v.runtime == "" {
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
		text += "; --resume " + shellWord(r.SessionID) + " goes on with it"
	}
	v.inv.screen.info(text)
}

// answer prints the final answer, unless the same terminal shows it already.
func (v *view) answer(result agent.Result) error {
	inv := v.inv
	if v.streamed && inv.env.Terminal.SameTerminal && inv.global.output == "" {
		return nil
	}
	text := formatters.SanitizeString(result.Text)
	if text != "" && text[len(text)-1] != '\n' {
		text += "\n"
	}
	return inv.out.print(text)
}

// startMessages holds warnings back until the first line of a run is out, and
// says each of them once.
type startMessages struct {
	screen   *screen
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
		m.screen.warn(line)
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
		m.screen.warn(line)
	}
}
