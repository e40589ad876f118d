package appserver

import (
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

// set sets the Diff of c.
func (u *fileUpdate) set(c *agent.FileChange) {
	switch u.Kind.Type {
	case "add", "delete":
		c.SetWhole(u.Diff)
	default:
		c.SetDiff(strings.TrimSuffix(u.Diff, "\n\nMoved to: "+u.Kind.MovePath))
	}
}
