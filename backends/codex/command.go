package codex

import (
	"encoding/json"

	"github.com/busdk/bus-agent/agent"
)

// sandboxes are Codex's words for access.
var sandboxes = map[agent.Access]string{
	agent.AccessRead:  "read-only",
	agent.AccessWrite: "workspace-write",
	agent.AccessFull:  "danger-full-access",
}

// command builds the argument list. Options stand before "resume", which takes
// few of them; the prompt comes from standard input.
func command(r agent.Request) (agent.Command, error) {
	args := []string{"exec", "--json", "--skip-git-repo-check", "--color", "never", "-C", r.Workdir, "-s", sandboxes[r.Access]}
	args = append(args, r.Resolved.Setup.Args...)
	for _, dir := range r.AddDirs {
		args = append(args, "--add-dir", dir)
	}
	args = append(args, choices(r)...)
	args = append(args, r.Args...)
	if id := r.Resolved.Setup.ResumeID; id != "" {
		args = append(args, "resume", id)
	}
	return agent.Command{Args: append(args, "-"), Stdin: r.Resolved.Setup.Prefix + r.Prompt}, nil
}

// choices returns the options that runs and terminals have in common.
func choices(r agent.Request) (args []string) {
	if r.Access == agent.AccessWrite {
		// The run has a TMPDIR of its own.
		args = append(args, config("sandbox_workspace_write.exclude_slash_tmp", true)...)
	}
	if r.Resolved.Variant == VariantLocal {
		args = append(args, "--oss", "--local-provider", "ollama")
	}
	if r.Model != "" {
		args = append(args, "-m", r.Model)
	}
	if r.ReasoningEffort != "" {
		args = append(args, config("model_reasoning_effort", string(r.ReasoningEffort))...)
	}
	if r.Verbosity != "" {
		args = append(args, config("model_verbosity", string(r.Verbosity))...)
	}
	// Without these every run asks servers of its own, and takes seconds longer
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
