package settings

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/busdk/bus-agent/agent"

	"github.com/busdk/bus-integration-task/worker/backend"
)

// A row describes a setting.
type row struct {
	flag    string
	aliases []string // deprecated names of the flag
	env     []string // the first one that is set counts
	policy  string   // field of the policy file, dots between objects
	def     string

	group string
	usage string
	value string // what the help calls the value; empty for a switch

	json    jsonType
	assign  func(s *Settings, text string) error
	refused bool // a feature that this program does not have

	codex   string // last word of variables that count only for a backend that runs Codex
	backend string // the only one that uses the setting; empty: all of them
	needs   string // switch without which the setting has no effect
}

func setting[T any](flag string, k kind[T], field func(*Settings) *T, def, usage string) row {
	return row{flag: flag, def: def, usage: usage, value: k.value, json: k.json, assign: func(s *Settings, text string) error {
		if len(text) > maxLine && k.value != commands.value { // before it is quoted in an error
			return fmt.Errorf("it has %d bytes; at most %d are allowed", len(text), maxLine)
		}
		value, err := k.parse(text)
		if err == nil {
			*field(s) = value
		}
		return err
	}}
}

// refuse describes a feature of other workers. Only a value that asks for what this
// program does anyway is accepted.
func refuse(flag, accepted, why string) row {
	usage := "no effect: " + why
	if accepted != "" && accepted != "false" {
		usage = "only " + accepted + " is accepted: " + why
	}
	return row{flag: flag, def: accepted, usage: usage, value: "VALUE", json: jsonBool, refused: true, assign: func(_ *Settings, text string) error {
		off := text == "" || text == accepted
		if accepted == "true" || accepted == "false" {
			on, err := boolean(text)
			off = off || err == nil && fmt.Sprint(on) == accepted
		}
		if !off {
			return errors.New("not supported: " + why)
		}
		return nil
	}}
}

// named adds older names of the flag.
func (r row) named(aliases ...string) row { r.aliases = aliases; return r }

// by adds variables.
func (r row) by(variables ...string) row { r.env = append(r.env, variables...); return r }

// task adds BUS_TASK_NAME for each name, then BUS_DEV_TASK_NAME for each, which is older.
func (r row) task(names ...string) row {
	for _, prefix := range []string{"BUS_TASK_", "BUS_DEV_TASK_"} {
		for _, name := range names {
			r.env = append(r.env, prefix+name)
		}
	}
	return r
}

// forCodex adds the variables of a name that have no effect on other runtimes.
func (r row) forCodex(name string) row { r.codex = name; return r.task(name) }

// field sets the policy field.
func (r row) field(path string) row { r.policy = path; return r }

// onlyFor sets the backend, or anySession. Other backends refuse the flag; variables and
// policy fields may be shared by workers with several backends.
func (r row) onlyFor(backend string) row { r.backend = backend; return r }

// anySession stands for every backend but the container.
const anySession = "sessions"

// with sets the switch without which the flag is refused.
func (r row) with(flag string) row { r.needs = flag; return r }

// text makes the policy field of a refused setting a string.
func (r row) text() row { r.json = jsonString; return r }

// Auth modes. With a key the agent gets an API key of OpenAI. With a subscription it gets
// none, so that Codex uses its login.
const (
	AuthOpenAIKey    = "openai-api-key"
	AuthSubscription = "chatgpt-subscription"
)

// table has every setting. The policy file is the first.
var table = slices.Concat(
	group("Policy",
		setting("policy-file", paths, func(s *Settings) *string { return &s.PolicyFile }, "", "read defaults of the settings from a JSON file").by("BUS_TASK_POLICY_FILE"),
	),
	group("Events",
		setting("events-url", urls, func(s *Settings) *string { return &s.EventsURL }, "http://127.0.0.1:8081", "connect to this Bus Events API").by("BUS_TASK_EVENTS_URL", "BUS_EVENTS_API_URL"),
		setting("events-token-file", paths, func(s *Settings) *string { return &s.EventsTokenFile }, "", "read the token from a file instead of BUS_API_TOKEN").by("BUS_EVENTS_TOKEN_FILE").named("token-file"),
		setting("allow-insecure", switches, func(s *Settings) *bool { return &s.AllowInsecure }, "false", "send the token over http to another machine").by("BUS_TASK_ALLOW_INSECURE"),
		setting("recipient", recipient, func(s *Settings) *string { return &s.Recipient }, "", "claim the tasks of this recipient").task("RECIPIENT"),
		setting("work-ref", workRef, func(s *Settings) *string { return &s.WorkRef }, "", "claim this task alone").task("WORK_REF"),
		setting("worker-id", workerID, func(s *Settings) *string { return &s.WorkerID }, "", "use this worker ID; it must be unique").by("BUS_TASK_WORKER_ID"),
		setting("remote-id", texts, func(s *Settings) *string { return &s.RemoteID }, "", "name of this machine in evidence").task("REMOTE_ID"),
		setting("remote-kind", texts, func(s *Settings) *string { return &s.RemoteKind }, "", "kind of this machine in evidence").task("REMOTE_KIND"),
	),
	group("Worker",
		setting("max-parallel-workers", integer(1, 64), func(s *Settings) *int { return &s.MaxParallel }, "1", "maximum number of tasks to work on at once").by("BUS_TASK_MAX_PARALLEL_WORKERS").field("max_parallel_workers"),
		setting("one-worker-per-recipient", switches, func(s *Settings) *bool { return &s.OnePerRecipient }, "false", "refuse to start while another such worker of the recipient runs for this user on this machine").by("BUS_TASK_ONE_WORKER_PER_RECIPIENT").field("one_worker_per_recipient"),
		setting("worker-mode", oneOf("persistent", "disposable"), func(s *Settings) *string { return &s.WorkerMode }, "persistent", "keep claiming tasks, or end after one as --once does").by("BUS_TASK_WORKER_MODE").field("worker_mode"),
		setting("once", switches, func(s *Settings) *bool { return &s.Once }, "false", "end after one task").task("ONCE"),
		setting("idle-timeout", durations, func(s *Settings) *time.Duration { return &s.IdleTimeout }, "0s", "end when there was nothing to do for so long; 0 never ends").task("IDLE_TIMEOUT").field("idle_timeout"),
		setting("timeout", durations, func(s *Settings) *time.Duration { return &s.Timeout }, "30m", "bound an attempt; 0 means no bound, or a day for a container").task("TIMEOUT"),
		setting("lease", leases, func(s *Settings) *time.Duration { return &s.Lease }, "1m", "how long a claim is valid without renewal, from 3s to 1h").by("BUS_TASK_LEASE"),
		setting("hand-back", durations, func(s *Settings) *time.Duration { return &s.HandBack }, "20s", "how long a running turn may take after SIGTERM before its task is handed back").by("BUS_TASK_HAND_BACK"),
		setting("safe-crash-retry-count", integer(0, 10), func(s *Settings) *int { return &s.SafeCrashRetries }, "1", "maximum number of times that a crashed agent, or a lost worker, is replaced in a task").by("BUS_TASK_SAFE_CRASH_RETRY_COUNT").field("safe_crash_retry_count"),
		setting("log-level", oneOf("error", "warn", "info", "debug"), func(s *Settings) *string { return &s.LogLevel }, "info", "least level of messages on standard error").by("BUS_TASK_LOG_LEVEL").field("progress_log_level"),
		setting("trace", switches, func(s *Settings) *bool { return &s.Trace }, "false", "log every event of every task too, whatever the log level").task("TRACE"),
	),
	group("Agent",
		setting("agent-backend", backends, func(s *Settings) *string { return &s.AgentBackend }, backend.NameAppServer, "run tasks with codex-appserver, container or session:RUNTIME").task("AGENT_BACKEND").field("agent_backend"),
		setting("fallback", lists, func(s *Settings) *[]string { return &s.Fallback }, "", "runtimes to try when one is out of quota, not logged in or not installed").by("BUS_TASK_FALLBACK").onlyFor(anySession),
		setting("model", models, func(s *Settings) *string { return &s.Model }, "", "request this model").task("MODEL").forCodex("CODEX_MODEL").named("codex-model").onlyFor(anySession),
		setting("reasoning-effort", efforts, func(s *Settings) *agent.ReasoningEffort { return &s.ReasoningEffort }, "", "request this reasoning effort").by("BUS_TASK_REASONING_EFFORT").onlyFor(anySession),
		setting("args-json", arguments, func(s *Settings) *[]string { return &s.Args }, "", "further arguments for the runtime, a JSON array").task("ARGS_JSON").forCodex("CODEX_ARGS").named("codex-args-json").onlyFor(anySession),
		setting("sandbox", sandboxes, func(s *Settings) *backend.Sandbox { return &s.Sandbox }, string(backend.WorkspaceWrite), "what the agent may do: read-only, workspace-write or danger-full-access").task("SANDBOX", "CODEX_SANDBOX").field("codex_sandbox").named("codex-sandbox"),
		setting("trusted-dedicated-container", switches, func(s *Settings) *bool { return &s.TrustedContainer }, "false", "the worker has a dedicated container; danger-full-access becomes the default sandbox").by("BUS_TASK_TRUSTED_DEDICATED_CONTAINER").field("trusted_dedicated_container"),
		setting("approval-policy", approvals, func(s *Settings) *backend.ApprovalPolicy { return &s.ApprovalPolicy }, string(backend.ApprovalOnRequest), "publish approval requests (on-request) or decline them (never)").task("APPROVAL_POLICY", "CODEX_APPROVAL_POLICY").named("codex-approval-policy").onlyFor(anySession),
		setting("approval-timeout", durations, func(s *Settings) *time.Duration { return &s.ApprovalTimeout }, "0s", "how long an approval request waits before it is declined; 0 is the default of sessions").by("BUS_TASK_APPROVAL_TIMEOUT").onlyFor(anySession),
		setting("codex-command", executables, func(s *Settings) *string { return &s.CodexCommand }, "codex", "executable of Codex: a name in PATH or an absolute path").task("CODEX_COMMAND").onlyFor(backend.NameAppServer),
		setting("codex-network-access", decisions, func(s *Settings) **bool { return &s.CodexNetworkAccess }, "", "whether commands in the workspace-write sandbox may use the network; empty leaves it to Codex").task("CODEX_NETWORK_ACCESS").onlyFor(backend.NameAppServer),
		setting("codex-inherit-env", oneOf("", "all", "core", "none"), func(s *Settings) *string { return &s.CodexInheritEnv }, "", "variables that the agent's commands inherit; empty leaves it to Codex").by("BUS_TASK_CODEX_INHERIT_ENV").onlyFor(backend.NameAppServer),
		setting("codex-state-root", paths, func(s *Settings) *string { return &s.CodexStateRoot }, "", "keep the state of runtimes in a folder for each task below this one").task("CODEX_STATE_ROOT").onlyFor(anySession),
		setting("codex-source-home", paths, func(s *Settings) *string { return &s.CodexSourceHome }, "", "copy the login and config.toml of Codex from here").task("CODEX_SOURCE_HOME").onlyFor(anySession),
		setting("worker-profile", texts, func(s *Settings) *string { return &s.WorkerProfile }, "", "label of this worker; without it, the one that a task requests is reported").by("BUS_TASK_WORKER_PROFILE"),
		setting("auth-mode", oneOf("", AuthSubscription, AuthOpenAIKey), func(s *Settings) *string { return &s.AuthMode }, "", "give the agent an API key of OpenAI, or hide those in the environment so that Codex uses its login").by("BUS_TASK_AUTH_MODE"),
		setting("credential-source-kind", oneOf("", "token-file", "deployment-secret", "user-config key", "os-credential-label", "ssh-issued-token"), func(s *Settings) *string { return &s.CredentialKind }, "", "label of the credential's source").by("BUS_TASK_CREDENTIAL_SOURCE_KIND"),
		setting("credential-ref", secretRef, func(s *Settings) *string { return &s.CredentialRef }, "", "name of the deployment secret with the API key").by("BUS_TASK_CREDENTIAL_REF"),
		setting("deployment-secrets-dir", paths, func(s *Settings) *string { return &s.DeploymentSecrets }, "", "search secrets here before /run/secrets").by("BUS_TASK_DEPLOYMENT_SECRETS_DIR"),
	),
	group("Container",
		setting("container-profile", texts, func(s *Settings) *string { return &s.ContainerProfile }, "codex", "profile of the container integration").task("CONTAINER_PROFILE").onlyFor(backend.NameContainer),
		setting("container-image", texts, func(s *Settings) *string { return &s.ContainerImage }, "", "run this image instead of a profile").task("CONTAINER_IMAGE").onlyFor(backend.NameContainer),
		setting("command-json", commands, func(s *Settings) *[]string { return &s.Command }, "", "command to run, a JSON array with placeholders").task("COMMAND_JSON").onlyFor(backend.NameContainer),
		setting("pre-command-json", commands, func(s *Settings) *[]string { return &s.PreCommand }, "", "command to run before").task("PRE_COMMAND_JSON").onlyFor(backend.NameContainer),
		setting("post-command-json", commands, func(s *Settings) *[]string { return &s.PostCommand }, "", "command to run after").task("POST_COMMAND_JSON").onlyFor(backend.NameContainer),
	),
	group("Workspace",
		setting("workspace-root", paths, func(s *Settings) *string { return &s.WorkspaceRoot }, ".", "folder whose subfolders are the repositories of recipients").task("WORKSPACE_ROOT"),
		setting("workspace-host-root", paths, func(s *Settings) *string { return &s.WorkspaceHostRoot }, "", "the workspace root as the container host knows it").task("WORKSPACE_HOST_ROOT").onlyFor(backend.NameContainer),
		setting("workspace-recipient", recipient, func(s *Settings) *string { return &s.WorkspaceRecipient }, "", "recipient whose repository is the workspace root itself").task("WORKSPACE_RECIPIENT"),
		setting("worktree", switches, func(s *Settings) *bool { return &s.Worktree }, "true", "run each task in an isolated worktree").task("WORKTREE").field("isolated_worktree"),
		setting("worktree-root", paths, func(s *Settings) *string { return &s.WorktreeRoot }, "", "make worktrees below this folder, by default one in the user's state").task("WORKTREE_ROOT").with("worktree"),
		setting("read-only-dependency-worktrees", switches, func(s *Settings) *bool { return &s.ReadOnlyDeps }, "true", "link the other modules of a superproject into the worktree; the sandbox keeps them read-only").by("BUS_TASK_READ_ONLY_DEPENDENCY_WORKTREES").with("worktree").field("read_only_dependency_worktrees"),
		setting("commit", switches, func(s *Settings) *bool { return &s.Commit }, "true", "commit the changes of a task and promote them").task("COMMIT").with("worktree"),
		setting("commit-message", messages, func(s *Settings) *string { return &s.CommitMessage }, "chore: dev task {work_ref}", "commit message with placeholders").task("COMMIT_MESSAGE").with("commit"),
		setting("rebase", switches, func(s *Settings) *bool { return &s.Rebase }, "false", "rebase a task if other tasks have moved the branch meanwhile; what lands was then not tested as a whole").by("BUS_TASK_REBASE").with("commit"),
		setting("terminal-worktrees", oneOf("remove-promoted", "retain"), func(s *Settings) *string { return &s.TerminalWorktrees }, "remove-promoted", "remove or keep the worktrees of tasks that are done").by("BUS_TASK_TERMINAL_WORKTREES").with("worktree").field("cleanup.terminal_worktrees"),
		setting("blocked-worktrees", oneOf("retain", "remove"), func(s *Settings) *string { return &s.BlockedWorktrees }, "retain", "remove or keep the worktrees of tasks that are blocked or failed").by("BUS_TASK_BLOCKED_WORKTREES").with("worktree").field("cleanup.blocked_worktrees"),
	),
	group("Evidence",
		setting("require-structured-closeout", switches, func(s *Settings) *bool { return &s.RequireCloseout }, "true", "block a task whose agent reports no closeout").by("BUS_TASK_REQUIRE_STRUCTURED_CLOSEOUT").onlyFor(anySession).field("evidence.require_structured_closeout"),
		setting("require-bus-notes", switches, func(s *Settings) *bool { return &s.RequireBusNotes }, "false", "block a task without Bus Notes").by("BUS_TASK_REQUIRE_BUS_NOTES").field("evidence.require_bus_notes"),
	),
	group("Without effect",
		refuse("app-server-state", "task-scoped", "each task has its own state of the runtime").text().by("BUS_TASK_APP_SERVER_STATE").field("app_server_state"),
		refuse("retention", "operator-managed", "the worker never removes a retained worktree").text().by("BUS_TASK_RETENTION").field("cleanup.retention"),
		refuse("dummy-backends-allowed", "false", "this worker has no dummy backend").field("dummy_backends_allowed"),
		refuse("write-scopes", "", "the worktree is the only scope that a task can write to").task("WRITE_SCOPES"),
		refuse("remote-endpoint", "", "this worker is not reached from elsewhere; use --remote-id and --remote-kind as labels"),
		refuse("account-id", "", "the token decides the account"),
		refuse("gopls-mcp", "false", "add the MCP server to config.toml in --codex-source-home").task("GOPLS_MCP"),
		refuse("gopls-command", "", "add the MCP server to config.toml in --codex-source-home").task("GOPLS_COMMAND"),
		refuse("gopls-min-version", "", "add the MCP server to config.toml in --codex-source-home").task("GOPLS_MIN_VERSION"),
		refuse("go-debugger", "false", "the worker starts no debugger").task("GO_DEBUGGER"),
		refuse("go-debugger-command", "", "the worker starts no debugger").task("GO_DEBUGGER_COMMAND"),
		refuse("worker-groups", "", "start a worker for each recipient"),
		refuse("worker-start-request-consumer", "false", "start workers by the operator's own means"),
		refuse("supervisor-once", "false", "this worker does not watch other workers"),
	),
)

func group(name string, rows ...row) []row {
	for i := range rows {
		rows[i].group = name
	}
	return rows
}
