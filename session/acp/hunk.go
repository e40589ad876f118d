package acp

import (
	"fmt"
	"slices"
	"strings"

	"github.com/busdk/bus-agent/agent"
)

// around is how many equal lines a hunk has before and after those that differ.
const around = 3

// hunk returns how a text differs from another, as one hunk of a unified diff, or enough of
// it for [agent.FileChange.SetDiff] to cut. Its numbers count the lines of the texts, which
// some agents take from the middle of a file.
func hunk(before, after string) string {
	old, current := slices.Collect(strings.Lines(before)), slices.Collect(strings.Lines(after))
	shorter := min(len(old), len(current))
	head, tail := 0, 0
	for head < shorter && old[head] == current[head] {
		head++
	}
	for tail < shorter-head && old[len(old)-1-tail] == current[len(current)-1-tail] {
		tail++
	}
	if len(old) == len(current) && head == shorter {
		return ""
	}
	from, kept := max(head-around, 0), min(tail, around)
	oldEnd, end := len(old)-tail, len(current)-tail
	var b strings.Builder
	fmt.Fprintf(&b, "@@ -%s +%s @@\n", span(from, oldEnd+kept), span(from, end+kept))
	for _, part := range []struct {
		sign  string
		lines []string
	}{
		{" ", old[from:head]}, {"-", old[head:oldEnd]}, {"+", current[head:end]}, {" ", old[oldEnd : oldEnd+kept]},
	} {
		for _, line := range part.lines {
			if b.Len() > agent.MaxDiff {
				return b.String()
			}
			b.WriteString(part.sign + line)
			if !strings.HasSuffix(line, "\n") {
				b.WriteString("\n\\ No newline at end of file\n")
			}
		}
	}
	return b.String()
}

// span returns the first line, counted from 1, and the number of the lines from one index
// to another. Without lines, the line before them is the first.
func span(from, to int) string {
	if to == from {
		return fmt.Sprintf("%d,0", from)
	}
	return fmt.Sprintf("%d,%d", from+1, to-from)
}
