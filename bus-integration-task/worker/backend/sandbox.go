package backend

import (
	"slices"
	"strings"

	"github.com/busdk/bus-agent/agent"
)

// A Sandbox is what an agent may do, in the words of Codex.
type Sandbox string

// The sandboxes.
const (
	ReadOnly         Sandbox = "read-only"
	WorkspaceWrite   Sandbox = "workspace-write"
	DangerFullAccess Sandbox = "danger-full-access"
)

// accesses are the sandboxes in the words of bus-agent, least first.
var accesses = []struct {
	sandbox Sandbox
	access  agent.Access
}{
	{ReadOnly, agent.AccessRead},
	{WorkspaceWrite, agent.AccessWrite},
	{DangerFullAccess, agent.AccessFull},
}

// ParseSandbox returns the sandbox with a name; the words of bus-agent, read, write and
// full, are accepted as well. The error is of kind agent.ErrUsage.
func ParseSandbox(name string) (Sandbox, error) {
	var names []string
	for _, a := range accesses {
		if name == string(a.sandbox) || name == string(a.access) {
			return a.sandbox, nil
		}
		names = append(names, string(a.sandbox))
	}
	return "", agent.Usagef("sandbox %q is unknown; use %s", name, strings.Join(names, ", "))
}

// Access returns the sandbox in the words of bus-agent. That of the empty sandbox is
// agent.AccessWrite, that of an unknown one the empty word.
func (s Sandbox) Access() agent.Access {
	if s == "" {
		return agent.AccessWrite
	}
	for _, a := range accesses {
		if a.sandbox == s {
			return a.access
		}
	}
	return ""
}

// An ApprovalPolicy says whether an agent's approval requests wait for an answer.
type ApprovalPolicy string

// The policies. Under DangerFullAccess agents request no approval.
const (
	// ApprovalOnRequest passes requests on and declines those that stay unanswered.
	ApprovalOnRequest ApprovalPolicy = "on-request"
	// ApprovalNever declines every request at once.
	ApprovalNever ApprovalPolicy = "never"
)

// ParseApprovalPolicy returns the policy with a name. The policies untrusted and
// on-failure of Codex are refused: they would run commands of the agent outside its
// sandbox, or request approval for each command inside it.
func ParseApprovalPolicy(name string) (ApprovalPolicy, error) {
	policies := []ApprovalPolicy{ApprovalOnRequest, ApprovalNever}
	if slices.Contains(policies, ApprovalPolicy(name)) {
		return ApprovalPolicy(name), nil
	}
	return "", agent.Usagef("approval policy %q is not supported; use %s or %s", name, ApprovalOnRequest, ApprovalNever)
}
