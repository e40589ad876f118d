package fallback

import (
	"context"
	"slices"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/runner"
)

// watch finds the first event of a run that may be a change.
type watch struct {
	reading []string
	next    func(*agent.Event) error
	changed string // what it was; empty for nothing
}

func (w *watch) event(e *agent.Event) error {
	if w.changed == "" {
		w.changed = w.change(e)
	}
	if w.next == nil {
		return nil
	}
	return w.next(e)
}

// change returns what e may have changed, "" for nothing.
func (w *watch) change(e *agent.Event) string {
	switch e.Kind {
	case agent.KindFileChange:
		if len(e.Changes) == 0 {
			return "a file"
		}
		return "file " + e.Changes[0].Path
	case agent.KindToolCall:
		switch {
		case e.Tool == nil || e.Tool.Name == "":
			return "a tool without a name"
		case !slices.Contains(w.reading, e.Tool.Name):
			return "tool " + strings.Clone(e.Tool.Name)
		}
	case agent.KindRaw:
		if e.Truncated {
			return "a line that was too long to be read"
		}
	}
	return ""
}

// confined reports whether an agent can change nothing, whatever it calls. The tools of MCP
// servers are not confined; preferences can name some.
func confined(ctx context.Context, req agent.Request, preferences runner.Preferences) bool {
	if preferences != nil {
		if _, servers, err := preferences.Get(ctx, runner.KeyMCP); servers || err != nil {
			return false
		}
	}
	return req.Access == agent.AccessRead && len(req.AllowCommands) == 0 && len(req.MCPServers) == 0 && !req.TrustWorkspace
}
