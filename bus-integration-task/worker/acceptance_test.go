//go:build acceptance

package worker_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/backends/claude"
	"github.com/busdk/bus-agent/backends/gemini"
	"github.com/busdk/bus-agent/modeltest"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/runner"

	"github.com/busdk/bus-integration-task/task"
	"github.com/busdk/bus-integration-task/worker"
	"github.com/busdk/bus-integration-task/worker/backend"
)

// A realCLI is the CLI of a runtime, with a key for a model server.
type realCLI struct {
	runtime registry.Runtime
	program string // variable that names it
	model   string
	environ func(m *modeltest.Server) []string
	home    map[string]string // files
	tool    string            // runs a command
	// blind reports that the CLI says neither which command it runs nor how it ends, so
	// that tests are not proved, and that it keeps no session for a reopened task.
	blind bool
}

var realCLIs = map[string]realCLI{
	"claude": {
		runtime: claude.Runtime(), program: "BUS_AGENT_CLAUDE", model: "claude-opus-5-5", tool: "Bash",
		environ: func(m *modeltest.Server) []string {
			return []string{"ANTHROPIC_BASE_URL=" + m.AnthropicURL(), "ANTHROPIC_API_KEY=sk-acceptance", "SHELL=/bin/bash"}
		},
	},
	"gemini": {
		runtime: gemini.Runtime(), program: "BUS_AGENT_GEMINI", model: "gemini-2.5-pro", tool: "run_shell_command",
		environ: func(m *modeltest.Server) []string {
			return []string{"GOOGLE_GEMINI_BASE_URL=" + m.GeminiURL(), "GEMINI_API_KEY=sk-acceptance"}
		},
		blind: true,
		home:  map[string]string{".gemini/settings.json": `{"security":{"auth":{"selectedType":"gemini-api-key"}},"privacy":{"usageStatisticsEnabled":false}}`},
	},
}

func (c realCLI) command(line string) modeltest.ToolCall {
	arguments, err := json.Marshal(map[string]any{"command": line, "description": "try"})
	if err != nil {
		panic(err) // cannot happen for strings
	}
	return modeltest.ToolCall{Name: c.tool, Arguments: string(arguments)}
}

// backend returns a backend with the CLI in a clean home.
func (c realCLI) backend(t *testing.T, s *site, model *modeltest.Server) backend.Backend {
	t.Helper()
	program := os.Getenv(c.program)
	if !filepath.IsAbs(program) {
		t.Fatalf("%s is not the absolute path of the CLI; set it", c.program)
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	for name, text := range c.home {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(home, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		s.write(home, name, text)
	}
	r := new(registry.Registry)
	if err := r.Register(c.runtime); err != nil {
		t.Fatal(err)
	}
	return &backend.Session{Runtime: c.runtime.ID, Runner: runner.Runner{
		Registry: r, Warn: func(string) {},
		Environ: append(c.environ(model),
			"PATH="+filepath.Dir(program)+":"+filepath.Dir(node)+":/usr/bin:/bin", "HOME="+home, "TMPDIR="+t.TempDir(), "LC_ALL=C.UTF-8"),
	}}
}

// closingReply is a closeout of a task that changed a file.
func closingReply(file string) modeltest.Reply {
	return modeltest.Reply{modeltest.Text{strings.ReplaceAll(report(true, file), "go test ./...", "make test")}, modeltest.Usage{Input: 10, Output: 2}}
}

// reported reports whether the worker has published a message that begins with text.
func (s *site) reported(text string) (found bool) {
	_ = s.log.Read(s.t.Context(), "bus#1.1", "", func(e task.Event) error {
		found = found || e.Name == task.Message && strings.HasPrefix(e.Text, text)
		return nil
	})
	return found
}

// One task with each real CLI: it is steered, its approval requests are answered, its
// work is promoted, and reopened it continues the session in another worktree. With a
// blind CLI it is blocked, and begins a new session.
func TestRealSessionWorksOnATask(t *testing.T) {
	t.Parallel()
	for name, cli := range realCLIs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			guided := make(chan struct{})
			model, err := modeltest.Start(modeltest.Replies(
				modeltest.Reply{modeltest.Text{"I begin."}, modeltest.Wait(guided), modeltest.Usage{Input: 10, Output: 2}},
				modeltest.Reply{cli.command("echo Hello > greeting.txt"), modeltest.Usage{Input: 10, Output: 2}},
				modeltest.Reply{cli.command("make test"), modeltest.Usage{Input: 10, Output: 2}},
				closingReply("greeting.txt"),
				modeltest.Reply{cli.command("echo Hello again >> greeting.txt"), modeltest.Usage{Input: 10, Output: 2}},
				modeltest.Reply{cli.command("make test"), modeltest.Usage{Input: 10, Output: 2}},
				closingReply("greeting.txt"),
			))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(model.Close)
			s := newSite(t)
			s.settings.AgentBackend, s.settings.CodexStateRoot, s.settings.Model = "session:"+name, t.TempDir(), cli.model
			s.write(s.primary, "Makefile", "test:\n\tgrep -q Hello greeting.txt\n")
			s.git("add", ".")
			s.git("commit", "-qm", "test")
			create(s.log, "bus#1.1")
			stop := start(t, newWorker(s.log, "w", &worker.Bridge{
				Settings: s.settings, Backend: cli.backend(t, s, model), State: s.state, Environ: []string{"SECRET_KEY=sk-acceptance"}, Logger: slog.New(slog.NewTextHandler(s, nil)),
			}))
			s.await(func(state task.State) bool {
				if state.Status.Ended() {
					t.Fatalf("%+v; warnings %q", state.End, s.warnings)
				}
				return s.reported(cli.runtime.Name + " turn started")
			})
			if _, err := model.Await(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
			s.log.post(task.Message, task.Payload{WorkRef: "bus#1.1", Text: "Say Hello."})
			s.await(func(task.State) bool { return s.reported("live guidance") })
			close(guided)
			answered := 0
			answer := func(state task.State) bool {
				for _, a := range state.Approvals {
					answered++
					s.log.post(task.ApprovalAnswered, task.Payload{WorkRef: "bus#1.1", ApprovalID: a.ID, Decision: "accept"})
				}
				return state.Status.Ended()
			}
			first := s.await(answer)
			want := map[bool]task.Status{false: task.StatusDone, true: task.StatusBlocked}[cli.blind]
			if first.Status != want || (first.End.Commit == s.git("rev-parse", "HEAD")) == cli.blind || answered != 2 || first.Thread.ID == "" {
				t.Fatalf("%+v, %d answers; warnings %q", first, answered, s.warnings)
			}
			s.log.post(task.Reopened, task.Payload{WorkRef: "bus#1.1", Text: "Say it again."})
			s.await(func(state task.State) bool { return !state.Status.Ended() })
			second := s.await(answer)
			if second.Status != want || second.End.Commit == first.End.Commit != cli.blind || (second.Thread.ID == first.Thread.ID) == cli.blind {
				t.Fatalf("%+v; warnings %q", second.End, s.warnings)
			}
			if err := stop(); err != nil {
				t.Error(err)
			}
			requests := model.ModelRequests()
			if len(requests) != 7 {
				t.Fatalf("%d model requests", len(requests))
			}
			for n, want := range map[int]string{1: "Say Hello.", 4: "Say it again."} {
				if texts := strings.Join(requests[n].Texts("user"), "\n"); !strings.Contains(texts, "fix bus#1.1") || !strings.Contains(texts, want) {
					t.Errorf("request %d has %q", n, texts)
				}
			}
			if text := fmt.Sprint(s.log.events); strings.Contains(text, "sk-acceptance") {
				t.Error("the key is in the log")
			}
			if cli.blind {
				if !strings.Contains(second.End.Text, "make test") || len(s.leftTrees()) != 1 { // which the second attempt continued
					t.Errorf("%q, %q", second.End.Text, s.leftTrees())
				}
				return
			}
			if text, err := os.ReadFile(filepath.Join(s.primary, "greeting.txt")); string(text) != "Hello\nHello again\n" || second.End.Commit != s.git("rev-parse", "HEAD") {
				t.Errorf("%q, %v", text, err)
			}
			if s.git("status", "--porcelain") != "" || s.git("branch", "--format=%(refname:short)") != "main" || len(s.leftTrees()) > 0 {
				t.Errorf("left: %q, %q, %q", s.git("status", "--porcelain"), s.git("branch"), s.leftTrees())
			}
		})
	}
}
