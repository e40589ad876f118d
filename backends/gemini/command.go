package gemini

import (
	"strings"

	"github.com/busdk/bus-agent/agent"
)

// modes are Gemini CLI's words for access.
var modes = map[agent.Access]string{
	agent.AccessRead:  "plan",
	agent.AccessWrite: "auto_edit",
	agent.AccessFull:  "yolo",
}

// command builds the argument list; the prompt comes from standard input.
// Values are joined to their options with "=", so that none is taken for an
// option.
func command(r agent.Request) (agent.Command, error) {
	args, env, err := options(r)
	if err != nil {
		return agent.Command{}, err
	}
	args = append([]string{"-o", "stream-json"}, args...)
	return agent.Command{
		Args:  append(args, r.Args...),
		Env:   env,
		Stdin: agent.GuardSlash(r.Resolved.Setup.Prefix + r.Prompt),
	}, nil
}

// options returns the options and variables of a run, however it is shown.
func options(r agent.Request) (args, env []string, err error) {
	mode, ok := modes[r.Access]
	if !ok {
		mode = modes[agent.AccessWrite]
	}
	args = []string{"--approval-mode", mode}
	env = []string{"GEMINI_CLI_NO_RELAUNCH=true"}
	if r.TrustWorkspace {
		env = append(env, trustEnv+"=true")
	} else {
		// The variable would let the repository's settings count.
		args = append(args, "--skip-trust")
		env = append(env, trustEnv)
	}
	chosen, err := choices(r)
	if err != nil {
		return nil, nil, err
	}
	args = append(args, chosen...)
	if id := r.Resolved.Setup.ResumeID; id != "" {
		args = append(args, "--resume="+id)
	}
	return append(args, r.Resolved.Setup.Args...), env, nil
}

// choices returns the options for what runs and sessions can choose alike.
func choices(r agent.Request) ([]string, error) {
	var args []string
	if r.Access != agent.AccessFull {
		for _, pattern := range r.AllowCommands {
			if strings.TrimSpace(pattern) == "" || strings.ContainsAny(pattern, "(),\r\n\x00") {
				return nil, agent.Usagef("command pattern %q cannot be allowed: it is empty or has one of ( ) , or a line break", pattern)
			}
			args = append(args, "--allowed-tools=run_shell_command("+pattern+")")
		}
	}
	for _, dir := range r.AddDirs {
		if strings.Contains(dir, ",") || strings.TrimSpace(dir) != dir {
			return nil, agent.Usagef("directory %q cannot be added: a comma separates directories, and space at the ends is removed", dir)
		}
		args = append(args, "--include-directories="+dir)
	}
	if r.Model != "" {
		args = append(args, "--model="+r.Model)
	}
	return args, nil
}

// trustEnv names the variable that lets the repository's settings count.
const trustEnv = "GEMINI_CLI_TRUST_WORKSPACE"
