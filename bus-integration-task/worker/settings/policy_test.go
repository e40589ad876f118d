package settings

import (
	"errors"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/busdk/bus-agent/agent"
)

// samplePolicy is what existing deployments have.
const samplePolicy = `{ "max_parallel_workers": 4, "one_worker_per_recipient": true, "worker_mode": "persistent",
  "safe_crash_retry_count": 1, "agent_backend": "codex-appserver", "codex_sandbox": "danger-full-access",
  "trusted_dedicated_container": true, "dummy_backends_allowed": false, "isolated_worktree": true,
  "read_only_dependency_worktrees": true, "app_server_state": "task-scoped",
  "evidence": { "require_structured_closeout": true, "require_bus_notes": true },
  "cleanup": { "terminal_worktrees": "remove-promoted", "blocked_worktrees": "retain", "retention": "operator-managed" },
  "progress_log_level": "info", "idle_timeout": "10m" }`

func TestReadPolicy(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "policy.json")
	writeFile(t, file, samplePolicy)
	s, err := given{environ: []string{"BUS_TASK_POLICY_FILE=" + file, "BUS_TASK_RECIPIENT=a"}}.resolve(t)
	if err != nil {
		t.Fatal(err)
	}
	if s.MaxParallel != 4 || !s.RequireBusNotes || s.Sandbox != "danger-full-access" || s.IdleTimeout.String() != "10m0s" || s.PolicyFile != file {
		t.Errorf("got %+v", s)
	}
	if fields := policyFields(); len(fields) != 18 {
		t.Errorf("%d fields: %v", len(fields), fields)
	}
}

func TestReadPolicyRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"unknown fields": {`{"zeta":1,"worker_mode":"persistent","evidence":{"x":true},"alpha":{"b":[{}]}}`,
			`unknown fields: "alpha", "evidence.x", "zeta"; known are agent_backend, `},
		"other case":        {`{"Worker_Mode":"persistent"}`, `unknown fields: "Worker_Mode"`},
		"dotted name":       {`{"evidence.require_bus_notes":true,"evidence":{"require_bus_notes":true}}`, "comes twice"},
		"empty name":        {`{"":1}`, `unknown fields: ""`},
		"twice":             {`{"worker_mode":"persistent","worker_mode":"disposable"}`, `"worker_mode" comes twice`},
		"unknown one twice": {`{"a":1,"a":1}`, `"a" comes twice`},
		"nested twice":      {`{"evidence":{"require_bus_notes":true,"require_bus_notes":false}}`, "comes twice"},
		"object twice":      {`{"evidence":{},"evidence":{}}`, "comes twice"},
		"wrong value":       {`{"worker_mode":"sometimes"}`, `worker_mode: "sometimes" is unknown; use persistent or disposable`},
		"wrong type":        {`{"max_parallel_workers":"4"}`, "max_parallel_workers: it is not an integer"},
		"fraction":          {`{"max_parallel_workers":1.5}`, "it is not an integer"},
		"string for bool":   {`{"isolated_worktree":"true"}`, "it is not true or false"},
		"number for string": {`{"idle_timeout":600}`, "it is not a string"},
		"null":              {`{"worker_mode":null}`, "it is not a string"},
		"not an object":     {`{"evidence":true}`, "evidence: it is not an object"},
		"dummy backends":    {`{"dummy_backends_allowed":true}`, "dummy_backends_allowed: not supported"},
		"list":              {`[]`, "not a JSON object"},
		"empty":             {``, "not a JSON object"},
		"cut off":           {`{"worker_mode":"persistent"`, "not JSON"},
		"cut off inside":    {`{"evidence":{"require_bus_notes":`, "not JSON"},
		"trailing text":     {`{} {}`, "text follows"},
		"comment":           {`{/**/}`, "not JSON"},
		"too large":         {`{}` + strings.Repeat(" ", MaxPolicy), "too large"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "policy.json")
			writeFile(t, file, c.text)
			_, err := ReadPolicy(file)
			if !errors.Is(err, agent.ErrUsage) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{dir, fifo, filepath.Join(dir, "missing")} {
		if _, err := ReadPolicy(name); !errors.Is(err, agent.ErrUsage) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
