//go:build acceptance

package acceptance

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/modeltest"
	"github.com/busdk/bus-agent/session"
)

// Decisions on an approval request of which bus-agent verify makes none take effect, in two
// turns with the same request.
func TestGeminiSessionApprovals(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		decision session.Decision // empty: no decision
		asked    int32
		done     string
	}{
		"accept for session": {session.AcceptForSession, 1, "x\nx\n"},
		"cancel":             {session.Cancel, 2, ""},
		"no decision":        {"", 2, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := filepath.Join(newFiredDir(t), "made")
			w := newGemini(t, func(r *modeltest.Request) modeltest.Reply {
				results := len(r.ToolResults())
				if last := lastPrompt(r); last == "once" && results == 0 || last == "twice" && results < 2 {
					return modeltest.Reply{shell("echo x | tee -a " + made), turnUsage}
				}
				return modeltest.Reply{modeltest.Text{"done"}, turnUsage}
			}, nil)
			var asked atomic.Int32
			options := session.Options{Approve: func(_ context.Context, a session.Approval) session.Decision {
				asked.Add(1)
				if a.ID == "" || a.Tool == nil || !strings.Contains(string(a.Tool.Input), made) {
					t.Errorf("the request is %+v, %+v", a, a.Tool)
				}
				return tt.decision
			}}
			if tt.decision == "" {
				options.ApprovalTimeout = 500 * time.Millisecond
			}
			d := w.startSession(options, nil)
			for _, text := range []string{"once", "twice"} {
				r, err := d.send(text)
				if tt.decision == session.Cancel {
					wantErrorIs(t, err, agent.ErrCanceled)
				} else if err != nil || r.Text != "done" {
					t.Errorf("%s: %q, %v", text, r.Text, err)
				}
			}
			d.sendWant("hello", "done")
			if n := asked.Load(); n != tt.asked {
				t.Errorf("%d approval requests, want %d", n, tt.asked)
			}
			data, _ := os.ReadFile(made) // a missing file is empty
			if string(data) != tt.done {
				t.Errorf("the file holds %q, want %q", data, tt.done)
			}
			d.stop()
		})
	}
}

// An action permitted by the access needs no approval; any other is requested or denied.
func TestGeminiSessionAccessHolds(t *testing.T) {
	t.Parallel()
	write := func(path string) modeltest.ToolCall {
		return modeltest.ToolCall{Name: "write_file", Arguments: fmt.Sprintf(`{"file_path":%q,"content":"x"}`, path)}
	}
	var w *fixture
	calls := func() []modeltest.ToolCall {
		return []modeltest.ToolCall{
			write(filepath.Join(w.repo, "made-file")), write(filepath.Join(w.repo, "..", "made-above")),
			shell("echo x > made-by-command"), shell("git status > made-by-git"),
		}
	}
	w = newGemini(t, func(r *modeltest.Request) modeltest.Reply {
		if n := len(r.ToolResults()); n%4 != 0 || strings.HasSuffix(lastPrompt(r), "try") && n/4 < strings.Count(strings.Join(r.Texts("user"), "\n"), "try") {
			return modeltest.Reply{calls()[n%4], turnUsage}
		}
		return modeltest.Reply{modeltest.Text{"done"}, turnUsage}
	}, map[string]string{".gitignore": "made-*\n"})
	var asked atomic.Int32
	d := w.startSession(session.Options{Approve: func(context.Context, session.Approval) session.Decision {
		asked.Add(1)
		return session.Decline
	}}, withAccess(agent.AccessRead))
	for _, tt := range []struct {
		access agent.Access
		asked  int32
		made   string
	}{
		{agent.AccessRead, -1, "[]"},
		{agent.AccessWrite, 2, "[made-file]"},
		{agent.AccessFull, 0, "[made-by-command made-by-git made-file]"},
		{agent.AccessRead, -1, "[]"},
	} {
		asked.Store(0)
		if err := d.session.SetAccess(t.Context(), tt.access); err != nil {
			t.Fatal(err)
		}
		d.sendWant("try", "done")
		made, err := filepath.Glob(filepath.Join(w.repo, "made-*"))
		if err != nil {
			t.Fatal(err)
		}
		for i, file := range made {
			made[i] = filepath.Base(file)
			if err := os.Remove(file); err != nil {
				t.Error(err)
			}
		}
		if n := asked.Load(); tt.asked >= 0 && n != tt.asked || fmt.Sprint(made) != tt.made {
			t.Errorf("%s: made %v, want %s; %d approval requests, want %d", tt.access, made, tt.made, n, tt.asked)
		}
		if _, err := os.Stat(filepath.Join(w.repo, "..", "made-above")); err == nil {
			t.Errorf("%s: a file was made above the workdir", tt.access)
		}
	}
	requests := w.model.ModelRequests()
	for _, result := range requests[len(requests)-1].ToolResults() {
		t.Log(clip(result.Output))
	}
	d.stop()
}

// A failure of the model ends the turn with an error of its kind, and not the session.
func TestGeminiSessionContinuesAfterFailures(t *testing.T) {
	t.Parallel()
	failed := func(status int) modeltest.Reply {
		return modeltest.Reply{modeltest.HTTPError{Status: status, Message: "no luck"}}
	}
	failures := []struct {
		reply modeltest.Reply
		kind  error
		says  string
	}{
		{failed(http.StatusUnauthorized), agent.ErrAuthentication, "no luck"},
		{failed(http.StatusTooManyRequests), agent.ErrQuota, "no luck"},
		{failed(http.StatusInternalServerError), agent.ErrAgent, "no luck"},
		{modeltest.Reply{modeltest.Text{"half an"}, modeltest.Cut{}}, agent.ErrAgent, "terminated"},
		{nil, agent.ErrAgent, "has not answered"},
	}
	failing := 0
	w := newGemini(t, func(r *modeltest.Request) modeltest.Reply {
		if lastPrompt(r) == "fail" {
			return failures[failing].reply
		}
		return modeltest.Reply{modeltest.Text{"fine"}, turnUsage}
	}, nil)
	writeFiles(t, w.home, map[string]string{
		".gemini/settings.json": `{"security":{"auth":{"selectedType":"gemini-api-key"}},"privacy":{"usageStatisticsEnabled":false},"general":{"maxAttempts":1}}`,
	})
	d := w.startSession(session.Options{}, nil)
	d.sendWant("hello", "fine")
	for i, f := range failures {
		failing = i // read when the model is called, within the turn
		r, err := d.send("fail")
		wantErrorIs(t, err, f.kind)
		if err == nil || !strings.Contains(err.Error(), f.says) {
			t.Errorf("%d ends the turn with %v", i, err)
		}
		if r.Usage != nil {
			t.Errorf("%d: a failed turn has the usage %+v", i, r.Usage)
		}
		t.Logf("%d: %v", i, err)
		d.sendWant("and now?", "fine")
	}
	d.stop()
}

func TestGeminiSessionLoginError(t *testing.T) {
	t.Parallel()
	w := newGemini(t, modeltest.Replies(), nil)
	w.env = w.env[:1]
	before := w.snapshot()
	_, err := w.tryStartSession(session.Options{}, nil)
	wantErrorIs(t, err, agent.ErrAuthentication)
	t.Log(err)
	w.checkNothingLeft(before)
}

// A hostile repository runs nothing in new and resumed sessions, with any access, even
// if the workdir is a link.
func TestHostileRepositoryRunsNothingInGeminiSession(t *testing.T) {
	t.Parallel()
	for _, access := range agent.Accesses() {
		t.Run(string(access), func(t *testing.T) {
			t.Parallel()
			fired := newFiredDir(t)
			w := newGemini(t, func(r *modeltest.Request) modeltest.Reply {
				if lastPrompt(r) == "try" && len(r.ToolResults()) == 0 {
					return modeltest.Reply{shell("echo hello"), turnUsage}
				}
				return modeltest.Reply{modeltest.Text{"done"}, turnUsage}
			}, layered())
			writeFiles(t, w.repo, geminiPlants(t, fired, w.model.URL()+"/stolen"))
			w.commit("hostile")
			// Under another name of the workdir, Gemini CLI reads its settings again.
			link := filepath.Join(filepath.Dir(w.repo), "link")
			if err := os.Symlink(w.repo, link); err != nil {
				t.Fatal(err)
			}
			var id string
			for range 2 {
				d := w.startSession(declineAll(), func(r *agent.Request) { r.Access, r.Resume, r.Workdir = access, id, link })
				id = d.sendWant("try", "done").SessionID
				d.sendWant("/evil", "done")
				if !strings.Contains(d.warningLog(), "left out") {
					t.Errorf("no warning that the repository's settings were left out: %s", d.warningLog())
				}
				d.stop()
			}
			checkNothingFired(t, fired)
			for _, request := range w.model.Requests() {
				if strings.Contains(request.Path, "stolen") {
					t.Errorf("unexpected request %s %s", request.Method, request.Path)
				}
				if !request.IsModel() {
					continue
				}
				if got := request.Header.Get("X-Goog-Api-Key"); got != "sk-acceptance" || request.Model() != w.modelID {
					t.Errorf("request %s has key %q, model %s", request.Path, got, request.Model())
				}
				checkMarks(t, request, rootMark)
				if n := request.Count("PLANTED-TEXT"); n != 0 {
					t.Errorf("planted text occurs %d times", n)
				}
			}
		})
	}
}

// The hostile files work if the workspace is trusted, so the test above is meaningful.
func TestHostileFilesRunInTrustedGeminiSession(t *testing.T) {
	t.Parallel()
	fired := newFiredDir(t)
	w := newGemini(t, modeltest.Always(modeltest.Reply{modeltest.Text{"ok"}, turnUsage}), layered())
	w.mayAdd = []string{".gemini/settings.json", ".geminiignore"}
	plants := geminiPlants(t, fired, w.model.URL()+"/stolen")
	delete(plants, ".env")
	writeFiles(t, w.repo, plants)
	d := w.startSession(session.Options{}, func(r *agent.Request) { r.TrustWorkspace, r.Access = true, agent.AccessFull })
	d.sendWant("hello", "ok")
	checkMarks(t, w.wantRequests(1)[0], rootMark)
	d.session.Stop(t.Context(), "")
	checkFired(t, fired, "BeforeAgent", "BeforeModel", "mcp", "discovery")
}
