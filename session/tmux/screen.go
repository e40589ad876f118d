package tmux

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A screen is what a pane shows at a moment.
type screen struct {
	lines   []string // without blank ones at the end, and without spaces at theirs
	history int      // lines that have left it at the top
	cursor  string
	dead    bool // the program has ended
	status  int  // of its exit, -1 when a signal ended it
	signal  string
}

// screenFormat is what tmux is asked to say before the lines of a pane.
const screenFormat = "#{history_size},#{cursor_x}:#{cursor_y},#{pane_dead},#{pane_dead_status},#{pane_dead_signal}"

// parseScreen parses what tmux says of a pane.
func parseScreen(text string) (s screen, err error) {
	head, rest, _ := strings.Cut(text, "\n")
	fields := strings.Split(head, ",")
	if len(fields) != 5 {
		return s, fmt.Errorf("tmux describes the pane as %q", head)
	}
	if s.history, err = strconv.Atoi(fields[0]); err != nil {
		return s, fmt.Errorf("tmux describes the pane as %q", head)
	}
	s.lines, s.cursor, s.dead = splitLines(rest), fields[1], fields[2] == "1"
	if s.dead {
		s.status = -1
		if code, err := strconv.Atoi(fields[3]); err == nil && fields[4] == "" {
			s.status = code
		}
		s.signal = fields[4]
	}
	return s, nil
}

// splitLines returns the lines of text without what is blank at their ends and at
// its end.
func splitLines(text string) []string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " \u00a0\r")
	}
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// same reports whether nothing has changed.
func (s screen) same(other screen) bool {
	return s.history == other.history && s.cursor == other.cursor && s.dead == other.dead && slices.Equal(s.lines, other.lines)
}

func (s screen) contains(text string) bool {
	return strings.Contains(plainSpaces(strings.Join(s.lines, "\n")), plainSpaces(text))
}

// tail returns the last n lines.
func (s screen) tail(n int) string {
	return strings.Join(s.lines[max(0, len(s.lines)-n):], "\n")
}

// gained returns what lines say that was not there before. They begin with the
// line at the top of base, which is the screen before the message was typed; typed
// is that with the message, before it was submitted. What is above the answer is
// like typed, and what is below it like what is left of base then.
func gained(base, typed, lines []string) string {
	for i := 0; len(base) > 0 && i < len(lines) && base[0] == lines[i]; i++ {
		base = base[1:]
	}
	for len(typed) > 0 && len(lines) > 0 && typed[0] == lines[0] {
		typed, lines = typed[1:], lines[1:]
	}
	for len(base) > 0 && len(lines) > 0 && base[len(base)-1] == lines[len(lines)-1] {
		base, lines = base[:len(base)-1], lines[:len(lines)-1]
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n")
}
