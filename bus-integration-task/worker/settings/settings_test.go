package settings

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/agent"

	"github.com/busdk/bus-integration-task/closeout"
	"github.com/busdk/bus-integration-task/worker/backend"
)

// samples returns two values that a setting allows, and one that it does not. Settings
// with one allowed value have it twice.
func samples(t *testing.T, r row) (one, two, bad string) {
	t.Helper()
	if r.refused {
		return r.def, r.def, "surely not"
	}
	words := strings.Split(r.value, "|")
	special := map[string][3]string{
		"events-url":             {"http://a:1", "https://b", "ftp://a"},
		"events-token-file":      {"/a", "/b", "a\x1b"},
		"recipient":              {"bus-dev", "bus-ops", "../x"},
		"workspace-recipient":    {"bus-dev", "bus-ops", ".git"},
		"work-ref":               {"busdk#81.1", "acme/payroll#1.2", "a/../b"},
		"worker-id":              {"w-1", "w-2", "--x"},
		"credential-ref":         {"key", "other.key", "a/b"},
		"agent-backend":          {"session:claude", "session:gemini", "codex"},
		"sandbox":                {"read-only", "write", "none"},
		"approval-policy":        {"never", "on-request", "on-failure"},
		"reasoning-effort":       {"low", "high", "huge"},
		"model":                  {"a", "b", "-x"},
		"fallback":               {"claude", "claude, gemini", "a,,b"},
		"args-json":              {`["-c"]`, `["app-server","--listen","stdio://","-d"]`, `[1]`},
		"codex-command":          {"codex-2", "/opt/codex", "./codex"},
		"codex-network-access":   {"true", "no", "maybe"},
		"codex-inherit-env":      {"all", "core", "true"},
		"commit-message":         {"a {summary}", "b {prompt}", "{password}"},
		"max-parallel-workers":   {"2", "64", "0"},
		"safe-crash-retry-count": {"0", "10", "11"},
		"lease":                  {"3s", "1h", "1s"},
		"auth-mode":              {"chatgpt-subscription", AuthOpenAIKey, "password"},
		"credential-source-kind": {"token-file", "os-credential-label", "password"},
	}
	switch v, ok := special[r.flag]; {
	case ok:
		return v[0], v[1], v[2]
	case r.value == "":
		return "true", "false", "maybe"
	case r.value == "DURATION":
		return "90s", "2h", "-1s"
	case r.value == "PATH":
		return "/a", "/b/c", "a\nb"
	case r.value == "TEXT":
		return "a", "b c", "\x1b[2J"
	case r.value == "JSON":
		return `["a"]`, `["b","{prompt}"]`, `["a","{secret}"]`
	case strings.Contains(r.value, "|"):
		return words[0], words[1], "surely not"
	}
	t.Fatalf("no samples of --%s", r.flag)
	return "", "", ""
}

// given are the places where a test sets values.
type given struct {
	flags, policy map[string]string
	environ       []string
	backend       string // which the settings are for
}

func (g given) resolve(t *testing.T) (Settings, error) {
	t.Helper()
	flags := map[string]string{}
	maps.Copy(flags, g.flags)
	if _, ok := flags["recipient"]; !ok && !strings.Contains(strings.Join(g.environ, "\n"), "TASK_RECIPIENT=") {
		g.environ = append(g.environ, "BUS_DEV_TASK_RECIPIENT=one") // it is required
	}
	if g.backend != "" {
		flags["agent-backend"] = g.backend
	}
	if _, ok := flags["command-json"]; g.backend == backend.NameContainer && !ok {
		g.environ = append([]string{"BUS_DEV_TASK_COMMAND_JSON=[\"x\"]"}, g.environ...) // it is required
	}
	if len(g.policy) > 0 {
		file := filepath.Join(t.TempDir(), "policy.json")
		writeFile(t, file, policyText(g.policy))
		flags["policy-file"] = file
	}
	return Resolve(func(name string) (string, bool) { text, ok := flags[name]; return text, ok }, slices.Clip(g.environ))
}

func writeFile(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// policyText returns a policy file with the fields.
func policyText(fields map[string]string) string {
	var members []string
	for field, text := range fields {
		i := slices.IndexFunc(table, func(r row) bool { return r.policy == field })
		if i >= 0 && table[i].json == jsonString {
			text = fmt.Sprintf("%q", text)
		}
		outer, inner, nested := strings.Cut(field, ".")
		if nested {
			members = append(members, fmt.Sprintf(`%q:{%q:%s}`, outer, inner, text))
		} else {
			members = append(members, fmt.Sprintf(`%q:%s`, outer, text))
		}
	}
	return "{" + strings.Join(members, ",") + "}"
}

// A place is a source of a setting, highest precedence first.
type place struct {
	source string
	set    func(g *given, text string)
}

func places(r row) []place {
	list := []place{{"--" + r.flag, func(g *given, text string) { g.flags = map[string]string{r.flag: text} }}}
	for _, name := range r.env {
		list = append(list, place{name, func(g *given, text string) { g.environ = append(g.environ, name+"="+text) }})
	}
	if r.policy != "" {
		list = append(list, place{"policy field " + r.policy, func(g *given, text string) { g.policy = map[string]string{r.policy: text} }})
	}
	return list
}

// userOf returns a backend that uses a setting; "" if all do.
func userOf(r row) string {
	switch {
	case r.codex != "":
		return "session:codex"
	case r.backend == anySession:
		return "session:claude"
	}
	return r.backend
}

// expected returns the settings with a value alone, set by its flag.
func expected(t *testing.T, r row, text string) Settings {
	t.Helper()
	s, err := given{flags: map[string]string{r.flag: text}, backend: userOf(r)}.resolve(t)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var settingsOnly = cmp.Options{cmpopts.IgnoreUnexported(Settings{}), cmpopts.EquateEmpty()}

func TestPrecedence(t *testing.T) {
	t.Parallel()
	for _, r := range table[1:] { // the policy file itself is tested below
		t.Run(r.flag, func(t *testing.T) {
			t.Parallel()
			one, two, _ := samples(t, r)
			list := places(r)
			if one == "" { // which a variable cannot be set to
				list = list[:1]
			}
			for i, high := range list {
				for _, low := range append([]place{{}}, list[i+1:]...) {
					for _, values := range [][2]string{{one, two}, {two, one}} {
						g := given{backend: userOf(r)}
						if low.set != nil {
							low.set(&g, values[1])
						}
						high.set(&g, values[0])
						got, err := g.resolve(t)
						if err != nil {
							t.Fatalf("%s over %s: %v", high.source, low.source, err)
						}
						if source := got.Source(r.flag); source != high.source {
							t.Errorf("%s over %s: source %s", high.source, low.source, source)
						}
						want := expected(t, r, values[0])
						want.PolicyFile, got.PolicyFile = "", ""
						if diff := cmp.Diff(want, got, settingsOnly); diff != "" {
							t.Errorf("%s over %s: %s", high.source, low.source, diff)
						}
					}
				}
			}
		})
	}
}

// Each value that is not allowed is one line with the name of its source.
func TestBadValues(t *testing.T) {
	t.Parallel()
	for _, r := range table {
		_, _, bad := samples(t, r)
		for _, at := range places(r) {
			t.Run(at.source, func(t *testing.T) {
				t.Parallel()
				g := given{backend: userOf(r)}
				at.set(&g, bad)
				if r.policy != "" && r.json != jsonString && g.policy != nil {
					g.policy[r.policy] = map[jsonType]string{jsonBool: `"true"`, jsonInteger: "1.5"}[r.json]
				}
				_, err := g.resolve(t)
				text := fmt.Sprint(err)
				if !errors.Is(err, agent.ErrUsage) || strings.ContainsAny(text, "\n\x1b") || len(text) > 600 || strings.HasSuffix(text, ": ") {
					t.Errorf("got %q, want one line of kind usage", text)
				}
				if name := strings.TrimPrefix(at.source, "policy field "); !strings.Contains(text, name+": ") {
					t.Errorf("%q does not name %s", text, name)
				}
			})
		}
	}
}

// Every setting ends up in its own field, or is refused.
func TestEverySettingIsUsed(t *testing.T) {
	t.Parallel()
	for _, r := range table[1:] {
		one, two, _ := samples(t, r)
		if one != two && cmp.Equal(expected(t, r, one), expected(t, r, two), settingsOnly) {
			t.Errorf("--%s changes nothing", r.flag)
		}
	}
}

func TestNamesAreUnique(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, r := range table {
		for _, name := range slices.Concat([]string{r.flag, r.policy}, r.aliases, r.env) {
			if other := seen[name]; other != "" && name != "" {
				t.Errorf("--%s and --%s are both named %s", other, r.flag, name)
			}
			seen[name] = r.flag
		}
		if r.group == "" || r.usage == "" {
			t.Errorf("--%s is not described", r.flag)
		}
	}
}

func TestLeaseIsLimited(t *testing.T) {
	t.Parallel()
	_, err := given{flags: map[string]string{"lease": "61m"}}.resolve(t)
	if want := `--lease: "61m" is not a duration from 3s to 1h0m0s; use one such as 1m`; !errors.Is(err, agent.ErrUsage) || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	s, err := given{environ: []string{"BUS_TASK_TIMEOUT= \t", "BUS_TASK_GOPLS_MCP=0", "BUS_DEV_TASK_CODEX_COMMAND=codex"}}.resolve(t)
	if err != nil {
		t.Fatal(err)
	}
	if s.AgentBackend != "codex-appserver" || s.Sandbox != "workspace-write" || !s.Worktree || !s.Commit || s.Once ||
		s.Timeout.String() != "30m0s" || s.CommitMessage != "chore: dev task {work_ref}" || !s.RequireCloseout || s.RequireBusNotes {
		t.Errorf("got %+v", s)
	}
	if got := s.Source("timeout"); got != BuiltIn {
		t.Errorf("a blank variable counts: %s", got)
	}
	if got := s.Source("no-such-flag"); got != "" {
		t.Errorf("got %q", got)
	}
}

// What follows from several settings together.
func TestSettle(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		given given
		want  string // part of the error
		check func(s Settings) bool
	}{
		"trusted container": {given{policy: map[string]string{"trusted_dedicated_container": "true"}}, "",
			func(s Settings) bool { return s.Sandbox == "danger-full-access" }},
		"full access by flag": {given{flags: map[string]string{"sandbox": "full"}}, "",
			func(s Settings) bool { return s.Sandbox == "danger-full-access" }},
		"full access by policy": {given{policy: map[string]string{"codex_sandbox": "danger-full-access"}},
			"policy field codex_sandbox: danger-full-access needs trusted_dedicated_container", nil},
		"full access by variable": {given{environ: []string{"BUS_DEV_TASK_CODEX_SANDBOX=danger-full-access"}},
			"BUS_DEV_TASK_CODEX_SANDBOX: danger-full-access needs", nil},
		"disposable": {given{policy: map[string]string{"worker_mode": "disposable"}}, "", func(s Settings) bool { return s.Once }},
		"disposable, but not once": {given{policy: map[string]string{"worker_mode": "disposable"}, environ: []string{"BUS_TASK_ONCE=false"}}, "",
			func(s Settings) bool { return !s.Once }},
		"container without a command": {given{flags: map[string]string{"agent-backend": "container"}}, "--command-json: not set", nil},
		"container": {given{flags: map[string]string{"agent-backend": "container", "command-json": `["codex","{prompt}"]`}}, "",
			func(s Settings) bool { return slices.Equal(s.Command, []string{"codex", "{prompt}"}) }},
		"flag of another backend": {given{flags: map[string]string{"command-json": `["a"]`}},
			"--command-json: only the backend container uses it", nil},
		"flag that a container ignores": {given{flags: map[string]string{"agent-backend": "container", "command-json": `["a"]`, "model": "m"}},
			"--model: the backend container does not use it", nil},
		"flag without its switch": {given{flags: map[string]string{"worktree": "false", "terminal-worktrees": "retain"}},
			"--terminal-worktrees: it has no effect without --worktree", nil},
		"commit without a worktree":  {given{flags: map[string]string{"worktree": "false", "commit": "true"}}, "--commit: it has no effect without --worktree", nil},
		"neither":                    {given{flags: map[string]string{"worktree": "false", "commit": "false"}}, "", func(s Settings) bool { return !s.Commit && !s.Worktree }},
		"no commit, but a message":   {given{flags: map[string]string{"commit": "false", "commit-message": "x"}}, "--commit-message: it has no effect without --commit", nil},
		"a message, but no worktree": {given{flags: map[string]string{"worktree": "false", "commit-message": "x"}}, "--commit-message: it has no effect without --worktree", nil},
		"rebase without a worktree":  {given{flags: map[string]string{"worktree": "false", "rebase": "true"}}, "--rebase: it has no effect without --worktree", nil},
		"Codex for another backend": {given{flags: map[string]string{"agent-backend": "session:claude", "codex-command": "codex"}},
			"--codex-command: only the backend codex-appserver uses it", nil},
		"variable of another backend": {given{environ: []string{`BUS_TASK_COMMAND_JSON=["a"]`}}, "", func(s Settings) bool { return len(s.Command) == 1 }},
		"settings of the App Server": {given{flags: map[string]string{"codex-network-access": "false", "codex-inherit-env": "core", "args-json": `["-d"]`}}, "",
			func(s Settings) bool {
				want := backend.AppServer{Command: "codex", Args: []string{"-d"}, NetworkAccess: new(false), InheritEnv: "core"}
				return cmp.Equal(want, s.AppServer())
			}},
		"evidence": {given{flags: map[string]string{"require-bus-notes": "true"}}, "", func(s Settings) bool {
			return s.Evidence() == closeout.Policy{RequireStructuredCloseout: true, RequireBusNotes: true}
		}},
		"secret without a name": {given{flags: map[string]string{"auth-mode": AuthOpenAIKey, "credential-source-kind": "deployment-secret"}},
			"--credential-ref: not set", nil},
		"no recipient":          {given{flags: map[string]string{"recipient": ""}}, "--recipient: not set", nil},
		"recipient with an at":  {given{flags: map[string]string{"recipient": "@bus-dev"}}, "", func(s Settings) bool { return s.Recipient == "bus-dev" }},
		"URL with a password":   {given{flags: map[string]string{"events-url": "http://a:secret@b"}}, "--events-url: it has a user", nil},
		"command of no program": {given{flags: map[string]string{"command-json": `[]`}}, "--command-json: it names no program", nil},
		"command with a NUL":    {given{flags: map[string]string{"command-json": `["a\u0000"]`}}, "--command-json: it is not a JSON array", nil},
		"empty commit message":  {given{flags: map[string]string{"commit-message": " "}}, "--commit-message: it is empty", nil},
		"long value":            {given{flags: map[string]string{"sandbox": strings.Repeat("x", 5000)}}, "--sandbox: it has 5000 bytes", nil},
		"no policy file":        {given{flags: map[string]string{"policy-file": "/does/not/exist"}}, "policy file", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := c.given.resolve(t)
			switch {
			case c.want != "" && (!errors.Is(err, agent.ErrUsage) || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want %s", err, c.want)
			case c.want == "" && (err != nil || !c.check(s)):
				t.Errorf("got %+v, %v", s, err)
			}
		})
	}
}

// run parses a command line with urfave/cli and resolves it.
func run(t *testing.T, args ...string) (s Settings, err error) {
	t.Helper()
	app := &cli.App{Name: "worker", Flags: Flags(), HideHelp: true,
		OnUsageError: func(_ *cli.Context, err error, _ bool) error { return err },
		Action: func(c *cli.Context) (err error) {
			s, err = Resolve(FromContext(c), nil)
			return err
		}}
	return s, app.Run(append([]string{"worker"}, args...))
}

func TestFlags(t *testing.T) {
	t.Parallel()
	s, err := run(t, "--recipient", "bus-dev", "--codex-sandbox", "read-only", "--codex-model=gpt-5", "--token-file", "/t",
		"--once", "--commit=false", "--idle-timeout", "5m", "--codex-network-access=", "--gopls-command=", "--args-json", `["a"]`)
	if err != nil {
		t.Fatal(err)
	}
	if s.Recipient != "bus-dev" || s.Sandbox != "read-only" || s.Model != "gpt-5" || s.EventsTokenFile != "/t" || !s.Once || s.Commit ||
		s.IdleTimeout.String() != "5m0s" || !slices.Equal(s.Args, []string{"a"}) || !s.Worktree {
		t.Errorf("got %+v", s)
	}
	if got := s.Source("sandbox"); got != "--sandbox" {
		t.Errorf("source %q", got)
	}
	for _, args := range [][]string{
		{"--sandbox=full", "--codex-sandbox=write"}, {"--gopls-mcp", "true"}, {"--once=maybe"}, {"--supervisor-interval=5"}, {"--timeout"},
	} {
		if s, err := run(t, append([]string{"--recipient=a"}, args...)...); err == nil {
			t.Errorf("%v: got %+v", args, s)
		}
	}
	// Two parses do not share values.
	if s, err := run(t, "--recipient=b"); err != nil || s.Once || s.Sandbox != "workspace-write" {
		t.Errorf("got %+v, %v", s, err)
	}
}

// The help names the variables in their order. Only Resolve reads them.
func TestHelpNamesVariables(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	app := &cli.App{Name: "worker", Flags: Flags(), Writer: &out}
	if err := app.Run([]string{"worker", "--help"}); err != nil {
		t.Fatal(err)
	}
	for _, r := range table {
		if want := " [$" + strings.Join(r.env, ", $") + "]"; len(r.env) > 0 && !strings.Contains(out.String(), want) {
			t.Errorf("--%s: the help lacks %q", r.flag, want)
		}
	}
}

func TestDocs(t *testing.T) {
	t.Parallel()
	text := Markdown()
	for _, d := range Docs() {
		if !strings.Contains(text, "| `--"+d.Flag) {
			t.Errorf("--%s is missing", d.Flag)
		}
	}
	want := "| `--idle-timeout=DURATION` | `BUS_TASK_IDLE_TIMEOUT`, `BUS_DEV_TASK_IDLE_TIMEOUT` | `idle_timeout` | `0s` | end when there was nothing to do for so long; 0 never ends |\n"
	if !strings.Contains(text, want) {
		t.Errorf("got\n%s", text)
	}
	for row := range strings.Lines(text) {
		if strings.HasPrefix(row, "|") && strings.Count(strings.ReplaceAll(row, `\|`, ""), "|") != 6 {
			t.Errorf("not five columns: %s", row)
		}
	}
}
