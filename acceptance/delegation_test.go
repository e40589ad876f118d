//go:build acceptance

package acceptance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/modeltest"
)

// The prompts and answers of delegations.
const (
	outerPrompt = "Ask the other agent for the colour."
	innerPrompt = "INNER: which colour is it?"
	innerAnswer = "It is ultramarine."
	outerAnswer = "The other agent says ultramarine."
)

// call returns a call of run_agent, by the name that the CLI gives it; nil for none.
func call(r *modeltest.Request, arguments map[string]string) modeltest.Reply {
	text, _ := json.Marshal(arguments)
	for _, tool := range r.Tools() {
		switch {
		case tool == "exec": // Codex calls tools by code
			return modeltest.Reply{modeltest.ToolCall{Name: tool, Arguments: fmt.Sprintf("text(JSON.stringify(await tools.mcp__bus_agent__run_agent(%s)))", text)}}
		case strings.HasSuffix(tool, "run_agent"):
			return modeltest.Reply{modeltest.ToolCall{Name: tool, Arguments: string(text)}}
		}
	}
	return nil
}

// delegate plays the models of both agents: the outer one calls run_agent with inner as
// the runtime, and answers when it has the answer. The inner one tries to call it too, if
// its CLI has the tool.
func delegate(t *testing.T, inner string) modeltest.Script {
	return func(r *modeltest.Request) modeltest.Reply {
		results, _ := json.Marshal(r.ToolResults())
		nested := r.Count("INNER") > 0
		switch first := len(r.ToolResults()) == 0; {
		case first && nested:
			if reply := call(r, map[string]string{"prompt": "again"}); reply != nil && inner == "codex" {
				return reply
			}
		case first:
			if reply := call(r, map[string]string{"prompt": innerPrompt, "runtime": inner}); reply != nil {
				return reply
			}
			return answer("no tool run_agent")
		case nested && !strings.Contains(string(results), "agents at this depth cannot start others"):
			t.Errorf("the inner model gets %s", results)
		case !nested && !strings.Contains(string(results), innerAnswer):
			t.Errorf("the outer model gets %s", results)
		}
		if nested {
			return answer(innerAnswer)
		}
		return answer(outerAnswer)
	}
}

// newHost returns a fixture with the settings of every CLI that docs/delegation.md shows,
// so that each can be the outer and the inner agent.
func newHost(t *testing.T, script modeltest.Script) *fixture {
	t.Helper()
	w := newGemini(t, script, nil)
	page, err := os.ReadFile(filepath.Join("..", "docs", "delegation.md"))
	if err != nil {
		t.Fatal(err)
	}
	shown := regexp.MustCompile("(?s)```(?:json|toml)\n(.*?)```").FindAllSubmatch(page, -1)
	if len(shown) != 3 {
		t.Fatalf("docs/delegation.md shows %d settings", len(shown))
	}
	var settings, servers map[string]any
	if err := errors.Join(json.Unmarshal([]byte(geminiSettings), &settings), json.Unmarshal(shown[2][1], &servers)); err != nil {
		t.Fatal(err)
	}
	maps.Copy(settings, servers)
	text, _ := json.Marshal(settings)
	writeFiles(t, w.home, map[string]string{
		"mcp.json": string(shown[0][1]),
		".codex/config.toml": fmt.Sprintf("model_provider = \"fake\"\n[model_providers.fake]\nname = \"fake\"\nbase_url = %q\nwire_api = \"responses\"\nenv_key = \"FAKE_API_KEY\"\n%s",
			w.model.OpenAIURL(), shown[1][1]),
		".gemini/settings.json": string(text),
	})
	w.env = append(w.env, "ANTHROPIC_BASE_URL="+w.model.AnthropicURL(), "ANTHROPIC_API_KEY=sk-acceptance", "BUS_AGENT_USER_CONFIG=on",
		"ENABLE_TOOL_SEARCH=false") // Claude Code then shows the model all tools at once
	return w
}

// Each CLI, with the settings of docs/delegation.md, calls another one through
// bus-agent mcp and uses its answer.
func TestDelegation(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		outer string
		inner string
		args  []string
	}{
		{"claude", "codex", []string{"-p", outerPrompt, "--mcp-config", "HOME/mcp.json", "--allowedTools", "mcp__bus-agent__run_agent"}},
		{"claude", "gemini", []string{"-p", outerPrompt, "--mcp-config", "HOME/mcp.json", "--allowedTools", "mcp__bus-agent__run_agent"}},
		{"codex", "claude", []string{"exec", outerPrompt}},
		{"gemini", "claude", []string{"-p", outerPrompt, "--skip-trust", "--allowed-tools", "mcp_bus-agent_run_agent"}},
	} {
		t.Run(c.outer+" asks "+c.inner, func(t *testing.T) {
			t.Parallel()
			w := newHost(t, delegate(t, c.inner))
			for i, arg := range c.args {
				c.args[i] = strings.Replace(arg, "HOME", w.home, 1)
			}
			ctx, cancel := context.WithTimeout(t.Context(), runLimit)
			defer cancel()
			program := map[string]string{"claude": claude, "codex": codex, "gemini": gemini}[c.outer]
			cmd := exec.CommandContext(ctx, program, c.args...)
			cmd.Dir = w.repo
			cmd.Env = append(w.environ(), "PATH="+filepath.Dir(busAgent)+":"+envPath(w.environ()))
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), outerAnswer) {
				t.Errorf("%v\n%s", err, clip(string(out)))
			}
			w.checkProcesses()
		})
	}
}

// The command line of the MCP inspector, which uses the TypeScript SDK, takes the schemas
// of the tools and calls them.
func TestDelegationByTheInspector(t *testing.T) {
	t.Parallel()
	inspector := os.Getenv("BUS_AGENT_INSPECTOR")
	if !filepath.IsAbs(inspector) {
		t.Fatal("BUS_AGENT_INSPECTOR is not the absolute path of the MCP inspector; run `make acceptance`")
	}
	w := newHost(t, modeltest.Always(answer(innerAnswer)))
	for _, c := range []struct{ args, want string }{
		{"--method tools/list", `"name": "run_agent"`},
		{"--method tools/call --tool-name list_runtimes", `"default":`},
		{"--method tools/call --tool-name run_agent --tool-arg runtime=claude --tool-arg prompt=hello", innerAnswer},
		{"--method tools/call --tool-name start_session --tool-arg runtime=claude --tool-arg prompt=hello", `"state": "ready"`},
		{"--method tools/call --tool-name list_runs", `"runs": []`},
		{"--method tools/call --tool-name run_agent --tool-arg prompt=hello --tool-arg access=full", `"kind": "usage"`},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), runLimit)
		cmd := exec.CommandContext(ctx, inspector, append([]string{"--cli", "bus-agent", "mcp"}, strings.Fields(c.args)...)...)
		cmd.Dir = w.repo
		cmd.Env = append(w.environ(), "PATH="+filepath.Dir(busAgent)+":"+envPath(w.environ()))
		out, err := cmd.CombinedOutput()
		cancel()
		if !strings.Contains(string(out), c.want) {
			t.Errorf("%s: %v\n%s", c.args, err, clip(string(out)))
		}
	}
	w.checkProcesses()
}

// envPath returns the PATH of an environment.
func envPath(environ []string) string {
	for _, entry := range environ {
		if value, ok := strings.CutPrefix(entry, "PATH="); ok {
			return value
		}
	}
	return ""
}
