package settings

import (
	"strings"
	"time"

	"github.com/busdk/bus-agent/agent"

	"github.com/busdk/bus-integration-task/closeout"
	"github.com/busdk/bus-integration-task/worker/backend"
)

// Settings are the settings of a worker. [Resolve] makes one, with every default set. It
// is a value; nothing in it is secret.
type Settings struct {
	PolicyFile string

	EventsURL       string
	EventsTokenFile string // empty: BUS_API_TOKEN
	AllowInsecure   bool   // the token may go over http to another machine
	Recipient       string
	WorkRef         string // the only task to claim; empty: any of the recipient
	WorkerID        string // empty: the worker makes one
	RemoteID        string // labels of the machine, for evidence
	RemoteKind      string

	AgentBackend       string // backend.NameAppServer, backend.NameContainer or "session:" and a runtime
	Fallback           []string
	Model              string
	ReasoningEffort    agent.ReasoningEffort
	Args               []string // for the CLI of the runtime, after its own arguments
	Sandbox            backend.Sandbox
	TrustedContainer   bool
	ApprovalPolicy     backend.ApprovalPolicy
	ApprovalTimeout    time.Duration // zero: backend's default
	ContainerProfile   string
	ContainerImage     string
	Command            []string // with placeholders, as are the next two
	PreCommand         []string
	PostCommand        []string
	CodexCommand       string
	CodexNetworkAccess *bool // nil leaves it to Codex, as an empty CodexInheritEnv does
	CodexInheritEnv    string
	CodexStateRoot     string // empty: a private home in the worktree
	CodexSourceHome    string // empty: CODEX_HOME or ~/.codex
	SafeCrashRetries   int
	WorkerProfile      string
	AuthMode           string
	CredentialKind     string
	CredentialRef      string // name of a deployment secret
	DeploymentSecrets  string // folder; empty: /run/secrets alone

	WorkspaceRoot      string // absolute
	WorkspaceHostRoot  string // WorkspaceRoot as the container host knows it
	WorkspaceRecipient string // maps to WorkspaceRoot itself
	Worktree           bool
	WorktreeRoot       string // empty: the worker chooses
	ReadOnlyDeps       bool
	Commit             bool
	CommitMessage      string // with placeholders
	Rebase             bool   // promote also what was tested on an older commit

	MaxParallel     int
	OnePerRecipient bool
	WorkerMode      string // "persistent" or "disposable"
	Once            bool
	IdleTimeout     time.Duration // zero: never
	Timeout         time.Duration // of an attempt; zero: no limit
	Lease           time.Duration
	HandBack        time.Duration

	RequireCloseout   bool
	RequireBusNotes   bool
	TerminalWorktrees string // "remove-promoted" or "retain"
	BlockedWorktrees  string // "retain" or "remove"

	LogLevel string // "error", "warn", "info" or "debug"
	Trace    bool

	sources map[string]string
}

// AppServer returns the settings of a backend that runs Codex. All but the arguments are for
// codex-appserver alone.
func (s *Settings) AppServer() backend.AppServer {
	if s.AgentBackend != backend.NameAppServer {
		return backend.AppServer{Args: s.Args}
	}
	return backend.AppServer{Command: s.CodexCommand, Args: s.Args, NetworkAccess: s.CodexNetworkAccess, InheritEnv: s.CodexInheritEnv}
}

// Evidence returns what the operator requires of an attempt.
func (s *Settings) Evidence() closeout.Policy {
	return closeout.Policy{RequireStructuredCloseout: s.RequireCloseout, RequireBusNotes: s.RequireBusNotes}
}

// BuiltIn is the source of a default.
const BuiltIn = "built-in"

// Source returns where the setting of a flag comes from: "--" and the flag, a variable,
// "policy field" and its name, or BuiltIn. It is "" for an unknown flag.
func (s *Settings) Source(flag string) string { return s.sources[flag] }

// A Lookup returns the text of a setting and whether it is set.
type Lookup func(name string) (text string, ok bool)

// Resolve returns the settings. Flags returns the value of a flag by its name in [Docs],
// environ is the environment. It reads the policy file if one is set.
func Resolve(flags Lookup, environ []string) (Settings, error) {
	r := resolver{flags: flags, environ: environ}
	s := Settings{sources: make(map[string]string, len(table))}
	// The policy file first: the others need it.
	err := r.resolve(&s, table[:1])
	if err == nil && s.PolicyFile != "" {
		r.policy, err = ReadPolicy(s.PolicyFile)
	}
	if err == nil {
		err = r.resolve(&s, table[1:])
	}
	if err == nil {
		err = s.settle()
	}
	if err != nil {
		return Settings{}, err
	}
	return s, nil
}

type resolver struct {
	flags   Lookup
	environ []string
	policy  Policy
}

func (r *resolver) resolve(s *Settings, rows []row) error {
	for _, row := range rows {
		text, source := r.find(row, backend.IsCodex(s.AgentBackend)) // the backend is found before what depends on it
		if err := row.assign(s, text); err != nil {
			return agent.Usagef("%s: %w", source, err)
		}
		s.sources[row.flag] = source
	}
	return nil
}

// find returns the text of a setting and its source.
func (r *resolver) find(row row, codex bool) (text, source string) {
	if text, ok := r.flags(row.flag); ok {
		return text, "--" + row.flag
	}
	for _, name := range row.env {
		if row.codex != "" && !codex && strings.HasSuffix(name, "_TASK_"+row.codex) {
			continue
		}
		if text, _ := agent.LookupEnv(r.environ, name); strings.TrimSpace(text) != "" {
			return strings.TrimSpace(text), name
		}
	}
	if text, ok := r.policy.values[row.policy]; ok {
		return text, "policy field " + row.policy
	}
	return row.def, BuiltIn
}

// checkUse refuses a flag that would have no effect.
func (s *Settings) checkUse(r row) error {
	needs := r.needs
	if needs == "commit" && !s.Worktree { // a commit needs it too
		needs = "worktree"
	}
	off := needs == "worktree" && !s.Worktree || needs == "commit" && !s.Commit
	switch {
	case s.sources[r.flag] != "--"+r.flag:
	case r.backend == anySession && s.AgentBackend == backend.NameContainer:
		return agent.Usagef("--%s: the backend %s does not use it; remove it, or use another --agent-backend", r.flag, s.AgentBackend)
	case r.backend != "" && r.backend != anySession && r.backend != s.AgentBackend:
		return agent.Usagef("--%s: only the backend %s uses it; remove it, or use --agent-backend %s", r.flag, r.backend, r.backend)
	case off && (r.flag != "commit" || s.Commit):
		return agent.Usagef("--%s: it has no effect without --%s; remove it, or use --%s", r.flag, needs, needs)
	}
	return nil
}

// settle checks the settings that depend on each other.
func (s *Settings) settle() error {
	for _, r := range table {
		if err := s.checkUse(r); err != nil {
			return err
		}
	}
	switch {
	case s.Recipient == "":
		return agent.Usagef("--recipient: not set; use it or BUS_TASK_RECIPIENT")
	case s.AgentBackend == backend.NameContainer && len(s.Command) == 0:
		return agent.Usagef("--command-json: not set; the container backend needs it")
	case s.AuthMode == AuthOpenAIKey && s.CredentialRef == "" && s.CredentialKind == "deployment-secret":
		return agent.Usagef("--credential-ref: not set; the credential source kind deployment-secret needs it")
	}
	if s.sources["sandbox"] == BuiltIn && s.TrustedContainer {
		s.Sandbox = backend.DangerFullAccess
	}
	if s.Sandbox == backend.DangerFullAccess && s.sources["sandbox"] != "--sandbox" && !s.TrustedContainer {
		return agent.Usagef("%s: danger-full-access needs trusted_dedicated_container; set that, or use --sandbox danger-full-access", s.sources["sandbox"])
	}
	if s.sources["once"] == BuiltIn && s.WorkerMode == "disposable" {
		s.Once = true
	}
	return nil
}
