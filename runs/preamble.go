package runs

import (
	"fmt"
	"strings"
)

// preamble is the text about the record before the agent's prompt.
func (r *record) preamble() string {
	var b strings.Builder
	line := func(name, value string) { fmt.Fprintf(&b, "%s=%s\n", name, value) }
	line(envTaskFolder, r.task)
	line(envRunFolder, r.dir)
	line(envProject, r.info.ProjectID)
	line(envTask, r.info.TaskID)
	line(envRun, r.info.RunID)
	if r.info.ParentRunID != "" {
		line(envParent, r.info.ParentRunID)
	}
	line(envMessageBus, r.bus)
	fmt.Fprintf(&b, `Write output.md to %s

## Message Bus
%s has the messages RUN_START, RUN_STOP and RUN_CRASH of the other runs of this task. You can read it and need not write to it.

## Completion
End with a summary of what you did in output.md. When the whole task is done, and not only this run, create the file %s/DONE.

---

`, r.info.OutputPath, r.bus, r.task)
	return b.String()
}
