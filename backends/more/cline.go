package more

import (
	"bytes"
	"encoding/json"
	"path/filepath"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/formatters"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/registry/described"
)

// clineRule takes the place of the rule that it makes of the AGENTS.md in the workdir,
// which precedes the prompt.
const clineRule = "---\nname: Workspace AGENTS.md\ndisabled: true\n---\nEmpty.\n"

// cline describes Cline. Its output does not name the session, so a run cannot resume one,
// and its ACP sessions need a login in a browser. It keeps a requested model as the one of
// the user, so none can be requested.
func cline() registry.Runtime {
	const settings = "global-settings.json"
	access := func(disabled ...string) described.Setting {
		return described.Setting{Files: map[string]string{settings: clineSettings(disabled)}}
	}
	commands := []string{"run_commands", "spawn_agent", "team_spawn_teammate", "team_run_task"}
	reasoning := efforts("--thinking={}")
	delete(reasoning, agent.EffortMinimal)
	rt := define("cline", described.Definition{
		Name:        "Cline",
		Executables: []string{"cline"},
		InstallURL:  "https://docs.cline.bot/cline-cli",
		TokenEnv:    []string{"CLINE_API_KEY"},
		// It reads the prompt only after an argument.
		Args: []described.Argument{
			{"--json"}, {"--config={home}"}, {"{effort}"}, {" "},
		},
		Access: map[agent.Access]described.Setting{
			agent.AccessRead:  access(append(commands, "editor", "apply_patch")...),
			agent.AccessWrite: access(commands...),
			agent.AccessFull:  access(),
		},
		Efforts:       reasoning,
		SlashCommands: true,
		Failures: []described.Failure{
			{Kind: agent.FailureAuthentication, Contains: []string{"unauthorized", "forbidden", "invalid api key", "401", "403"}},
			{Kind: agent.FailureQuota, Contains: []string{"rate limit", "too many requests", "429", "quota"}},
		},
		Home: &described.Home{
			Files: map[string]string{"rules/agents.md": clineRule},
		},
		Executed: []string{".cline/agents", ".cline/hooks", ".cline/plugins", ".clinerules/hooks"},
		// It opens every file in these folders.
		Reads: []string{
			"AGENTS.md", ".clinerules", ".clinerules/*", ".cline/*.md", ".cline/rules/*", ".cline/bus/managed.json",
			".agents/skills/**/*", ".claude/skills/**/*", ".cline/skills/**/*", ".clinerules/skills/**/*",
			".cline/workflows/*", ".clinerules/workflows/*",
		},
		Env: map[string]*string{
			"CLINE_GLOBAL_SETTINGS_PATH": new("{home}/" + settings),
			"CLINE_SESSION_BACKEND_MODE": new("local"), // otherwise it leaves a daemon
		},
	})
	rt.Run.Command = withClineData(rt.Run.Command)
	rt.TestedVersion = "3.0.65"
	rt.Decoder = func() formatters.Decoder { return dialect(new(clineDecoder).line) }
	rt.ReportsResult = true
	rt.Protected = append(rt.Protected, ".clinerules")
	rt.ReadingTools = []string{"fetch_web_content", "read_files", "search_codebase", "skills"}
	rt.QuietStderr = func(line []byte) bool {
		return bytes.Contains(line, []byte("AI SDK Warning")) || bytes.HasPrefix(line, []byte("      at "))
	}
	return rt
}

// withClineData lets the CLI use the logins of the user, which it rewrites at each start.
func withClineData(command func(registry.Invocation) (agent.Command, error)) func(registry.Invocation) (agent.Command, error) {
	const variable = "CLINE_DATA_DIR"
	return func(inv registry.Invocation) (agent.Command, error) {
		c, err := command(inv)
		if home := inv.Getenv("HOME"); home != "" && inv.Getenv(variable) == "" {
			c.Env = append(c.Env, variable+"="+filepath.Join(home, ".cline", "data"))
		}
		return c, err
	}
}

// clineSettings returns settings without the tools of these names. Without a user who
// answers it has no use for questions.
func clineSettings(disabled []string) string {
	settings, err := json.Marshal(map[string]any{
		"autoUpdateEnabled": false, "telemetryOptOut": true, "toolAutoApprove": true, "planActMode": "act",
		"disabledTools": append(disabled, "ask_question"),
	})
	if err != nil {
		panic(err) // strings and truth values always marshal
	}
	return string(settings)
}
