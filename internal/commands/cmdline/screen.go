package cmdline

import (
	"io"
	"strings"
	"sync"

	"github.com/busdk/bus-agent/formatters"
)

// screen is standard error: messages, the conversation and the spinner, each of
// them on lines of its own. It is used by several goroutines at once.
type Screen struct {
	mu      sync.Mutex
	w       io.Writer
	quiet   bool
	color   bool
	midLine bool // the last line is not ended
	spinner *spinner
}

func NewScreen(w io.Writer) *Screen { return &Screen{w: w} }

// Colors of the prefix of messages.
const (
	colorError   = "31"
	colorWarning = "33"
	colorInfo    = "36"
)

// info says something that is neither result nor problem.
func (s *Screen) Info(text string) {
	if !s.quiet {
		s.message(colorInfo, text)
	}
}

// warn says what went another way than asked for.
func (s *Screen) Warn(text string) {
	if !s.quiet {
		s.message(colorWarning, text)
	}
}

// fail says why the program fails; it is said even when quiet.
func (s *Screen) fail(text string) { s.message(colorError, text) }

func (s *Screen) message(color, text string) {
	text = " " + strings.TrimRight(formatters.SanitizeString(text), "\n")
	if s.color {
		s.styledLine("\x1b["+color+"m"+Name+":\x1b[0m", text)
	} else {
		s.Line(Name + ":" + text)
	}
}

// plain writes text of ours as it is.
func (s *Screen) Plain(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopSpinner()
	io.WriteString(s.w, text)
	s.midLine = !strings.HasSuffix(text, "\n")
}

// Write writes a part of the conversation.
func (s *Screen) Write(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopSpinner()
	s.midLine = b[len(b)-1] != '\n'
	return s.w.Write(b)
}

// line writes text on a line of its own.
func (s *Screen) Line(text string) { s.styledLine("", text) }

// styledLine writes text on a separate line behind a styled prefix of ours.
func (s *Screen) styledLine(prefix, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopSpinner()
	if s.midLine {
		prefix = "\n" + prefix
	}
	s.midLine = false
	styled(s.w, prefix, text+"\n")
}

// endLine ends the line that the conversation left open.
func (s *Screen) EndLine() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.midLine {
		io.WriteString(s.w, "\n")
		s.midLine = false
	}
}

// clear takes the spinner away for good.
func (s *Screen) Clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopSpinner()
}
