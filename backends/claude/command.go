package claude

import (
	"os"
	"strconv"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/session/streamjson"
)

// command builds the argument list of a run. Values are joined to their options with
// "=", because several options take all words that follow them.
func command(inv registry.Invocation) (agent.Command, error) {
	args := append([]string{"-p", "--output-format", "stream-json", "--verbose"}, allowServers(options(editMode, inv), inv)...)
	if inv.Schema != nil {
		args = append(args, "--json-schema="+string(registry.BareSchema(inv.Schema)))
	}
	stdin := inv.Prompt
	if len(inv.Attachments) > 0 {
		files := make([]agent.Attachment, len(inv.Attachments))
		for i, a := range inv.Attachments {
			files[i] = a.Attachment
		}
		line, err := streamjson.Message(inv.Prompt, files)
		if err != nil {
			return agent.Command{}, err
		}
		args, stdin = append(args, "--input-format", "stream-json"), string(line)+"\n"
	}
	return agent.Command{Args: append(args, inv.Args...), Env: env(inv), Stdin: stdin}, nil
}

// attachments are the media types of files that the API takes.
func attachments() []string { return append(agent.ImageTypes(), agent.MediaPDF) }

// check refuses what Claude Code does not support.
func check(inv registry.Invocation) error { return checkAs(inv, os.Geteuid() == 0) }

func checkAs(inv registry.Invocation, root bool) error {
	if inv.Access == agent.AccessFull && root && inv.Getenv("IS_SANDBOX") != "1" {
		return agent.Usagef("access full is refused to root; run as another user, or set IS_SANDBOX=1 where this machine is a sandbox")
	}
	for _, name := range inv.AllowTools {
		switch {
		case strings.HasPrefix(name, "mcp__"):
			return agent.Usagef("Claude Code cannot limit the tools of an MCP server to %s; leave it out, or use --deny-tool for the others", name)
		case name == "default":
			return agent.Usagef("Claude Code reads the tool default as the name of all; name single tools")
		}
	}
	return registry.CheckCommandPatterns(inv.AllowCommands)
}

// options returns the options that runs and sessions have in common. write is the
// permission mode for write access.
func options(write string, inv registry.Invocation) []string {
	var args []string
	own := inv.UserConfig != agent.UserConfigOff
	switch {
	case !inv.TrustWorkspace && own:
		args = append(args, "--setting-sources", "user", strictServers)
	case !inv.TrustWorkspace:
		args = append(args, "--setting-sources", "", strictServers)
	case !own:
		args = append(args, "--setting-sources", "project,local")
	}
	args = append(args, accessArgs(write, inv)...)
	if len(inv.AllowTools) > 0 {
		args = append(args, "--tools="+strings.Join(inv.AllowTools, ","))
		if inv.TrustWorkspace {
			args = append(args, strictServers)
		}
	}
	for _, dir := range inv.AddDirs {
		args = append(args, "--add-dir="+dir)
	}
	if inv.Model != "" {
		args = append(args, "--model="+inv.Model)
	}
	if inv.ReasoningEffort != "" {
		args = append(args, "--effort="+effort(inv.ReasoningEffort))
	}
	if inv.MaxTurns > 0 {
		args = append(args, "--max-turns="+strconv.Itoa(inv.MaxTurns))
	}
	if inv.Resume != "" {
		args = append(args, "--resume="+inv.Resume)
	} else if inv.Continue {
		args = append(args, "--continue")
	}
	if inv.Resume != "" || inv.Continue {
		// Otherwise the CLI sends the system prompt of the first run, with
		// outdated instructions.
		args = append(args, "--system-prompt-snapshot", "off")
	}
	return args
}

// strictServers leaves out the MCP servers of settings.
const strictServers = "--strict-mcp-config"

// servers returns the MCP servers to start: none with a list of allowed tools, which the
// CLI applies only to its own.
func servers(inv registry.Invocation) []agent.MCPServer {
	if len(inv.AllowTools) > 0 {
		return nil
	}
	return inv.MCPServers
}

// Tools that the model does not get.
const (
	// lastingTools make something that outlives the run, in every permission mode:
	// worktrees with branches, and schedules that a later session runs.
	lastingTools = "EnterWorktree,ExitWorktree,CronCreate,CronDelete,ScheduleWakeup"
	// changingTools change files or run commands that do.
	changingTools = "Edit,MultiEdit,Write,NotebookEdit,Monitor,Workflow"
)

// Claude Code's permission modes. With editMode it accepts edits and some commands that
// change files without a request.
const (
	modeFlag = "--permission-mode"
	readMode = "dontAsk"
	askMode  = "default"
	editMode = "acceptEdits"
	fullMode = "bypassPermissions"
)

// accessArgs returns the options for the access. Read access is not plan mode: there,
// 2.1.329 lets a model judge each command and runs those it finds harmless, even
// outside the workdir. dontAsk denies them.
func accessArgs(write string, inv registry.Invocation) []string {
	denied := inv.DenyTools
	var args []string
	switch inv.Access {
	case agent.AccessRead:
		args, denied = []string{modeFlag, readMode}, append([]string{changingTools, lastingTools}, denied...)
	case agent.AccessFull:
		args = []string{modeFlag, fullMode}
	default:
		args, denied = []string{modeFlag, write}, append([]string{lastingTools}, denied...)
	}
	if len(denied) > 0 {
		args = append(args, "--disallowedTools="+strings.Join(denied, ","))
	}
	if len(inv.AllowCommands) == 0 || inv.Access == agent.AccessFull {
		return args
	}
	rules := make([]string, len(inv.AllowCommands))
	for i, pattern := range inv.AllowCommands {
		rules[i] = "Bash(" + pattern + ")"
	}
	return append(args, allowFlag+strings.Join(rules, ","))
}

// allowFlag is the option with the rules of what runs without a request.
const allowFlag = "--allowedTools="

// allowServers lets a run with write access call the tools of the MCP servers. There is no
// user who could be asked.
func allowServers(args []string, inv registry.Invocation) []string {
	list := servers(inv)
	if len(list) == 0 || inv.Access != agent.AccessWrite {
		return args
	}
	rules := make([]string, len(list))
	for i, s := range list {
		rules[i] = "mcp__" + s.Name
	}
	joined := strings.Join(rules, ",")
	for i, arg := range args {
		if strings.HasPrefix(arg, allowFlag) {
			args[i] += "," + joined
			return args
		}
	}
	return append(args, allowFlag+joined)
}

// effort returns Claude Code's name of an effort. It does not know minimal.
func effort(e agent.ReasoningEffort) string {
	if e == agent.EffortMinimal {
		return string(agent.EffortLow)
	}
	return string(e)
}

// Variables of Claude Code that get another default.
const (
	maxRetriesEnv = "CLAUDE_CODE_MAX_RETRIES"
	// promptTokensEnv raises the limit above which the CLI refuses a prompt without
	// a model request: about 2.9 million characters in 2.1.329.
	promptTokensEnv = "CLAUDE_CODE_BLOCKING_LIMIT_OVERRIDE"
)

// largePrompt is the length in bytes from which a prompt may exceed that limit.
const largePrompt = 2_000_000

func env(inv registry.Invocation) []string {
	var set []string
	if inv.Getenv(maxRetriesEnv) == "" {
		set = append(set, maxRetriesEnv+"=3")
	}
	if len(inv.Prompt) > largePrompt && inv.Getenv(promptTokensEnv) == "" {
		set = append(set, promptTokensEnv+"="+strconv.Itoa(promptBytes))
	}
	return set
}

// withoutSettings returns args without --settings.
func withoutSettings(args []string) []string {
	kept := []string{}
	for i := 0; i < len(args); i++ {
		switch {
		case args[i] == settingsFlag:
			i++
		case strings.HasPrefix(args[i], settingsFlag+"="):
		default:
			kept = append(kept, args[i])
		}
	}
	return kept
}

const settingsFlag = "--settings"

// settingsArg returns the last value of --settings in args.
func settingsArg(args []string) (value string, found bool) {
	return lastValue(args, settingsFlag)
}

// lastValue returns the last value of an option in args, the one that counts.
func lastValue(args []string, flag string) (value string, found bool) {
	for i, arg := range args {
		if arg == flag && i+1 < len(args) {
			value, found = args[i+1], true
		} else if v, ok := strings.CutPrefix(arg, flag+"="); ok {
			value, found = v, true
		}
	}
	return value, found
}
