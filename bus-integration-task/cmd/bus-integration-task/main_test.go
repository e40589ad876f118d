package main

import (
	"bytes"
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/busdk/bus-integration-task/eventserver"
	"github.com/busdk/bus-integration-task/task"
)

// call runs the program. Tests that use it are not parallel: the flags of urfave/cli for
// help and version are global.
func call(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, message bytes.Buffer
	code = run(t.Context(), append([]string{"bus-integration-task"}, args...), &out, &message)
	return code, out.String(), message.String()
}

// A usage error is one line and exit code 2, and starts nothing.
func TestUsageErrors(t *testing.T) {
	t.Setenv("BUS_API_TOKEN", "t")
	t.Setenv(secretVariable, "short")
	t.Setenv(clusterVariable, "")
	for _, c := range []struct {
		args []string
		text string
	}{
		{[]string{"nope"}, "nope"},
		{[]string{"--nope"}, "nope"},
		{[]string{"--recipient", "a/../b", "--workspace-root", "/tmp"}, "recipient"},
		{[]string{"--workspace-root", "/tmp"}, "--recipient"},
		{[]string{"--recipient", "dev", "--workspace-root", t.TempDir()}, "dev"},
		{[]string{"--recipient", "dev", "--agent-backend", "psychic"}, "psychic"},
		{[]string{"events", "nope"}, "nope"},
		{[]string{"events", "serve"}, "--store"},
		{[]string{"events", "serve", "--store", "x", "--nats", "y"}, "--nats"},
		{[]string{"events", "serve", "--store", "x"}, secretVariable},
		{[]string{"events", "serve", "--store", "x", "--server-name", "a"}, "--cluster"},
		{[]string{"events", "serve", "--store", "x", "--cluster", "c", "--server-name", "a", "--cluster-listen", "127.0.0.1:0"}, "--cluster-route"},
		{[]string{"events", "serve", "--nats", "x", "--cluster", "c", "--server-name", "a", "--cluster-listen", "127.0.0.1:0", "--cluster-route", "b:1"}, "--store"},
		{[]string{"events", "serve", "--store", "x", "--cluster", "c", "--server-name", "a", "--cluster-listen", "127.0.0.1", "--cluster-route", "b:1"}, "--cluster-listen"},
		{[]string{"events", "serve", "--store", "x", "--cluster", "c", "--server-name", "a", "--cluster-listen", "127.0.0.1:0", "--cluster-route", "b:1"}, clusterVariable},
		{[]string{"events", "token", "--for", "nobody"}, "nobody"},
		{[]string{"events", "token", "more"}, "more"},
		{[]string{"task", "nope"}, "nope"},
		{[]string{"task", "new", "dev", "text"}, "@RECIPIENT"},
		{[]string{"task", "new", "--branch", "a", "--new-branch", "b", "@dev", "text"}, "exclude"},
		{[]string{"task", "new", "--project", "../x", "@dev", "text"}, "project"},
		{[]string{"task", "new", "--ref", "-x", "@dev", "text"}, "-x"},
		{[]string{"task", "show"}, "REF"},
		{[]string{"task", "show", "a", "b"}, "one reference"},
		{[]string{"task", "say", "bus#1.1"}, "MESSAGE"},
		{[]string{"task", "watch", "../x"}, "../x"},
		{[]string{"task", "approve", "bus#1.1", "1"}, "usage"},
		{[]string{"task", "approve", "bus#1.1", "1", "perhaps"}, "perhaps"},
		{[]string{"task", "--token-file", "/nowhere", "list"}, "/nowhere"},
		{[]string{"task", "board", "--listen", "0.0.0.0:0"}, "loopback"},
		{[]string{"dev", "--store", t.TempDir()}, "--recipient"},
	} {
		code, stdout, stderr := call(t, c.args...)
		if code != 2 || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, c.text) || stdout != "" {
			t.Errorf("%q: exit code %d, stdout %q, stderr %q", c.args, code, stdout, stderr)
		}
	}
}

// client returns a function that runs task commands against a server in memory.
func client(t *testing.T) func(args ...string) (code int, stdout, stderr string) {
	t.Helper()
	secret := []byte(strings.Repeat("s", eventserver.MinSecretBytes))
	s, err := eventserver.Open(t.Context(), eventserver.Config{Secret: secret, Store: t.TempDir(), SyncEvery: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(s)
	t.Cleanup(func() { s.Close(); h.Close() })
	token, err := eventserver.Mint(secret, eventserver.MintOptions{
		Subject: "local", Scopes: append(scopes["worker"], eventserver.ScopeTaskAdmin), Lifetime: time.Hour,
	})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
		t.Fatal(err)
	}
	return func(args ...string) (int, string, string) {
		t.Helper()
		return call(t, append([]string{"task", "--events-url", h.URL, "--token-file", file}, args...)...)
	}
}

func TestTaskCommands(t *testing.T) {
	do := client(t)
	for _, c := range []struct {
		args           []string
		code           int
		stdout, stderr string
	}{
		{[]string{"list"}, 0, "", ""},
		{[]string{"show", "bus#1.1"}, 1, "", "there is no task bus#1.1"},
		{[]string{"say", "bus#1.1", "hi"}, 1, "", "there is no task"},
		{[]string{"new", "@dev", "fix", "the", "build"}, 0, "created (bus#1.1) -> @dev\n", ""},
		{[]string{"new", "@dev", "fix the other"}, 0, "created (bus#2.1) -> @dev\n", ""},
		{[]string{"new", "--format", "json", "--project", "acme/pay", "@ops", "x"}, 0, `"work_ref":"acme/pay#1.1"`, ""},
		{[]string{"new", "@dev", "a third"}, 0, "created (bus#3.1) -> @dev\n", ""},
		{[]string{"new", "@dev", "a fourth"}, 0, "created (bus#4.1) -> @dev\n", ""},
		{[]string{"new", "@dev", "a fifth"}, 0, "created (bus#5.1) -> @dev\n", ""},
		{[]string{"new", "@dev", "a sixth"}, 0, "created (bus#6.1) -> @dev\n", ""},
		{[]string{"new", "--ref", "bus#2.1", "@dev", "again"}, 1, "", "task bus#2.1 exists"},
		{[]string{"new", "--pending", "--new-branch", "work/x", "--ref", "bus#9.1", "@dev", "later"}, 0, "bus#9.1", ""},
		{[]string{"list", "--recipient", "@ops"}, 0, "acme/pay#1.1\t@ops\topen\tx\n", ""},
		{[]string{"list", "--status", "pending"}, 0, "bus#9.1\t@dev\tpending\tlater\n", ""},
		{[]string{"approve", "bus#1.1"}, 1, "", "not pending"},
		{[]string{"approve", "bus#9.1"}, 0, "", ""},
		{[]string{"list", "--status", "pending"}, 0, "", ""},
		{[]string{"approve", "bus#1.1", "7", "accept"}, 1, "", "no open approval request"},
		{[]string{"say", "bus#1.1", "be", "quick"}, 0, "", ""},
		{[]string{"reopen", "bus#1.1", "more"}, 1, "", "use task say"},
		{[]string{"cancel", "bus#1.1", "not", "needed"}, 0, "", ""},
		{[]string{"cancel", "bus#1.1"}, 1, "", "canceled already"},
		{[]string{"say", "bus#1.1", "hi"}, 1, "", "use task reopen"},
		{[]string{"watch", "bus#1.1"}, 1, "bus.task.canceled\tbus#1.1\tnot needed\tstatus=canceled\tsource=bus-integration-task\n", "task bus#1.1 is canceled"},
		{[]string{"reopen", "bus#1.1", "after", "all"}, 0, "", ""},
		{[]string{"watch", "--timeout", "1ms", "bus#1.1"}, 1, "", "has not ended within 1ms"},
		{[]string{"show", "bus#1.1"}, 0, "bus.task.reopened\tbus#1.1\tafter all\tstatus=open\tsource=bus-integration-task\n", ""},
		{[]string{"show", "--format", "json", "bus#9.1"}, 0, `"branch":"work/x","create_branch":true`, ""},
	} {
		code, stdout, stderr := do(c.args...)
		if code != c.code || !strings.Contains(stdout, c.stdout) || c.stdout == "" && stdout != "" && c.args[0] != "watch" ||
			!strings.Contains(stderr, c.stderr) || (c.stderr == "") != (stderr == "") {
			t.Errorf("%q: exit code %d, stdout %q, stderr %q", c.args, code, stdout, stderr)
		}
	}
	_, stdout, _ := do("list", "--format", "json", "--recipient", "ops")
	var got row
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || got.Status != task.StatusOpen || got.WorkRef != "acme/pay#1.1" {
		t.Errorf("%s: %v", stdout, err)
	}
}

// What a task's text has for a terminal does not reach it.
func TestHostileTextIsShownSafely(t *testing.T) {
	do := client(t)
	if code, _, stderr := do("new", "@dev", "\x1b]0;owned\x07\u202egpj\nbus.task.done\tbus#1.1"); code != 0 {
		t.Fatal(stderr)
	}
	for _, command := range []string{"show", "list"} {
		args := []string{command}
		if command == "show" {
			args = append(args, "bus#1.1")
		}
		if _, stdout, _ := do(args...); strings.ContainsAny(stdout, "\x1b\x07\u202e") || strings.Count(stdout, "\n") != 1 {
			t.Errorf("%s: %q", command, stdout)
		}
	}
}
