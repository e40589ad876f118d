//go:build acceptance

package acceptance

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/modeltest"
	"github.com/busdk/bus-agent/session"
)

// hostileToCodex returns files that run programs in Codex if it trusts the repository or
// uses it as its home.
func hostileToCodex(t *testing.T, fired string) map[string]string {
	files := map[string]string{}
	plant(t, fired, files, possibleCodexHomes...)
	maps.Copy(files, layered())
	mcp := filepath.Join(fired, "..", "plants", "mcp")
	files[".mcp.json"] = fmt.Sprintf(`{"mcpServers":{"planted":{"command":%q}}}`, mcp)
	return files
}

// The hostile files work if the workspace is trusted, so the next test is meaningful.
func TestHostileFilesRunInTrustedCodexSession(t *testing.T) {
	t.Parallel()
	fired := newFiredDir(t)
	w := newCodex(t, modeltest.Always(answer("ok")), hostileToCodex(t, fired))
	d := w.startSession(session.Options{}, func(r *agent.Request) { r.TrustWorkspace, r.Access = true, agent.AccessFull })
	d.sendWant("hello", "ok")
	d.stop()
	checkFired(t, fired, "mcp")
	t.Log(firedNames(t, fired))
}

// A hostile repository runs nothing in new and resumed sessions, with any access.
func TestHostileRepositoryRunsNothingInCodexSession(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		access  agent.Access
		workdir string
		marks   []string
	}{
		"read":              {agent.AccessRead, ".", []string{rootMark}},
		"write":             {agent.AccessWrite, ".", []string{rootMark}},
		"full":              {agent.AccessFull, ".", []string{rootMark}},
		"write in a folder": {agent.AccessWrite, "services", []string{rootMark, midMark}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fired := newFiredDir(t)
			w := newCodex(t, func(r *modeltest.Request) modeltest.Reply {
				if lastPrompt(r) == "try" && len(r.ToolResults()) == 0 && tt.access != agent.AccessFull {
					return escape(fired)
				}
				return answer("done")
			}, hostileToCodex(t, fired))
			var id string
			for range 2 {
				d := w.startSession(declineAll(), func(r *agent.Request) {
					r.Access, r.Resume, r.Workdir = tt.access, id, filepath.Join(w.repo, tt.workdir)
				})
				id = d.sendWant("try", "done").SessionID
				d.sendWant("hello", "done")
				if !strings.Contains(d.warningLog(), "left out") {
					t.Errorf("no warning that the repository's settings were left out: %s", d.warningLog())
				}
				d.stop()
			}
			checkNothingFired(t, fired)
			for _, request := range w.model.Requests() {
				if got := request.Header.Get("Authorization"); got != "Bearer sk-acceptance" {
					t.Errorf("%s request %s has key %q", request.Method, request.Path, got)
				}
				if request.IsModel() && request.Model() != w.modelID {
					t.Errorf("unexpected model %s", request.Model())
				}
				if request.IsModel() {
					checkMarks(t, request, tt.marks...)
				}
			}
		})
	}
}

func declineAll() session.Options {
	return session.Options{Approve: func(context.Context, session.Approval) session.Decision { return session.Decline }}
}

// The caller's CODEX_HOME is not changed: the repository is not added to its trusted
// projects. One inside the repository is refused, because the App Server would apply
// its settings.
func TestCodexSessionCallerHome(t *testing.T) {
	t.Parallel()
	fired := newFiredDir(t)
	files := layered()
	plant(t, fired, files, ".codex")
	w := newCodex(t, modeltest.Always(answer("ok")), files)
	own := t.TempDir()
	const settings = "model_verbosity = \"high\"\n"
	writeFiles(t, own, map[string]string{"config.toml": settings})
	var id string
	for range 2 {
		d := w.startSession(declineAll(), func(r *agent.Request) { r.Env, r.Resume = []string{"CODEX_HOME=" + own}, id })
		id = d.sendWant("hello", "ok").SessionID
		d.sendWant("hello again", "ok")
		d.stop()
	}
	for _, request := range w.wantRequests(4) {
		checkMarks(t, request, rootMark)
		if request.Verbosity() != "high" {
			t.Errorf("verbosity %q: the caller's settings were not applied", request.Verbosity())
		}
	}
	if data, err := os.ReadFile(filepath.Join(own, "config.toml")); err != nil || string(data) != settings {
		t.Errorf("the caller's settings are now %q, %v", data, err)
	}
	_, err := w.tryStartSession(session.Options{}, func(r *agent.Request) { r.Env = []string{"CODEX_HOME=.codex"} })
	wantErrorIs(t, err, agent.ErrUsage)
	checkNothingFired(t, fired)
}

func TestHostileRepositoryRunsNothingInClaudeSession(t *testing.T) {
	t.Parallel()
	for _, access := range agent.Accesses() {
		t.Run(string(access), func(t *testing.T) {
			t.Parallel()
			fired := newFiredDir(t)
			w := newClaude(t, func(r *modeltest.Request) modeltest.Reply {
				if lastPrompt(r) == "try" && len(r.ToolResults()) == 0 {
					return modeltest.Reply{bash("echo hello")}
				}
				return answer("done")
			}, layered())
			plants := claudePlants(t, fired, w.model.URL()+"/stolen")
			writeFiles(t, w.repo, plants)
			w.commit("hostile")
			var id string
			for range 2 {
				d := w.startSession(declineAll(), func(r *agent.Request) { r.Access, r.Resume = access, id })
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
				if got := request.Header.Get("X-Api-Key"); got != "sk-acceptance" {
					t.Errorf("request %s has key %q", request.Path, got)
				}
				checkMarks(t, request, rootMark)
				if n := request.Count("PLANTED-TEXT"); n != 0 {
					t.Errorf("planted text occurs %d times", n)
				}
			}
		})
	}
}
