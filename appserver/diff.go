package appserver

import (
	"fmt"
	"strings"

	"github.com/busdk/bus-agent/agent"
)

// A fileUpdate is the change of one file.
type fileUpdate struct {
	Path string `json:"path"`
	Kind struct {
		Type     string `json:"type"`
		MovePath string `json:"move_path"`
	} `json:"kind"`
	// Diff of an update has its hunks, followed by the new path of a moved file. That of
	// another change is the text of the file (0.169.0).
	Diff string `json:"diff"`
}

// hunks returns the change as the hunks of a unified diff.
func (u *fileUpdate) hunks() string {
	switch u.Kind.Type {
	case "add":
		return wholeFile(u.Diff, "+", "@@ -0,0 +1,%d @@\n")
	case "delete":
		return wholeFile(u.Diff, "-", "@@ -1,%d +0,0 @@\n")
	}
	return strings.TrimSuffix(u.Diff, "\n\nMoved to: "+u.Kind.MovePath)
}

// wholeFile returns the hunk that adds or removes all lines of a file, or enough of it
// for [agent.FileChange.SetDiff] to cut.
func wholeFile(text, sign, header string) string {
	if text == "" {
		return ""
	}
	count := strings.Count(text, "\n")
	if !strings.HasSuffix(text, "\n") {
		count++
	}
	var b strings.Builder
	fmt.Fprintf(&b, header, count)
	for line := range strings.Lines(text) {
		if b.WriteString(sign + line); b.Len() > agent.MaxDiff {
			return b.String()
		}
	}
	if !strings.HasSuffix(text, "\n") {
		b.WriteString("\n\\ No newline at end of file\n")
	}
	return b.String()
}
