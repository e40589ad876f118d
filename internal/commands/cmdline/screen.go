package cmdline

import (
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/busdk/bus-agent/formatters"
)

// Screen is standard error: messages, the conversation and the spinner, each on
// separate lines. It is safe for concurrent use.
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

// Info shows a message that is neither a result nor a problem.
func (s *Screen) Info(text string) {
	if !s.quiet {
		s.message(colorInfo, text)
	}
}

// Warn shows a warning.
func (s *Screen) Warn(text string) {
	if !s.quiet {
		s.message(colorWarning, text)
	}
}

// WarnSome warns of the first ten problems, and of how many more there are.
func (s *Screen) WarnSome(prefix string, problems []string) {
	const most = 10
	for _, p := range problems[:min(most, len(problems))] {
		s.Warn(prefix + OneWord(p))
	}
	if more := len(problems) - most; more > 0 {
		s.Warn(fmt.Sprintf("%s%d more", prefix, more))
	}
}

// fail shows why the program fails, also with --quiet.
func (s *Screen) fail(text string) { s.message(colorError, text) }

func (s *Screen) message(color, text string) {
	text = " " + strings.TrimRight(formatters.SanitizeString(text), "\n")
	if s.color {
		s.styledLine("\x1b["+color+"m"+Name+":\x1b[0m", text)
	} else {
		s.Line(Name + ":" + text)
	}
}

// Plain writes text without a prefix.
func (s *Screen) Plain(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hideSpinner()
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
	s.hideSpinner()
	s.midLine = b[len(b)-1] != '\n'
	return s.w.Write(b)
}

// Line writes text on a separate line.
func (s *Screen) Line(text string) { s.styledLine("", text) }

// styledLine writes text on a separate line after a styled prefix.
func (s *Screen) styledLine(prefix, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hideSpinner()
	if s.midLine {
		prefix = "\n" + prefix
	}
	s.midLine = false
	styled(s.w, prefix, text+"\n")
}

// EndLine ends the last line if it has not ended.
func (s *Screen) EndLine() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.midLine {
		io.WriteString(s.w, "\n")
		s.midLine = false
	}
}

// Clear ends the spinner.
func (s *Screen) Clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopSpinner()
}
