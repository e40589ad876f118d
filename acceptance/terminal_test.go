//go:build acceptance

package acceptance

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/agent"
	claudecode "github.com/busdk/bus-agent/backends/claude"
	codexcli "github.com/busdk/bus-agent/backends/codex"
	geminicli "github.com/busdk/bus-agent/backends/gemini"
	"github.com/busdk/bus-agent/modeltest"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/runner"
	"github.com/busdk/bus-agent/session"

	_ "github.com/busdk/bus-agent/session/tmux"
)

// A terminalCLI is a CLI with an interactive mode.
type terminalCLI struct {
	setup setupFunc
	// plants returns files that run programs if the CLI trusts the repository.
	plants func(t *testing.T, fired, stolen string) map[string]string
	// needsApproval returns a tool call that creates a file and needs approval.
	needsApproval func(file string) modeltest.ToolCall
}

// eachTerminalCLI runs a test for each CLI.
func eachTerminalCLI(t *testing.T, test func(t *testing.T, cli terminalCLI)) {
	for name, cli := range map[string]terminalCLI{
		"codex": {
			setup:         newCodex,
			plants:        func(t *testing.T, fired, _ string) map[string]string { return hostileToCodex(t, fired) },
			needsApproval: func(file string) modeltest.ToolCall { return escalated("echo made > " + file) },
		},
		"claude": {
			setup:  newOnboardedClaude,
			plants: claudePlants,
			needsApproval: func(file string) modeltest.ToolCall {
				return bash("sh -c 'echo made > " + file + "'")
			},
		},
		"gemini": {
			setup:         newGemini,
			plants:        geminiPlants,
			needsApproval: func(file string) modeltest.ToolCall { return shell("echo made > " + file) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, cli)
		})
	}
}

// newOnboardedClaude is newClaude for a user who has completed the onboarding, which
// needs Anthropic's servers.
func newOnboardedClaude(t *testing.T, script modeltest.Script, files map[string]string) *fixture {
	w := newClaude(t, script, files)
	writeFiles(t, w.home, map[string]string{
		".claude.json": `{"hasCompletedOnboarding":true,"theme":"dark","customApiKeyResponses":{"approved":["sk-acceptance"],"rejected":[]}}`,
	})
	return w
}

// scripted answers the requests of the conversation. CLIs send other requests too,
// without tools, for example for a title.
func scripted(replies ...modeltest.Reply) modeltest.Script {
	next := modeltest.Replies(replies...)
	return func(r *modeltest.Request) modeltest.Reply {
		if len(r.Tools()) == 0 {
			return answer("a title")
		}
		return next(r)
	}
}

// firstWith returns the first request of the conversation with text in a user message.
func (w *fixture) firstWith(text string) *modeltest.Request {
	w.t.Helper()
	requests := w.model.ModelRequests()
	i := slices.IndexFunc(requests, func(r *modeltest.Request) bool {
		return len(r.Tools()) > 0 && strings.Contains(strings.Join(r.Texts("user"), "\n"), text)
	})
	if i < 0 {
		w.t.Fatalf("the model never got %q", text)
	}
	return requests[i]
}

// tryStartTerminal starts a session in a terminal, which is stopped at the end of the
// test.
func (w *fixture) tryStartTerminal(o session.Options, change func(*agent.Request)) (*testSession, error) {
	w.t.Helper()
	var known registry.Registry
	for _, rt := range []registry.Runtime{codexcli.Runtime(), claudecode.Runtime(), geminicli.Runtime()} {
		if err := known.Register(rt); err != nil {
			w.t.Fatal(err)
		}
	}
	d := &testSession{fixture: w, before: w.snapshot()}
	r := runner.Runner{Registry: &known, Environ: w.environ(), Warn: func(line string) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.warnings = append(d.warnings, line)
	}}
	o.Mode = session.ModeTmux
	o.Events = func(e *agent.Event) error {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.events = append(d.events, *e.Clone())
		return nil
	}
	var err error
	if d.session, err = r.StartSession(w.t.Context(), w.request(change), o); err != nil {
		return d, err
	}
	w.t.Cleanup(func() { d.session.Stop(context.Background(), "the test is over") })
	return d, nil
}

func (w *fixture) startTerminal(o session.Options, change func(*agent.Request)) *testSession {
	w.t.Helper()
	d, err := w.tryStartTerminal(o, change)
	if err != nil {
		w.t.Fatal(err)
	}
	return d
}

// sendShows sends text and fails the test unless the terminal shows want.
func (d *testSession) sendShows(text, want string) agent.Result {
	d.t.Helper()
	r, err := d.send(text)
	if err != nil || !strings.Contains(r.Text, want) {
		d.t.Fatalf("after %q the terminal shows %q, %v; want %q", clip(text), clip(r.Text), err, want)
	}
	return r
}

// The interactive CLIs accept messages in a terminal, run nothing from a hostile
// repository and leave nothing behind. A resumed session has the earlier turns.
func TestTerminalTurns(t *testing.T) {
	t.Parallel()
	eachTerminalCLI(t, func(t *testing.T, cli terminalCLI) {
		fired := newFiredDir(t)
		w := cli.setup(t, func(r *modeltest.Request) modeltest.Reply {
			said := strings.Join(r.Texts("user"), "\n")
			switch {
			case strings.Contains(said, "really?"):
				return answer("so it is")
			case strings.Contains(said, "/evil"):
				return answer("the grass is green")
			}
			return answer("the sky is blue")
		}, layered())
		writeFiles(t, w.repo, cli.plants(t, fired, w.model.URL()+"/stolen"))
		w.commit("hostile")
		d := w.startTerminal(session.Options{}, nil)
		first := d.sendShows("what of the sky? 👋🏽", "the sky is blue")
		second := d.sendShows("/evil looks at @AGENTS", "the grass is green")
		if strings.Contains(second.Text, "the sky is blue") {
			t.Errorf("%q contains the previous answer", second.Text)
		}
		if first.SessionID == "" || second.SessionID != first.SessionID || d.session.Info().SessionID != first.SessionID {
			t.Errorf("sessions %q, %q, %q", first.SessionID, second.SessionID, d.session.Info().SessionID)
		}
		d.stop()
		again := w.startTerminal(session.Options{}, func(r *agent.Request) { r.Resume = first.SessionID })
		third := again.sendShows("really?", "so it is")
		if third.SessionID != first.SessionID {
			t.Errorf("session %q, then %q", first.SessionID, third.SessionID)
		}
		again.stop()
		for _, want := range []string{"what of the sky? 👋🏽", "/evil looks at", "really?"} {
			request := w.firstWith(want)
			if got := strings.Join(request.Texts("user"), "\n"); strings.Count(got, "what of the sky? 👋🏽") != 1 {
				t.Errorf("the request with %q holds\n%s", want, clip(got))
			}
		}
		checkMarks(t, w.firstWith("what of the sky?"), rootMark)
		for _, request := range w.model.Requests() {
			if strings.Contains(request.Path, "stolen") {
				t.Errorf("the repository caused the request %s %s", request.Method, request.Path)
			}
		}
		checkNothingFired(t, fired)
	})
}

// An approval request on the screen becomes one of the session, which alone decides.
func TestTerminalApprovals(t *testing.T) {
	t.Parallel()
	for _, d := range []session.Decision{session.Accept, session.Decline} {
		t.Run(string(d), func(t *testing.T) {
			t.Parallel()
			eachTerminalCLI(t, func(t *testing.T, cli terminalCLI) { testTerminalApprovals(t, cli, d) })
		})
	}
}

func testTerminalApprovals(t *testing.T, cli terminalCLI, decision session.Decision) {
	file := filepath.Join(t.TempDir(), "made")
	w := cli.setup(t, scripted(modeltest.Reply{cli.needsApproval(file)}, answer("that was that"), answer("the next")), nil)
	asked := make(chan session.Approval, 8)
	d := w.startTerminal(session.Options{Approve: func(_ context.Context, a session.Approval) session.Decision {
		asked <- a
		return decision
	}}, nil)
	_, err := d.send("make the file")
	select {
	case a := <-asked:
		if !strings.Contains(a.Reason, "made") {
			t.Errorf("the approval request %q does not name the file", a.Reason)
		}
	default:
		t.Errorf("no approval request; the turn ended with %v", err)
	}
	_, missing := os.Stat(file)
	if made := missing == nil; made != (decision == session.Accept) {
		t.Errorf("after %s: made %t, %v", decision, made, missing)
	}
	if err != nil && !errors.Is(err, agent.ErrCanceled) {
		t.Error(err)
	}
	d.stop()
}

// The session commands work with a session in a terminal.
func TestTerminalCommands(t *testing.T) {
	t.Parallel()
	eachTerminalCLI(t, func(t *testing.T, cli terminalCLI) {
		w := cli.setup(t, modeltest.Always(answer("the sky is blue")), layered())
		w.keptInHome = append(w.keptInHome, ".local") // state of sessions
		before := w.snapshot()
		w.mustExec("", append([]string{"session", "start", "--mode", "tmux", "--name", "look", "--agent", w.agent, "--model", w.modelID}, w.codexArgs()...)...)
		defer w.mustExec("", "session", "stop", "look")
		for range 2 {
			if got := w.mustExec("", "session", "send", "look", "what of the sky?"); !strings.Contains(got, "the sky is blue") {
				t.Errorf("send: %s", got)
			}
			w.mustExec("", "session", "stop", "look")
			w.checkNothingLeft(before)
			w.mustExec("", "session", "resume", "look")
		}
		// Codex sends other requests for titles.
		if !slices.ContainsFunc(w.model.ModelRequests(), func(r *modeltest.Request) bool {
			return strings.Count(strings.Join(r.Texts("user"), "\n"), "what of the sky?") == 2
		}) {
			t.Error("the resumed session lacks the earlier turn")
		}
	})
}
