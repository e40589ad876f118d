package more

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/backendtest"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/session/acp"
)

func TestMain(m *testing.M) { backendtest.Main(m) }

// registered returns the runtimes of the catalogue.
func registered(t testing.TB) []registry.Runtime {
	t.Helper()
	var all []registry.Runtime
	for _, entry := range catalogue {
		rt, ok := registry.Default().Lookup(entry.id)
		if !ok {
			t.Fatalf("%s is not registered", entry.id)
		}
		all = append(all, rt)
	}
	return all
}

// withRuns returns those whose output is read. The others have sessions only.
func withRuns(t testing.TB) []registry.Runtime {
	t.Helper()
	return slices.DeleteFunc(registered(t), func(rt registry.Runtime) bool { return rt.Run.Command == nil })
}

func TestCatalogueIsSorted(t *testing.T) {
	t.Parallel()
	var ids []string
	for _, rt := range registered(t) {
		ids = append(ids, rt.ID)
	}
	if !slices.IsSorted(ids) {
		t.Errorf("the order is %q", ids)
	}
}

func TestTranscripts(t *testing.T) {
	t.Parallel()
	for _, rt := range withRuns(t) {
		t.Run(rt.ID, func(t *testing.T) {
			t.Parallel()
			backendtest.Transcripts(t, rt, filepath.Join("testdata", rt.ID))
		})
	}
}

func TestCatalogueLeavesOthersAlone(t *testing.T) {
	t.Parallel()
	for _, rt := range registered(t) {
		if !rt.LastChoice || rt.Run.Command == nil && !rt.NamedOnly {
			t.Errorf("%s is selected before other runtimes", rt.ID)
		}
		// Recorded runs of other runtimes do not get these, see registry.Runtime.ProviderEnv.
		for _, name := range []string{"GH_TOKEN", "GITHUB_TOKEN"} {
			if slices.Contains(rt.TokenEnv, name) {
				t.Errorf("%s takes %s from the tools of other runtimes", rt.ID, name)
			}
		}
	}
}

func TestUnsupportedAreExplained(t *testing.T) {
	t.Parallel()
	for _, cli := range unsupported {
		if _, _, err := registry.Default().ParseToken(cli.id); !errors.Is(err, agent.ErrUsage) || !strings.Contains(err.Error(), cli.reason) {
			t.Errorf("%s: %v", cli.id, err)
		}
		if !slices.Contains(registry.Default().AllRefused(), cli.id) {
			t.Errorf("%s is not listed", cli.id)
		}
	}
}

func TestCopilotGetsNoSlash(t *testing.T) {
	t.Parallel()
	check := copilot().Run.Check
	for prompt, refused := range map[string]bool{"/help": true, "\n \t/help": true, "help": false, "see /help": false} {
		err := check(registry.Invocation{Prompt: prompt, Access: agent.AccessRead})
		if errors.Is(err, agent.ErrUsage) != refused || err != nil != refused {
			t.Errorf("the prompt %q: %v", prompt, err)
		}
	}
}

// In a session, opencode answers nothing to a message that it takes for a command.
func TestSilenceOfOpencodeFails(t *testing.T) {
	t.Parallel()
	if e, ok := opencode().Session.Engine(registry.Invocation{}).(*acp.Engine); !ok || !e.SilenceFails {
		t.Errorf("engine = %+v", e)
	}
}

// Qwen Code edits files anywhere in mode auto-edit; in mode default bus-agent decides.
func TestQwenAsksToEditInSessions(t *testing.T) {
	t.Parallel()
	e, ok := qwen().Session.Engine(registry.Invocation{}).(*acp.Engine)
	if !ok || e.Modes[agent.AccessWrite] != "default" || !e.Permits(agent.AccessWrite, "edit") || e.Permits(agent.AccessWrite, "execute") {
		t.Errorf("engine = %+v", e)
	}
}

// It rewrites its file of logins at each start, which must stay the user's own.
func TestClineUsesTheLoginsOfTheUser(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		environ []string
		want    string
	}{
		"home":    {[]string{"HOME=/home/u"}, "CLINE_DATA_DIR=/home/u/.cline/data"},
		"chosen":  {[]string{"HOME=/home/u", "CLINE_DATA_DIR=/data"}, ""},
		"no home": {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			command, err := cline().Run.Command(registry.Invocation{Environ: c.environ, Access: agent.AccessRead})
			if err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(command.Env, func(v string) bool { return strings.HasPrefix(v, "CLINE_DATA_DIR=") })
			if got := i >= 0; got != (c.want != "") || got && command.Env[i] != c.want {
				t.Errorf("env = %q, want %q", command.Env, c.want)
			}
		})
	}
}

// The adapter of Claude Code reads settings of the repository, unless it is asked not to. In
// mode acceptEdits it edits without an approval request.
func TestClaudeAdapterLeavesTheRepositoryOut(t *testing.T) {
	t.Parallel()
	rt := claudeAgentACP()
	e, ok := rt.Session.Engine(registry.Invocation{}).(*acp.Engine)
	if !ok || !strings.Contains(string(e.Meta["claudeCode"]), `"settingSources":["user"]`) || !json.Valid(e.Meta["claudeCode"]) {
		t.Errorf("engine = %+v", e)
	}
	if e.Modes[agent.AccessWrite] != "default" || !e.Permits(agent.AccessWrite, "edit") || e.Permits(agent.AccessRead, "edit") {
		t.Errorf("engine = %+v", e)
	}
}

// codex-acp gets its settings and its access by variables, without those of the caller that
// would weaken them.
func TestCodexAdapterGetsItsAccessByVariables(t *testing.T) {
	t.Parallel()
	rt := codexACP()
	for access, mode := range map[agent.Access]string{
		agent.AccessRead: "read-only", agent.AccessWrite: "workspace-write", agent.AccessFull: "agent-full-access",
	} {
		inv := registry.Invocation{Access: access, AppendSystemPrompt: "be brief", Environ: []string{
			codexMode + "=agent-full-access", codexConfig + `={"features":{"plugins":true,"goals":true},"model_provider":"mine"}`,
		}}
		command, err := rt.Session.Command(inv)
		if got, _ := agent.LookupEnv(command.Env, codexMode); err != nil || got != mode {
			t.Errorf("%s: %q, %v", access, command.Env, err)
		}
		const want = `{"analytics":{"enabled":false},"developer_instructions":"be brief",` +
			`"features":{"goals":true,"plugins":false},"model_provider":"mine","project_doc_max_bytes":0}`
		if got, _ := agent.LookupEnv(command.Env, codexConfig); got != want {
			t.Errorf("%s: %s", access, got)
		}
	}
	_, err := rt.Session.Command(registry.Invocation{Environ: []string{codexConfig + "=[]"}})
	if !errors.Is(err, agent.ErrUsage) {
		t.Errorf("a list: %v", err)
	}
}

// pi reads .pi/SYSTEM.md, also through a link, and runs what .pi/settings.json names, unless
// it is started with --no-approve.
func TestPiLeavesTheRepositoryOut(t *testing.T) {
	t.Parallel()
	for trusted, want := range map[bool]string{false: "--no-approve", true: "--approve"} {
		command, err := pi().Run.Command(registry.Invocation{Access: agent.AccessRead, TrustWorkspace: trusted})
		if err != nil || !slices.Contains(command.Args, want) || slices.Contains(command.Args, "--approve") != trusted {
			t.Errorf("trusted %t: %q, %v", trusted, command.Args, err)
		}
	}
}

// pi 1.6.0 reports the system prompt as a message, and that it waits.
func TestPiLinesThatSayNothing(t *testing.T) {
	t.Parallel()
	for _, line := range []string{`{"type":"message_end","message":{"role":"system","content":"","toolsAdded":[]}}`, `{"type":"agent_settled","aborted":false}`} {
		if events, known := new(piDecoder).line([]byte(line), nil); !known || len(events) > 0 {
			t.Errorf("%s: %+v, %t", line, events, known)
		}
	}
}
