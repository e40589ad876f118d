package gemini

import (
	"strings"
	"time"
	"unicode"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/session/acp"
	"github.com/busdk/bus-agent/session/engine"
)

// conversation describes sessions, which use the Agent Client Protocol.
func conversation() *registry.Session {
	return &registry.Session{
		Use: registry.Use{
			Options: registry.Options{
				Model:              true,
				AppendSystemPrompt: true,
				Access:             agent.Accesses(),
				AllowCommands:      true,
				DenyTools:          true,
				AddDirs:            true,
				Resume:             true,
				Attachments:        agent.ImageTypes(), // next to a PDF it drops images
			},
			Check:   check,
			Prepare: prepareSession,
			Command: sessionCommand,
		},
		Engine:     newEngine,
		Protocol:   "acp",
		Delivery:   engine.DeliverRPC,
		SessionEnv: "GEMINI_SESSION_ID",
	}
}

// sessionCommand builds the argument list of an agent that speaks the protocol.
//
// Without trust it does not pass --skip-trust, which makes Gemini CLI trust what it
// reads later: a session reads the repository's settings again when they are ten
// seconds old, or under another name of the workdir.
func sessionCommand(inv registry.Invocation) (agent.Command, error) {
	args, env := []string{"--acp"}, []string{"GEMINI_CLI_NO_RELAUNCH=true"}
	if inv.TrustWorkspace {
		mode := modes[inv.Access]
		if inv.Access != agent.AccessRead && inv.Access != agent.AccessFull {
			mode = "default" // see engine
		}
		args, env = append(args, "--approval-mode", mode), append(env, trustEnv+"=true")
	} else {
		env = append(env, trustEnv+"=false") // even if the user trusts the folder
	}
	args = append(args, choices(inv)...)
	return agent.Command{Args: append(args, inv.Args...), Env: env}, nil
}

// nextMinute is how long to wait before a session is loaded. The CLI names the file of a
// session after the minute of its creation, and destroys a file that it loads within that
// minute.
func nextMinute(created, now time.Time) time.Duration {
	return max(0, created.Truncate(time.Minute).Add(time.Minute).Sub(now))
}

// newEngine makes the engine of one session. The CLI's mode for edits accepts them without
// a request, so write access uses the mode that requests approval, and the engine
// answers. In an untrusted folder the CLI has no mode that allows more.
func newEngine(inv registry.Invocation) engine.Engine {
	e := &acp.Engine{
		Notices:      []string{"[MODE_UPDATE] "},
		LoadDelay:    nextMinute,
		Guard:        pieces,
		SilenceFails: true,
		Modes:        map[agent.Access]string{agent.AccessRead: "plan", agent.AccessWrite: "default", agent.AccessFull: "default"},
		Permits:      permits,
		Command:      commandLine,
	}
	if inv.TrustWorkspace {
		e.Modes[agent.AccessFull] = "yolo"
	}
	return e
}

// permits reports whether an access includes a tool. Write includes the tools that edit
// files; the engine accepts their calls for files that engine.Start.MayEdit allows.
func permits(access agent.Access, kind string) bool {
	return access == agent.AccessFull || access == agent.AccessWrite && kind == "edit"
}

// commandLine returns the command line of a request (0.61.0). The title is the whole line, and
// the text begins with the directory if that is the one in which the CLI was started.
// A command in the background ends with the same text.
func commandLine(title, text string, start engine.Start) string {
	rest, ok := strings.CutPrefix(text, "[current working directory ")
	dir, _, end := strings.Cut(rest, "]")
	if !ok || !end || dir == "" || !start.InWorkdir(dir) {
		return ""
	}
	return title
}

// pieces returns a message as it is sent. Gemini CLI looks for a command at the start of
// all pieces, after white space, so a piece of plain text precedes a message that could
// be one. The message itself is unchanged.
func pieces(text string) []string {
	begins := strings.TrimLeftFunc(text, func(c rune) bool { return unicode.IsSpace(c) || c == '\ufeff' })
	if strings.HasPrefix(begins, "/") || strings.HasPrefix(begins, "$") {
		return []string{"Message:\n", text}
	}
	return []string{text}
}
