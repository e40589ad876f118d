package tmux

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A screen is what a pane shows at one moment.
type screen struct {
	lines   []string // without trailing blank lines and trailing spaces
	history int      // number of lines that have left it at the top
	cursor  string
	dead    bool // the program has ended
	status  int  // exit status, -1 when a signal ended it
	signal  string
}

// screenFormat describes a pane; tmux prints it before the lines.
const screenFormat = "#{history_size},#{cursor_x}:#{cursor_y},#{pane_dead},#{pane_dead_status},#{pane_dead_signal}"

// parseScreen parses a line of screenFormat and the lines of the pane.
func parseScreen(text string) (s screen, err error) {
	head, rest, _ := strings.Cut(text, "\n")
	fields := strings.Split(head, ",")
	s.history, err = strconv.Atoi(fields[0])
	if err != nil || len(fields) != 5 {
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

// splitLines returns the lines of text without trailing spaces and trailing blank
// lines.
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

// gained returns the text of a turn. lines begin with the first line of base, the
// screen before the message was typed; typed is the screen with the message, before it
// was submitted. The lines above the answer are those of typed, and the lines below it
// those at the end of base.
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
