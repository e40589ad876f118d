package run

import (
	"cmp"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/commands/cmdline"
)

// Progress shows on a terminal which tool an agent is running, and for how long the agent
// has been working.
type Progress struct {
	prog    *cmdline.Program
	runtime string
	tool    string // ID of the tool call that is shown
}

// ShowProgress begins to show the progress of a runtime from which nothing has arrived
// yet. Screen.Clear ends it.
func ShowProgress(prog *cmdline.Program, runtime string) *Progress {
	if prog.Env.Terminal.Stderr && !prog.Global.Quiet && prog.Env.Getenv("TERM") != "dumb" {
		prog.Screen.Spin("waiting for " + runtime)
	}
	return &Progress{prog: prog, runtime: runtime}
}

// maxToolName bounds what is shown of the name of a tool, in bytes.
const maxToolName = 40

// Event shows the progress that e reports.
func (p *Progress) Event(e *agent.Event) {
	switch {
	case e.Kind == agent.KindToolCall && e.Tool != nil:
		p.tool = e.Tool.ID
		name := cmdline.OneWord(cmp.Or(e.Tool.Name, "a tool"))
		p.prog.Screen.SpinOn(p.runtime + ": running " + name[:min(len(name), maxToolName)])
	case e.Kind == agent.KindToolResult && e.Tool != nil && e.Tool.ID != p.tool:
	case e.Kind == agent.KindText, e.Kind == agent.KindThinking, e.Kind == agent.KindToolResult:
		p.tool = ""
		p.prog.Screen.SpinOn(p.runtime + ": working")
	}
}
