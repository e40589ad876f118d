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

// A seen CLI is one that is held in a terminal.
type seen struct {
	make maker
	// plants are files with which a repository would run programs.
	plants func(t *testing.T, fired, stolen string) map[string]string
	// asking is a call of a tool that makes a file and needs permission.
	asking func(file string) modeltest.ToolCall
}

// eachTerminal runs a test for each CLI.
func eachTerminal(t *testing.T, prove func(t *testing.T, cli seen)) {
	for name, cli := range map[string]seen{
		"codex": {
			make:   newWorld,
			plants: func(t *testing.T, fired, _ string) map[string]string { return hostileToCodex(t, fired) },
			asking: func(file string) modeltest.ToolCall { return escalated("echo made > " + file) },
		},
		"claude": {
			make:   newOnboardedClaude,
			plants: claudePlants,
			asking: func(file string) modeltest.ToolCall {
				return bash("sh -c 'echo made > " + file + "'")
			},
		},
		"gemini": {
			make:   newGemini,
			plants: geminiPlants,
			asking: func(file string) modeltest.ToolCall { return shell("echo made > " + file) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			prove(t, cli)
		})
	}
}

// newOnboardedClaude is newClaude for a user who has been through its first start,
// which asks Anthropic's servers.
func newOnboardedClaude(t *testing.T, script modeltest.Script, files map[string]string) *world {
	w := newClaude(t, script, files)
	writeFiles(t, w.home, map[string]string{
		".claude.json": `{"hasCompletedOnboarding":true,"theme":"dark","customApiKeyResponses":{"approved":["sk-acceptance"],"rejected":[]}}`,
	})
	return w
}

// scripted answers what the conversation asks the model. CLIs ask it on the side
// as well, without tools, for titles and the like.
func scripted(replies ...modeltest.Reply) modeltest.Script {
	next := modeltest.Replies(replies...)
	return func(r *modeltest.Request) modeltest.Reply {
		if len(r.Tools()) == 0 {
			return answer("a title")
		}
		return next(r)
	}
}

// firstWith returns the first request of the conversation in which the user says
// text.
func (w *world) firstWith(text string) *modeltest.Request {
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

// tryTerminal opens a session in a terminal, which ends with the test at the latest.
func (w *world) tryTerminal(o session.Options, change func(*agent.Request)) (*dialogue, error) {
	w.t.Helper()
	var known registry.Registry
	for _, rt := range []registry.Runtime{codexcli.Runtime(), claudecode.Runtime(), geminicli.Runtime()} {
		if err := known.Register(rt); err != nil {
			w.t.Fatal(err)
		}
	}
	d := &dialogue{world: w, before: w.snapshot()}
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

func (w *world) terminal(o session.Options, change func(*agent.Request)) *dialogue {
	w.t.Helper()
	d, err := w.tryTerminal(o, change)
	if err != nil {
		w.t.Fatal(err)
	}
	return d
}

// shows says text and fails the test unless the terminal shows want then.
func (d *dialogue) shows(text, want string) agent.Result {
	d.t.Helper()
	r, err := d.tell(text)
	if err != nil || !strings.Contains(r.Text, want) {
		d.t.Fatalf("after %q the terminal shows %q, %v; want %q", clip(text), clip(r.Text), err, want)
	}
	return r
}

// The interactive CLIs take messages in a terminal, run nothing that a repository
// plants, and leave nothing behind. A session goes on where it was.
func TestTerminalHoldsTurns(t *testing.T) {
	t.Parallel()
	eachTerminal(t, func(t *testing.T, cli seen) {
		fired := firedDir(t)
		w := cli.make(t, func(r *modeltest.Request) modeltest.Reply {
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
		w.git("add", "-A", "-f")
		w.git("-c", "user.name=t", "-c", "user.email=t@example.invalid", "commit", "-q", "-m", "hostile")
		d := w.terminal(session.Options{}, nil)
		first := d.shows("what of the sky? 👋🏽", "the sky is blue")
		second := d.shows("/evil looks at @AGENTS", "the grass is green")
		if strings.Contains(second.Text, "the sky is blue") {
			t.Errorf("the answer before is in %q", second.Text)
		}
		if first.SessionID == "" || second.SessionID != first.SessionID || d.session.Info().SessionID != first.SessionID {
			t.Errorf("sessions %q, %q, %q", first.SessionID, second.SessionID, d.session.Info().SessionID)
		}
		d.stop()
		again := w.terminal(session.Options{}, func(r *agent.Request) { r.Resume = first.SessionID })
		third := again.shows("really?", "so it is")
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
		checkLayers(t, w.firstWith("what of the sky?"), rootMark)
		for _, request := range w.model.Requests() {
			if strings.Contains(request.Path, "stolen") {
				t.Errorf("%s %s is the doing of the repository", request.Method, request.Path)
			}
		}
		if got := firedNames(t, fired); len(got) != 0 {
			t.Errorf("the repository ran %q", got)
		}
	})
}

// A question on the screen is one of the session, and nothing else answers it.
func TestTerminalAsks(t *testing.T) {
	t.Parallel()
	for _, d := range []session.Decision{session.Accept, session.Decline} {
		t.Run(string(d), func(t *testing.T) {
			t.Parallel()
			eachTerminal(t, func(t *testing.T, cli seen) { proveTerminalAsks(t, cli, d) })
		})
	}
}

func proveTerminalAsks(t *testing.T, cli seen, decision session.Decision) {
	file := filepath.Join(t.TempDir(), "made")
	w := cli.make(t, scripted(modeltest.Reply{cli.asking(file)}, answer("that was that"), answer("the next")), nil)
	asked := make(chan session.Approval, 8)
	d := w.terminal(session.Options{Approve: func(_ context.Context, a session.Approval) session.Decision {
		asked <- a
		return decision
	}}, nil)
	_, err := d.tell("make the file")
	select {
	case a := <-asked:
		if !strings.Contains(a.Reason, "made") {
			t.Errorf("the question %q does not say what is asked", a.Reason)
		}
	default:
		t.Errorf("nothing was asked; the turn ended with %v", err)
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

// The commands of sessions work with one in a terminal as with any other.
func TestTerminalFromTheCommandLine(t *testing.T) {
	t.Parallel()
	eachTerminal(t, func(t *testing.T, cli seen) {
		w := cli.make(t, modeltest.Always(answer("the sky is blue")), layered())
		w.keeps = append(w.keeps, ".local") // the state of sessions
		run := func(args ...string) outcome {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), w.limit)
			defer cancel()
			cmd, stdout, stderr := w.start(ctx, "", args...)
			err := cmd.Wait()
			o := outcome{stdout: stdout.String(), stderr: stderr.String(), code: cmd.ProcessState.ExitCode()}
			if err != nil {
				t.Fatalf("%q: %v\n%v", args, err, o)
			}
			return o
		}
		before := w.snapshot()
		run(append([]string{"session", "start", "--mode", "tmux", "--name", "look", "--agent", w.agent, "--model", w.chosen}, w.fake()...)...)
		defer run("session", "stop", "look")
		for range 2 {
			if o := run("session", "send", "look", "what of the sky?"); !strings.Contains(o.stdout, "the sky is blue") {
				t.Errorf("send: %v", o)
			}
			run("session", "stop", "look")
			w.checkTraces(before)
			run("session", "resume", "look")
		}
		// Codex asks for titles beside the conversation.
		if !slices.ContainsFunc(w.model.ModelRequests(), func(r *modeltest.Request) bool {
			return strings.Count(strings.Join(r.Texts("user"), "\n"), "what of the sky?") == 2
		}) {
			t.Error("the session that was gone on with does not know what was said")
		}
	})
}
