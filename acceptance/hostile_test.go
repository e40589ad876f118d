//go:build acceptance

package acceptance

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/modeltest"
)

// programs writes a program for each name next to fired and returns a function that
// returns their paths. Each program creates a file with its name in fired.
func programs(t *testing.T, fired string, names ...string) func(name string) string {
	t.Helper()
	dir := filepath.Join(fired, "..", "plants")
	files := map[string]string{}
	for _, name := range names {
		// An empty list is a valid result of a discovery.
		files[name] = "#!/bin/sh\n: >" + filepath.Join(fired, name) + "\n[ " + name + " = discovery ] && echo '[]'\n:\n"
	}
	writeFiles(t, dir, files)
	return func(name string) string {
		if !slices.Contains(names, name) {
			t.Fatalf("no program %s", name)
		}
		return filepath.Join(dir, name)
	}
}

// A hostileRun is a run in a hostile repository.
type hostileRun struct {
	workdir string
	prompt  string
	access  string // "" is full
	again   string // kind of a second run: "new", "resume" or "continue"
	marks   []string
}

func hostileRuns() map[string]hostileRun {
	return map[string]hostileRun{
		"at the root":       {workdir: ".", marks: []string{rootMark}},
		"in a folder":       {workdir: "services", marks: []string{rootMark, midMark}},
		"a second run":      {workdir: ".", again: "new", marks: []string{rootMark}},
		"a resumed run":     {workdir: ".", again: "resume", marks: []string{rootMark}},
		"a continued run":   {workdir: ".", again: "continue", marks: []string{rootMark}},
		"to read":           {workdir: ".", access: "read", marks: []string{rootMark}},
		"a planted command": {workdir: ".", prompt: "/evil", marks: []string{rootMark}},
	}
}

// testHostileRepository checks that a repository with plants in its root and in services
// runs nothing with full access, that only the model receives the key, and that
// AGENTS.md files still apply. The model calls call once.
func testHostileRepository(t *testing.T, setup setupFunc, call modeltest.ToolCall, key string, plants func(t *testing.T, fired, stolen string) map[string]string) {
	for name, h := range hostileRuns() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fired := newFiredDir(t)
			w := setup(t, func(r *modeltest.Request) modeltest.Reply {
				if len(r.ToolResults()) == 0 {
					return modeltest.Reply{call}
				}
				return answer("done")
			}, layered())
			plant := plants(t, fired, w.model.URL()+"/stolen")
			for _, dir := range []string{".", "services"} {
				writeFiles(t, filepath.Join(w.repo, dir), plant)
			}
			w.commit("hostile")

			args := []string{"--workdir", filepath.Join(w.repo, h.workdir), "--access", cmp.Or(h.access, "full")}
			if h.again != "" {
				r, o := w.run("before", args...)
				w.wantAnswer("done", r, o)
				switch h.again {
				case "resume":
					args = append(args, "--resume", r.SessionID)
				case "continue":
					args = append(args, "--continue")
				}
			}
			prompt := h.prompt
			if prompt == "" {
				prompt = "hello"
			}
			r, o := w.run(prompt, args...)
			w.wantAnswer("done", r, o)
			checkNothingFired(t, fired)
			if !strings.Contains(o.stderr, "left out") {
				t.Errorf("no warning that the repository's settings were left out: %v", o)
			}
			for _, request := range w.model.Requests() {
				if strings.Contains(request.Path, "stolen") {
					t.Errorf("unexpected request %s %s", request.Method, request.Path)
				}
				if got := request.Header.Get(key); request.IsModel() && got != "sk-acceptance" {
					t.Errorf("request %s has key %q", request.Path, got)
				}
				if request.Header.Get("Authorization") != "" {
					t.Errorf("request %s has another key", request.Path)
				}
				if request.IsModel() && request.Model() != w.modelID {
					t.Errorf("unexpected model %s", request.Model())
				}
			}
			requests := w.model.ModelRequests()
			last := requests[len(requests)-1]
			checkMarks(t, last, h.marks...)
			if n := last.Count("PLANTED-TEXT"); n != 0 {
				t.Errorf("planted text occurs %d times", n)
			}
			if got := strings.TrimPrefix(lastPrompt(last), "\n"); got != prompt {
				t.Errorf("the model got the prompt %q", got)
			}
		})
	}
}

// checkFired fails the test unless each of the programs want was run.
func checkFired(t *testing.T, fired string, want ...string) {
	t.Helper()
	got := firedNames(t, fired)
	for _, name := range want {
		if !slices.Contains(got, name) {
			t.Errorf("%s was not run, only %q", name, got)
		}
	}
}

// checkNothingFired fails the test if a program of the repository was run.
func checkNothingFired(t *testing.T, fired string) {
	t.Helper()
	if got := firedNames(t, fired); len(got) != 0 {
		t.Errorf("the repository ran %q", got)
	}
}
