package main

import (
	"bytes"
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/busdk/bus-integration-task/events"
	"github.com/busdk/bus-integration-task/eventserver"
	"github.com/busdk/bus-integration-task/task"
	"github.com/busdk/bus-integration-task/worker/backend/stubagent"
)

// call runs the program.
func call(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return callWith(t, "", args...)
}

// callWith is call with a text on standard input.
func callWith(t *testing.T, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, message bytes.Buffer
	code = run(t.Context(), append([]string{"bus-integration-task"}, args...), strings.NewReader(stdin), &out, &message)
	return code, out.String(), message.String()
}

// TestMain makes the test binary the program, for tests that start it, and the agent that
// the program starts.
func TestMain(m *testing.M) {
	stubagent.Play()
	if os.Getenv(programVariable) != "" {
		main()
	}
	os.Exit(m.Run())
}

const programVariable = "BUS_TEST_PROGRAM"

// A usage error is one line and exit code 2, and starts nothing.
func TestUsageErrors(t *testing.T) {
	t.Setenv("BUS_API_TOKEN", "t")
	t.Setenv(secretVariable, "short")
	t.Setenv(clusterVariable, "")
	workspace, store := t.TempDir(), filepath.Join(t.TempDir(), "store")
	if err := os.Mkdir(filepath.Join(workspace, "dev"), 0o700); err != nil {
		t.Fatal(err)
	}
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
		{[]string{"events", "serve", "--store", "x", "--cluster-advertise", "b:1"}, "--cluster NAME"},
		{[]string{"events", "serve", "--store", "x", "--cluster", "c", "--server-name", "a", "--cluster-listen", "127.0.0.1:0", "--cluster-advertise", "b", "--cluster-route", "b:1"}, "--cluster-advertise"},
		{[]string{"events", "serve", "--nats", "x", "--cluster", "c", "--server-name", "a", "--cluster-listen", "127.0.0.1:0", "--cluster-route", "b:1"}, "--store"},
		{[]string{"events", "serve", "--store", "x", "--cluster", "c", "--server-name", "a", "--cluster-listen", "127.0.0.1", "--cluster-route", "b:1"}, "--cluster-listen"},
		{[]string{"events", "serve", "--store", "x", "--cluster", "c", "--server-name", "a", "--cluster-listen", "127.0.0.1:0", "--cluster-route", "b:1"}, clusterVariable},
		{[]string{"events", "token", "--for", "stranger"}, "stranger"},
		{[]string{"events", "token", "more"}, "more"},
		{[]string{"task", "nope"}, "nope"},
		{[]string{"events", "token", "--subject", ""}, "--subject is empty"},
		{[]string{"task", "help"}, "task --help"},
		{[]string{"\x1b[31m" + strings.Repeat("x", 5000)}, "there is no command"},
		{[]string{"task", "new"}, "usage: task new"},
		{[]string{"task", "new", "dev", "text"}, "@RECIPIENT"},
		{[]string{"task", "new", "@../x", "text"}, "recipient"},
		{[]string{"task", "new", "@dev", ""}, "text is empty"},
		{[]string{"task", "new", "@dev", " \x01\u202e\n"}, "text is empty"},
		{[]string{"task", "new", "@dev", "-"}, "text is empty"},
		{[]string{"task", "new", "@dev", "a\xff"}, "UTF-8"},
		{[]string{"task", "new", "@dev", strings.Repeat("x", maxText+1)}, "more than"},
		{[]string{"task", "new", "@dev", "text", "--model", "x"}, "before it"},
		{[]string{"task", "new", "--branch", "", "@dev", "text"}, "--branch is empty"},
		{[]string{"task", "new", "--branch", "-x", "@dev", "text"}, "-x"},
		{[]string{"task", "new", "--new-branch", "a\nb", "@dev", "text"}, "branch"},
		{[]string{"task", "new", "--base-branch", "../x", "@dev", "text"}, "../x"},
		{[]string{"task", "new", "--effort", "../x", "@dev", "text"}, "--effort"},
		{[]string{"task", "new", "--format", "xml", "@dev", "text"}, "xml"},
		{[]string{"task", "new", "--pending=perhaps", "@dev", "text"}, "perhaps"},
		{[]string{"task", "new", "--project", "a#1", "@dev", "text"}, "project"},
		{[]string{"task", "new", "--project", strings.Repeat("x", 3000), "@dev", "text"}, "project"},
		{[]string{"task", "new", "--project", "a", "--ref", "a#1.1", "@dev", "text"}, "exclude"},
		{[]string{"task", "new", "--model", "x\ny", "@dev", "text"}, "requested_model"},
		{[]string{"task", "list", "more"}, "usage: task list"},
		{[]string{"task", "list", "--format", "xml"}, "xml"},
		{[]string{"task", "list", "--status", "asleep"}, "pending"},
		{[]string{"task", "list", "--recipient", "../x"}, "../x"},
		{[]string{"task", "list", "--token-file", "f"}, "before the command"},
		{[]string{"task", "show", "bus#1.1", "--format", "json"}, "before it"},
		{[]string{"task", "watch", "--timeout", "-1s", "bus#1.1"}, "--timeout"},
		{[]string{"task", "watch", "--timeout", "999999h", "bus#1.1"}, "--timeout"},
		{[]string{"task", "approve", "bus#1.1", "", "accept"}, "empty"},
		{[]string{"task", "approve", "bus#1.1", "1", "accept", "more"}, "usage: task approve"},
		{[]string{"task", "--events-url", "", "list"}, "--events-url is empty"},
		{[]string{"task", "--events-url", "nonsense", "list"}, "events URL"},
		{[]string{"task", "--events-url", "http://user:p4ss@127.0.0.1:1", "list"}, "has a user"},
		{[]string{"task", "--events-url", "http://bus.example", "list"}, "clear text"},
		{[]string{"task", "--events-url", "http://127.0.0.1:99999", "list"}, "99999"},
		{[]string{"task", "--token-file", "", "list"}, "--events-token-file is empty"},
		{[]string{"task", "new", "--branch", "a", "--new-branch", "b", "@dev", "text"}, "exclude"},
		{[]string{"task", "new", "--project", "../x", "@dev", "text"}, "project"},
		{[]string{"task", "new", "--ref", "-x", "@dev", "text"}, "-x"},
		{[]string{"task", "show"}, "REF"},
		{[]string{"task", "show", "a", "b"}, "usage: task show"},
		{[]string{"task", "say", "bus#1.1"}, "MESSAGE"},
		{[]string{"task", "watch", "../x"}, "../x"},
		{[]string{"task", "approve", "bus#1.1", "1"}, "decision"},
		{[]string{"task", "approve", "bus#1.1", "1", "perhaps"}, "perhaps"},
		{[]string{"task", "--token-file", "/nowhere", "list"}, "/nowhere"},
		{[]string{"task", "board", "--listen", "0.0.0.0:0"}, "loopback"},
		{[]string{"task", "board", "more"}, "more"},
		{[]string{"dev"}, "--store"},
		{[]string{"dev", "--store", store}, "--recipient"},
		{[]string{"dev", "--store", store, "--events-url", "http://127.0.0.1:1"}, "no option --events-url"},
		{[]string{"containers", "--events-url", "http://127.0.0.1:1", "serve"}, "no option --events-url"},
		{[]string{"--sandbox", "read-only", "dev", "--store", store, "--recipient", "dev", "--workspace-root", workspace}, "--sandbox comes after dev"},
		{[]string{"--once", "dev", "--store", store}, "--once comes after dev"},
		{[]string{"--events-url", "http://127.0.0.1:1", "dev", "--store", store}, "--events-url has no effect before dev"},
		{[]string{"--events-url", "http://127.0.0.1:1", "task", "list"}, "--events-url comes after task"},
		{[]string{"--token-file", "f", "events", "token"}, "token-file has no effect before events"},
		{[]string{"--events-url", "http://127.0.0.1:1", "containers", "serve"}, "--events-url has no effect before containers; see bus-integration-task containers --help"},
		{[]string{"events"}, "events needs one of: serve, token; see bus-integration-task events --help"},
		{[]string{"task"}, "task needs one of: new, "},
		{[]string{"containers"}, "containers needs one of: serve"},
		{[]string{"dev", "--store", store, "--recipient", "dev", "--workspace-root", workspace, "--board", "0.0.0.0:0"}, "loopback"},
		{[]string{"dev", "--store", store, "--recipient", "dev", "--workspace-root", workspace, "--agent-backend", "container", "--command-json", `["true"]`, "--process-sandbox", "--listen", "nonsense"}, "--listen"},
		{[]string{"dev", "--store", store, "--recipient", "dev", "--workspace-root", workspace, "--process-sandbox"}, "--agent-backend container"},
		{[]string{"containers", "serve", "--profile", "codex", "--process-sandbox"}, "NAME=IMAGE"},
	} {
		code, stdout, stderr := call(t, c.args...)
		if code != 2 || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, c.text) || stdout != "" ||
			len(stderr) > 500 || strings.ContainsAny(stderr, "\x1b\u202e") || strings.Contains(stderr, "p4ss") {
			t.Errorf("%.200q: exit code %d, stdout %q, stderr %.600q", c.args, code, stdout, stderr)
		}
	}
	t.Setenv(secretVariable, strings.Repeat("s", eventserver.MinSecretBytes))
	for _, bad := range [][]string{
		{"serve", "--store", store, "--sync-every", "-5s"}, {"serve", "--store", store, "--replicas", "-1"}, {"serve", "--store", store, "--replicas", "3"}, {"serve", "--store", store, "--max-bytes", "-1"},
		{"serve", "--store", store, "--nats-credentials", "x"}, {"serve", "--store", store, "--listen", "nonsense"}, {"serve", "--store", store, "more"},
		{"serve", "--nats", "nats://127.0.0.1:1", "--nats-credentials", store + "/none"},
		{"token", "--lifetime", "-1h"}, {"token", "--scope", "a b"},
	} {
		code, stdout, stderr := call(t, append([]string{"events"}, bad...)...)
		if code != 2 || strings.Count(stderr, "\n") != 1 || stdout != "" {
			t.Errorf("%q: exit code %d, stdout %q, stderr %q", bad, code, stdout, stderr)
		}
	}
	if _, err := os.Stat(store); err == nil {
		t.Error("a usage error has made the store")
	}
}

// A command that needs the server fails at once if there is none.
func TestUnreachableServerFailsAtOnce(t *testing.T) {
	t.Setenv("BUS_API_TOKEN", "t")
	h := httptest.NewServer(nil)
	h.Close()
	for _, args := range [][]string{
		{"list"}, {"show", "bus#1.1"}, {"watch", "bus#1.1"}, {"new", "@dev", "text"}, {"say", "bus#1.1", "text"}, {"cancel", "bus#1.1"},
	} {
		code, stdout, stderr := call(t, append([]string{"task", "--events-url", h.URL}, args...)...)
		if code != 1 || stdout != "" || strings.Count(stderr, "\n") != 1 || len(stderr) > 300 ||
			!strings.Contains(stderr, h.URL+" not reached") || !strings.Contains(stderr, "; check --events-url") || strings.Contains(stderr, "name=") {
			t.Errorf("%q: exit code %d, stdout %q, stderr %q", args, code, stdout, stderr)
		}
	}
}

// The file of a token is for its user alone, and nothing is printed.
func TestTokenIsWrittenToAFile(t *testing.T) {
	t.Setenv(secretVariable, strings.Repeat("s", eventserver.MinSecretBytes))
	name := filepath.Join(t.TempDir(), "token")
	for range 2 { // the second replaces the first
		if code, stdout, stderr := call(t, "events", "token", "--for", "worker", "--output", name); code != 0 || stdout+stderr != "" {
			t.Fatal(code, stdout, stderr)
		}
	}
	info, err := os.Stat(name)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if _, err := events.ResolveToken(events.TokenOptions{File: name}); err != nil {
		t.Error(err)
	}
}

// client returns a function that runs task commands against a server in memory.
func client(t *testing.T) func(args ...string) (code int, stdout, stderr string) {
	t.Helper()
	connection := connection(t)
	return func(args ...string) (int, string, string) {
		t.Helper()
		return call(t, append(connection, args...)...)
	}
}

// connection returns the arguments with which task commands reach a server in memory.
func connection(t *testing.T) []string {
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
	return slices.Clip([]string{"task", "--events-url", h.URL, "--token-file", file})
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
		{[]string{"approve", "--format", "json", "bus#9.1"}, 0, `,"name":"bus.task.approved","work_ref":"bus#9.1"}`, ""},
		{[]string{"show", "bus#9.1"}, 0, "bus.task.approved\tbus#9.1\t\tstatus=open\tsource=bus-task\n", ""},
		{[]string{"list", "--status", "pending"}, 0, "", ""},
		{[]string{"approve", "bus#1.1", "7", "accept"}, 1, "", "no open approval request"},
		{[]string{"say", "bus#1.1", "be", "quick"}, 0, "", ""},
		{[]string{"say", "bus#1.1", "--nosuch", "be"}, 2, "", "--nosuch comes after"},
		{[]string{"say", "--format", "json", "bus#1.1", "--", "--quick", "-5"}, 0, `{"id":"evt_`, ""},
		{[]string{"show", "bus#1.1"}, 0, "bus.task.message\tbus#1.1\t--quick -5\tsource=bus-task\n", ""},
		{[]string{"new", "--ref", "bus#50.1", "--body", "first\n\x1b[31msecond", "@dev", "two parts"}, 0, "bus#50.1", ""},
		{[]string{"show", "bus#50.1"}, 0, "\tfirst\n\t\uFFFD[31msecond\n", ""},
		{[]string{"cancel", "bus#50.1"}, 0, "", ""},
		{[]string{"list", "--status", "nosuch"}, 2, "", `--status "nosuch": use pending, open,`},
		{[]string{"reopen", "bus#1.1", "more"}, 1, "", "use task say"},
		{[]string{"cancel", "bus#1.1", "not", "needed"}, 0, "", ""},
		{[]string{"cancel", "bus#1.1"}, 1, "", "canceled already"},
		{[]string{"say", "bus#1.1", "hi"}, 1, "", "use task reopen"},
		{[]string{"watch", "bus#100.1"}, 1, "", "there is no task"},
		{[]string{"watch", "bus#1.1"}, 1, "bus.task.canceled\tbus#1.1\tnot needed\tstatus=canceled\tsource=bus-task\n", "task bus#1.1 is canceled"},
		{[]string{"reopen", "bus#1.1", "after", "all"}, 0, "", ""},
		{[]string{"watch", "--timeout", "1ms", "bus#1.1"}, 1, "", "has not ended within 1ms"},
		{[]string{"show", "bus#1.1"}, 0, "bus.task.reopened\tbus#1.1\tafter all\tstatus=open\tsource=bus-task\n", ""},
		{[]string{"show", "--format", "json", "bus#9.1"}, 0, `"branch":"work/x","create_branch":true`, ""},
	} {
		code, stdout, stderr := do(c.args...)
		if code != c.code || !strings.Contains(stdout, c.stdout) || c.stdout == "" && stdout != "" && c.args[0] != "watch" ||
			!strings.Contains(stderr, c.stderr) || (c.stderr == "") != (stderr == "") {
			t.Errorf("%q: exit code %d, stdout %q, stderr %q", c.args, code, stdout, stderr)
		}
	}
	if _, stdout, _ := do("list"); strings.Join(refs(stdout), " ") != "bus#1.1 bus#2.1 acme/pay#1.1 bus#3.1 bus#4.1 bus#5.1 bus#6.1 bus#9.1 bus#50.1" {
		t.Errorf("tasks not in the order of their creation: %q", stdout)
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
		if _, stdout, _ := do(args...); strings.ContainsAny(stdout, "\x1b\x07\u202e") || strings.Count(stdout, "\nbus.") > 0 {
			t.Errorf("%s: %q", command, stdout)
		}
	}
}

// refs returns the first column of rows.
func refs(rows string) []string {
	var all []string
	for line := range strings.Lines(rows) {
		ref, _, _ := strings.Cut(line, "\t")
		all = append(all, ref)
	}
	return all
}

// A text can come from standard input. Its first line is the title.
func TestTextFromStandardInput(t *testing.T) {
	do := connection(t)
	if code, _, stderr := callWith(t, "A title.\n\nMore of it,\nin two lines.\n", append(do, "new", "--body", "The end.", "@dev", "-")...); code != 0 {
		t.Fatal(stderr)
	}
	if code, _, stderr := callWith(t, "One line.\n", append(do, "say", "bus#1.1", "-")...); code != 0 {
		t.Fatal(stderr)
	}
	_, stdout, _ := call(t, append(do, "show", "--format", "json", "bus#1.1")...)
	var got []string
	for decoder := json.NewDecoder(strings.NewReader(stdout)); decoder.More(); {
		var p task.Payload
		if err := decoder.Decode(&p); err != nil {
			t.Fatal(err)
		}
		got = append(got, p.Text, p.Body)
	}
	if want := []string{"A title.", "More of it,\nin two lines.\n\nThe end.", "One line.", ""}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// A row shows the beginning of a long text, and JSON all of it.
func TestLongTextIsShortened(t *testing.T) {
	do := client(t)
	if code, _, stderr := do("new", "@dev", strings.Repeat("é", maxColumn)); code != 0 {
		t.Fatal(stderr)
	}
	_, text, _ := do("show", "bus#1.1")
	_, whole, _ := do("show", "--format", "json", "bus#1.1")
	if len(text) > maxColumn+200 || !strings.Contains(text, "é…\t") || !utf8.ValidString(text) || strings.Count(whole, "é") != maxColumn {
		t.Errorf("%d bytes, and %d in JSON", len(text), len(whole))
	}
}

// A token on the command line would be visible to every user of the machine.
func TestTokenFlagIsRefused(t *testing.T) {
	t.Parallel()
	const secret = "tok-0123456789"
	for _, args := range [][]string{
		{"--token", secret}, {"--token=" + secret}, {"task", "--token", secret, "list"}, {"task", "list", "--token=" + secret},
		{"task", "board", "--token", secret}, {"dev", "--token", secret},
	} {
		code, stdout, stderr := call(t, args...)
		if code != 2 || strings.Contains(stdout+stderr, secret) {
			t.Errorf("%q: %d, %s%s", args, code, stdout, stderr)
		}
		if !strings.Contains(stderr, "no option --token") {
			t.Errorf("%q: %s", args, stderr)
		}
	}
}

// show has the labels of an event.
func TestLabelsAreShown(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	err := printer{to: &out}.event(task.Event{Name: task.Done, Payload: task.Payload{WorkRef: "bus#1.1", Labels: task.Labels{
		WorkerProfile: "small", RequestedModel: "m", ObservedModel: "m-1", RequestedEffort: "high", AuthMode: "chatgpt-subscription", CredentialSourceKind: "token-file",
	}}})
	want := "profile=small\trequested_model=m\tmodel=m-1\teffort=high\tauth=chatgpt-subscription\tcredential=token-file\n"
	if err != nil || !strings.HasSuffix(out.String(), want) {
		t.Errorf("%q, %v", out.String(), err)
	}
}

// Programs that run at once in a process share nothing that they write to.
func TestProgramsRunAtOnce(t *testing.T) {
	t.Parallel()
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			var out, message strings.Builder
			if code := run(t.Context(), []string{"bus-integration-task", "task", "--help"}, nil, &out, &message); code != 0 || out.Len() == 0 {
				t.Errorf("exit code %d: %s%s", code, out.String(), message.String())
			}
		})
	}
	group.Wait()
}
