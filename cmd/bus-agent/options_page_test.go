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
such a text is refused. Codex and all other CLIs get the text as an argument, which other
users of the machine can see. The definition of a runtime has the placeholder ` + "`{system-prompt}`" + ` for it.

`

const serversSection = `
## MCP servers

` + "`--mcp FILE`" + ` of ` + "`run`, `session start` and `chat`" + `, or ` + "`MCPServers`" + ` in Go, gives the agent the
tools of your servers of the Model Context Protocol. The file has the common form:

    {"mcpServers": {
      "notes": {"command": "notes-mcp", "args": ["--read"], "env": {"NOTES_KEY": "${NOTES_KEY}"}},
      "docs": {"type": "http", "url": "https://example.com/mcp", "headers": {"Authorization": "Bearer ${DOCS_TOKEN}"}}
    }}

A server has a command, with args and env, or a url, with headers and type ` + "`http`" + ` (the
default) or ` + "`sse`" + `. ` + "`${NAME}`" + ` stands for a variable of your environment, ` + "`${NAME:-TEXT}`" + ` for
TEXT if it is not set. Unknown members, a variable that is not set, a command that PATH
does not lead to, or one inside the repository end with exit code 2 before anything
starts. A session keeps the file's text, without the values of variables, in its entry, so
that ` + "`session resume`" + ` starts the same servers.

` + "`bus-agent set mcp - < FILE`" + ` stores servers for every run and session whose runtime can be
given some; ` + "`--mcp`" + ` replaces them. A stored header, a variable named like a secret, and the
password of a url must have their value as ` + "`${NAME}`" + `.

With access write or full, a run may call the tools. A session requests an approval for a
call, except in Codex, which is not able to, and allows it. With access read, the runtime
decides. What a server does is not limited by the access: name only servers that you let
the agent use. MCP servers that a repository configures are still left out, see
[security](security.md).

The servers end with the run. No value of env and headers is an argument of an agent CLI.
Values of headers, and those of variables whose names end in ` + "`_KEY`, `_TOKEN` or `_SECRET`" + `,
are masked where bus-agent [masks secrets](security.md#secrets).

Codex takes no server of type sse. Gemini CLI starts no server in an untrusted folder,
where its sessions are. The agent of an ACP session that does not take a type of server
ends the start with an error. The definition of a runtime has the placeholder
` + "`{mcp-file}`" + ` for runs; its ACP sessions get the servers by the protocol.

`

// The page docs/options.md shows what the descriptions of the runtimes have.
func TestOptionsPageIsUpToDate(t *testing.T) {
	t.Parallel()
	page := optionsTitle + systemPromptSection + optionTable(func(o registry.Options) bool { return o.AppendSystemPrompt }) +
		serversSection + optionTable(func(o registry.Options) bool { return o.MCPServers })
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
