package codex

import (
	"encoding/json"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
)

// sandboxes are Codex's words for access.
var sandboxes = map[agent.Access]string{
	agent.AccessRead:  "read-only",
	agent.AccessWrite: "workspace-write",
	agent.AccessFull:  "danger-full-access",
}

// command builds the argument list. Options go before "resume", which takes
// few of them; the prompt comes from standard input.
func command(inv registry.Invocation) (agent.Command, error) {
	args := []string{"exec", "--json", "--skip-git-repo-check", "--color", "never", "-C", inv.Workdir, "-s", sandboxes[inv.Access]}
	for _, dir := range inv.AddDirs {
		args = append(args, "--add-dir", dir)
	}
	args = append(args, choices(inv)...)
	args = append(args, inv.Args...)
	if inv.Resume != "" {
		args = append(args, "resume", inv.Resume)
	}
	return agent.Command{Args: append(args, "-"), Stdin: inv.Prompt}, nil
}

// choices returns the options that runs and terminals have in common.
func choices(inv registry.Invocation) (args []string) {
	if inv.Access == agent.AccessWrite {
		// The run has a private TMPDIR.
		args = append(args, config("sandbox_workspace_write.exclude_slash_tmp", true)...)
	}
	if inv.Variant == VariantLocal {
		args = append(args, "--oss", "--local-provider", "ollama")
	}
	if inv.Model != "" {
		args = append(args, "-m", inv.Model)
	}
	if inv.ReasoningEffort != "" {
		args = append(args, config("model_reasoning_effort", string(inv.ReasoningEffort))...)
	}
	if inv.Verbosity != "" {
		args = append(args, config("model_verbosity", string(inv.Verbosity))...)
	}
	// Without these every run contacts servers of OpenAI, and takes seconds longer
	// where it cannot reach them.
	args = append(args, config("analytics.enabled", false)...)
	return append(args, "--disable", "plugins")
}

// config returns the arguments that set a configuration value for one run. The
// value is written as JSON, which is TOML too for booleans, numbers and lists,
// and for strings without unusual escapes.
func config[T bool | int64 | string | []string](key string, value T) []string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // these types cannot fail
	}
	return []string{"-c", key + "=" + string(text)}
}
