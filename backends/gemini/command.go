package gemini

import (
	"slices"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
)

// modes maps each access to an approval mode.
var modes = map[agent.Access]string{
	agent.AccessRead:  "plan",
	agent.AccessWrite: "auto_edit",
	agent.AccessFull:  "yolo",
}

// command builds the argument list. The prompt is read from standard input. Values are
// joined to their options with "=", so that none is read as an option.
func command(inv registry.Invocation) (agent.Command, error) {
	inv, err := attach(inv)
	if err != nil {
		return agent.Command{}, err
	}
	args, env := options(inv)
	args = append([]string{"-o", "stream-json"}, args...)
	return agent.Command{Args: append(args, inv.Args...), Env: env, Stdin: inv.Prompt}, nil
}

// options returns the options and variables of a run, in a terminal or not.
func options(inv registry.Invocation) (args, env []string) {
	mode, ok := modes[inv.Access]
	if !ok {
		mode = modes[agent.AccessWrite]
	}
	args = []string{"--approval-mode", mode}
	env = []string{"GEMINI_CLI_NO_RELAUNCH=true"}
	if inv.TrustWorkspace {
		env = append(env, trustEnv+"=true")
	} else {
		// The CLI reads its settings, without those of the repository, before
		// --skip-trust changes the variable.
		args = append(args, "--skip-trust")
		env = append(env, trustEnv+"=false", trustedFoldersEnv)
	}
	args = append(args, choices(inv)...)
	if inv.Resume != "" {
		args = append(args, "--resume="+inv.Resume)
	}
	return args, env
}

// choices returns the options that runs and sessions have in common.
func choices(inv registry.Invocation) (args []string) {
	if inv.Access != agent.AccessFull {
		for _, pattern := range inv.AllowCommands {
			args = append(args, "--allowed-tools=run_shell_command("+pattern+")")
		}
	}
	for _, dir := range inv.AddDirs {
		args = append(args, "--include-directories="+dir)
	}
	if inv.Model != "" {
		args = append(args, "--model="+inv.Model)
	}
	return args
}

// imports reports whether Gemini CLI takes a word of a context file for an import.
func imports(text string) bool {
	return slices.ContainsFunc(strings.Fields(text), func(word string) bool { return len(word) > 1 && word[0] == '@' })
}

// hasVariable reports whether Gemini CLI takes a part of its settings for a variable.
func hasVariable(text string) bool {
	for _, after := range strings.Split(text, "$")[1:] {
		if after != "" && strings.ContainsRune("_{ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", rune(after[0])) {
			return true
		}
	}
	return false
}

// check refuses what Gemini CLI does not support.
func check(inv registry.Invocation) error {
	if inv.Access != agent.AccessFull {
		if err := registry.CheckCommandPatterns(inv.AllowCommands); err != nil {
			return err
		}
	}
	if _, ownHome := agent.LookupEnv(inv.Env, homeEnv); ownHome && (inv.AppendSystemPrompt != "" || len(inv.MCPServers)+len(inv.AllowTools)+len(inv.DenyTools) > 0) {
		return agent.Usagef("an additional system prompt, MCP servers and lists of tools cannot be added to a %s of your own; leave them out", homeEnv)
	}
	if hasVariable(string(agent.MCPConfig(inv.MCPServers))) {
		return agent.Usagef("Gemini CLI would expand a $ in an MCP server; leave it out of its values")
	}
	if imports(inv.AppendSystemPrompt) {
		return agent.Usagef("Gemini CLI reads a word of the additional system prompt that begins with @ as a file to import; leave out the @")
	}
	for _, dir := range inv.AddDirs {
		if strings.Contains(dir, ",") || strings.TrimSpace(dir) != dir {
			return agent.Usagef("directory %q cannot be added: a comma separates directories, and space at the ends is removed", dir)
		}
	}
	return nil
}

const (
	// trustEnv names the variable that decides whether the CLI uses the repository's
	// settings.
	trustEnv = "GEMINI_CLI_TRUST_WORKSPACE"
	// trustedFoldersEnv names the variable with a file of folders to trust.
	trustedFoldersEnv = "GEMINI_CLI_TRUSTED_FOLDERS_PATH"
)
