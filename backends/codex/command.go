package codex

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
)

// sandboxes maps each access to a sandbox mode of Codex.
var sandboxes = map[agent.Access]string{
	agent.AccessRead:  "read-only",
	agent.AccessWrite: "workspace-write",
	agent.AccessFull:  "danger-full-access",
}

// command builds the argument list. Options go before "resume", which accepts only a
// few; the prompt is read from standard input.
func command(inv registry.Invocation) (agent.Command, error) {
	args := []string{"exec", "--json", "--skip-git-repo-check", "--color", "never", "-C", inv.Workdir, "-s", sandboxes[inv.Access]}
	for _, dir := range inv.AddDirs {
		args = append(args, "--add-dir", dir)
	}
	if _, ownHome := agent.LookupEnv(inv.Env, homeEnv); ownHome || usesConfig(inv) && !inv.TrustWorkspace {
		args = append(args, trust(inv)...)
	}
	args = append(args, choices(inv)...)
	args = append(args, inv.Args...)
	if inv.Resume != "" {
		args = append(args, "resume", inv.Resume)
	}
	for _, a := range inv.Attachments {
		args = append(args, "--image="+a.Path)
	}
	return agent.Command{Args: append(args, "-"), Stdin: inv.Prompt}, nil
}

// localProvider is the option that names the server of local models.
const localProvider = "--local-provider"

// choices returns the options that runs and terminals have in common.
func choices(inv registry.Invocation) (args []string) {
	if inv.Access == agent.AccessWrite {
		// The run has a private TMPDIR.
		args = append(args, config("sandbox_workspace_write.exclude_slash_tmp", true)...)
		if inv.UserConfig == agent.UserConfigOn {
			args = append(args, config("sandbox_workspace_write.writable_roots", []string{})...)
		}
	}
	if inv.Variant == VariantLocal {
		args = append(args, "--oss")
		// Codex refuses the option when it is given twice.
		if !slices.ContainsFunc(inv.Args, func(arg string) bool { return arg == localProvider || strings.HasPrefix(arg, localProvider+"=") }) {
			args = append(args, localProvider, "ollama")
		}
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
	args = append(args, systemPrompt(inv)...)
	// Otherwise every run contacts servers of OpenAI, and takes seconds longer if
	// they are unreachable.
	args = append(args, config("analytics.enabled", false)...)
	return append(args, "--disable", "plugins")
}

// systemPrompt returns the arguments that deliver the additional system prompt, as text of
// the developer.
func systemPrompt(inv registry.Invocation) []string {
	if inv.AppendSystemPrompt == "" {
		return nil
	}
	return config("developer_instructions", inv.AppendSystemPrompt)
}

// config returns the arguments that set a configuration value for one run. The value
// is written as JSON, which is also valid TOML for booleans, numbers, lists, and strings
// without unusual escapes.
func config[T bool | int64 | string | []string](key string, value T) []string {
	return []string{"-c", key + "=" + encode(value)}
}

// encode returns value as JSON that is valid TOML too. Longer escapes than needed could
// make it longer than an argument can be.
func encode[T bool | int64 | string | []string](value T) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		panic(err) // these types cannot fail
	}
	return strings.ReplaceAll(strings.TrimSuffix(b.String(), "\n"), "\x7f", `\u007f`)
}
