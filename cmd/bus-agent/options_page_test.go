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

` + "`--append-system-prompt TEXT`" + ` of ` + "`run`, `session start`, `chat` and `acp`" + `, or
` + "`AppendSystemPrompt`" + ` in Go, adds text to the system prompt of the agent. It does not replace
any of it, and AGENTS.md still arrives. The text has at most 32 KiB. A run that resumes a
session needs the option again; ` + "`session resume`" + ` keeps it.

Claude Code gets the text in an inherited file, Codex as instructions of the developer,
Gemini CLI as a context file of its private home, which it adds to its system
instruction. Gemini CLI would import the file that a word with a leading ` + "`@`" + ` names, so
such a text is refused. The ACP adapters of Claude Code get it by the protocol. Codex and all
other CLIs get the text as an argument, which other users of the machine can see. The
definition of a runtime has the placeholder ` + "`{system-prompt}`" + ` for it.

`

const serversSection = `
## MCP servers

` + "`--mcp FILE`" + ` of ` + "`run`, `session start`, `chat` and `acp`" + `, or ` + "`MCPServers`" + ` in Go, gives
the agent the tools of your servers of the Model Context Protocol. The file has the common
form:

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
decides; sessions of opencode request an approval with access read too, but not with full.
What a server does is not limited by the access: name only servers that you let the agent
use. MCP servers that a repository configures are still left out, see
[security](security.md).

The servers end with the run. No value of env and headers is an argument of an agent CLI.
Values of headers, and those of variables whose names end in ` + "`_KEY`, `_TOKEN` or `_SECRET`" + `,
are masked where bus-agent [masks secrets](security.md#secrets).

Codex takes no server of type sse. Gemini CLI starts no server in an untrusted folder,
where its sessions are. The agent of an ACP session that does not take a type of server
ends the start with an error. The definition of a runtime has the placeholder
` + "`{mcp-file}`" + ` for runs; its ACP sessions get the servers by the protocol.

`

const toolsSection = `
## Allowed and denied tools

` + "`--allow-tool NAME`" + ` of ` + "`run`, `session start`, `chat` and `acp`" + `, or ` + "`AllowTools`" + ` in Go, limits the tools
that the agent offers its model: it offers the named ones and no others.
` + "`--deny-tool NAME`" + `, or ` + "`DenyTools`" + `, leaves the named ones out. Each can be repeated; a request
has one of the two. ` + "`session resume`" + ` keeps them.

The names are those that the model sees, as events show them, such as ` + "`Read`, `Bash`" + ` and
` + "`mcp__notes__find`" + ` in Claude Code, ` + "`read_file`, `run_shell_command`" + ` and ` + "`mcp_notes_find`" + ` in
Gemini CLI. They differ by CLI, so such a request has no fallback. Patterns are refused. A
list permits nothing: a call still does only what the access lets it do, and an allowed tool
that the access leaves out stays out.

A CLI ignores a name that it does not know. bus-agent does not know the tools of a CLI
before it starts, so a misspelled name after ` + "`--deny-tool`" + ` denies nothing. Leaving out a tool
does not keep an agent from the same effect by another tool, such as a command that writes
a file.

With allowed tools, Claude Code gets no MCP servers, and a name that begins with ` + "`mcp__`" + ` is
refused: it offers all tools of a server or none. In a run with a schema it still offers
` + "`StructuredOutput`" + `, with which the model gives its answer. Without ` + "`Bash`" + ` it offers ` + "`Glob` and `Grep`" + `.

Gemini CLI takes allowed tools for runs only, because its list also permits the calls. With
access write, bus-agent puts into it only tools of which the access permits every call;
` + "`run_shell_command`" + ` is offered for the patterns of ` + "`--allow-command`" + `. MCP servers of your
settings are left out. In a home that you name with ` + "`--env GEMINI_CLI_HOME=DIR`" + `, lists are
refused.

pi and Droid get the tools of the access without those that are left out; if none remain, the
request is refused. opencode has one permission for ` + "`apply_patch`, `edit` and `write`" + `: all of
them are allowed or none, and one that is denied leaves out all.

Qwen Code counts some names for a kind of tools: ` + "`read_file`" + ` for all that read, ` + "`edit`" + ` for all
that edit. The definition of a runtime has the placeholders ` + "`{allow-tools}` and `{deny-tools}`" + `.

`

// The page docs/options.md shows what the descriptions of the runtimes have.
func TestOptionsPageIsUpToDate(t *testing.T) {
	t.Parallel()
	page := optionsTitle + systemPromptSection + optionTable(func(o registry.Options) bool { return o.AppendSystemPrompt }) +
		serversSection + optionTable(func(o registry.Options) bool { return o.MCPServers }) +
		toolsSection + "Allowed tools:\n\n" + optionTable(func(o registry.Options) bool { return o.AllowTools }) +
		"\nDenied tools:\n\n" + optionTable(func(o registry.Options) bool { return o.DenyTools })
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
