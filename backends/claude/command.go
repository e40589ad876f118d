package claude

import (
	"strconv"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
)

// command builds the argument list. Values are joined to their options with
// "=", because several options take all words that follow them.
func command(r agent.Request, root bool) (agent.Command, error) { return commandIn(editMode, r, root) }

// commandIn is command with a permission mode for write access.
func commandIn(write string, r agent.Request, root bool) (agent.Command, error) {
	args, err := options(write, r, root)
	if err != nil {
		return agent.Command{}, err
	}
	args = append([]string{"-p", "--output-format", "stream-json", "--verbose"}, args...)
	if r.Schema != nil {
		args = append(args, "--json-schema="+string(registry.BareSchema(r.Schema)))
	}
	return agent.Command{
		Args:  append(args, callerArgs(r)...),
		Env:   env(r),
		Stdin: agent.GuardSlash(r.Resolved.Setup.Prefix + r.Prompt),
	}, nil
}

// options returns the options that runs and sessions have in common. write is the
// permission mode for write access.
func options(write string, r agent.Request, root bool) ([]string, error) {
	var args []string
	if !r.TrustWorkspace {
		args = append(args, "--setting-sources", "user", "--strict-mcp-config")
	}
	access, err := accessArgs(write, r, root)
	if err != nil {
		return nil, err
	}
	args = append(args, access...)
	for _, dir := range r.AddDirs {
		args = append(args, "--add-dir="+dir)
	}
	if r.Model != "" {
		args = append(args, "--model="+r.Model)
	}
	if r.ReasoningEffort != "" {
		args = append(args, "--effort="+effort(r.ReasoningEffort))
	}
	if r.MaxTurns > 0 {
		args = append(args, "--max-turns="+strconv.Itoa(r.MaxTurns))
	}
	id := r.Resolved.Setup.ResumeID
	if id != "" {
		args = append(args, "--resume="+id)
	} else if r.Continue {
		args = append(args, "--continue")
	}
	if id != "" || r.Continue {
		// Otherwise the system prompt of the first run is sent again, with the
		// instructions of that time.
		args = append(args, "--system-prompt-snapshot", "off")
	}
	return append(args, r.Resolved.Setup.Args...), nil
}

// Tools that are taken away from the model.
const (
	// lastingTools leave something behind that outlives the run, whatever the
	// permission mode: worktrees with branches of their own, and schedules that
	// a later session carries out.
	lastingTools = "EnterWorktree,ExitWorktree,CronCreate,CronDelete,ScheduleWakeup"
	// changingTools change files or run commands that do.
	changingTools = "Edit,MultiEdit,Write,NotebookEdit,Monitor,Workflow"
)

// Claude Code's permission modes. With editMode it accepts edits unseen, and some
// commands that change files.
const (
	modeFlag = "--permission-mode"
	readMode = "dontAsk"
	askMode  = "default"
	editMode = "acceptEdits"
	fullMode = "bypassPermissions"
)

// accessArgs returns the options for an access word. Reading is not the CLI's
// plan mode: there 2.1.329 lets a model judge each command and runs those it
// finds harmless, outside of the workdir too. dontAsk denies them.
func accessArgs(write string, r agent.Request, root bool) ([]string, error) {
	var args []string
	switch r.Access {
	case agent.AccessRead:
		args = []string{modeFlag, readMode, "--disallowedTools=" + changingTools + "," + lastingTools}
	case agent.AccessFull:
		if root && r.Resolved.Getenv("IS_SANDBOX") != "1" {
			return nil, agent.Usagef("access full is refused to root; run as another user, or set IS_SANDBOX=1 where this machine is a sandbox")
		}
		return []string{modeFlag, fullMode}, nil
	default:
		args = []string{modeFlag, write, "--disallowedTools=" + lastingTools}
	}
	if len(r.AllowCommands) == 0 {
		return args, nil
	}
	rules := make([]string, len(r.AllowCommands))
	for i, pattern := range r.AllowCommands {
		if strings.TrimSpace(pattern) == "" || strings.ContainsAny(pattern, "(),\r\n\x00") {
			return nil, agent.Usagef("command pattern %q cannot be allowed: it is empty or has one of ( ) , or a line break", pattern)
		}
		rules[i] = "Bash(" + pattern + ")"
	}
	return append(args, "--allowedTools="+strings.Join(rules, ",")), nil
}

// effort returns Claude Code's word for an effort; it has none for minimal.
func effort(e agent.ReasoningEffort) string {
	if e == agent.EffortMinimal {
		return string(agent.EffortLow)
	}
	return string(e)
}

// Variables of Claude Code that have another value than its own unless the
// user sets them.
const (
	maxRetriesEnv = "CLAUDE_CODE_MAX_RETRIES"
	// promptTokensEnv lifts the bound from which the CLI refuses a prompt
	// without asking the model: about 2.9 million characters in 2.1.329.
	promptTokensEnv = "CLAUDE_CODE_BLOCKING_LIMIT_OVERRIDE"
)

// largePrompt is the length in bytes from which that bound may be met.
const largePrompt = 2_000_000

func env(r agent.Request) []string {
	var set []string
	if r.Resolved.Getenv(maxRetriesEnv) == "" {
		set = append(set, maxRetriesEnv+"=3")
	}
	if len(r.Prompt) > largePrompt && r.Resolved.Getenv(promptTokensEnv) == "" {
		set = append(set, promptTokensEnv+"="+strconv.Itoa(promptBytes))
	}
	return set
}

// callerArgs returns the caller's own arguments, without the settings that the
// setup has merged into its own: only the last --settings counts.
func callerArgs(r agent.Request) []string {
	if _, merged := settingsArg(r.Resolved.Setup.Args); !merged {
		return r.Args
	}
	var args []string
	for i := 0; i < len(r.Args); i++ {
		switch {
		case r.Args[i] == settingsFlag:
			i++
		case strings.HasPrefix(r.Args[i], settingsFlag+"="):
		default:
			args = append(args, r.Args[i])
		}
	}
	return args
}

const settingsFlag = "--settings"

// settingsArg returns the last value of --settings in args.
func settingsArg(args []string) (value string, found bool) {
	return lastValue(args, settingsFlag)
}

// lastValue returns the value that counts of an option in args.
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
