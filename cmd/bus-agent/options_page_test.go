package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/registry"
)

const optionsTitle = `# Options that mean the same everywhere

Each option on this page is mapped to what the CLI of a runtime has for it. A runtime
that has nothing for it refuses the request before anything starts, with one line and
exit code 2. The tables are made from the descriptions of the runtimes;
[compatibility](compatibility.md) lists what was verified with the real CLIs.

In the tables, ` + "`-`" + ` means that the runtime has no such use.
`

const systemPromptSection = `
## Additional system prompt

` + "`--append-system-prompt TEXT`" + ` of ` + "`run`, `session start` and `chat`" + `, or ` + "`AppendSystemPrompt`" + ` in Go,
adds text to the system prompt of the agent. It does not replace any of it, and AGENTS.md
still arrives. The text has at most 32 KiB. A run that resumes a session needs the option
again; ` + "`session resume`" + ` keeps it.

Claude Code gets the text in an inherited file, Codex as instructions of the developer,
Gemini CLI as a context file of its private home, which it adds to its system
instruction. Gemini CLI would import the file that a word with a leading ` + "`@`" + ` names, so
such a text is refused. Other CLIs get the text as an argument, which other users of the
machine can see. The definition of a runtime has the placeholder ` + "`{system-prompt}`" + ` for it.

`

// The page docs/options.md shows what the descriptions of the runtimes have.
func TestOptionsPageIsUpToDate(t *testing.T) {
	t.Parallel()
	page := optionsTitle + systemPromptSection + optionTable(func(o registry.Options) bool { return o.AppendSystemPrompt })
	checkPage(t, "options.md", page, "make compatibility")
}

// optionTable returns the table of the uses that support an option.
func optionTable(has func(registry.Options) bool) string {
	var b strings.Builder
	b.WriteString("| runtime | runs | sessions | in a terminal |\n|---|---|---|---|\n")
	word := func(use *registry.Use) string {
		switch {
		case use == nil || use.Command == nil:
			return "-"
		case has(use.Options):
			return "yes"
		}
		return "refused"
	}
	for _, rt := range registry.Default().All() {
		var session, terminal *registry.Use
		if rt.Session != nil {
			session = &rt.Session.Use
		}
		if rt.Terminal != nil {
			terminal = &rt.Terminal.Use
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", rt.ID, word(&rt.Run), word(session), word(terminal))
	}
	return b.String()
}
