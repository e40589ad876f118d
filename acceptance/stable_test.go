//go:build acceptance

package acceptance

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/modeltest"
	"github.com/busdk/bus-agent/session"
)

// stableCases are the ways in which AGENTS.md reaches the model.
func stableCases(t *testing.T, test func(t *testing.T, w *fixture)) {
	long := layered()
	long["AGENTS.md"] += strings.Repeat("a rule that fills a line\n", 300<<10/25)
	imported := layered()
	imported["GEMINI.md"] = "@AGENTS.md\n"
	for name, tt := range map[string]struct {
		setup setupFunc
		files map[string]string
	}{
		"codex":                {newCodex, layered()},
		"codex, through home":  {newCodex, long},
		"claude":               {newClaude, layered()},
		"gemini":               {newGemini, layered()},
		"gemini, through home": {newGemini, long},
		"gemini, in message":   {newGemini, imported},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, tt.setup(t, modeltest.Always(answer("ok")), tt.files))
		})
	}
}

// Gemini 0.61.0 lists its built-in skills in the order in which it happened to read them.
var skill = regexp.MustCompile(`(?s)<skill>.*?</skill>`)

// stableMessages returns the messages of a request with the skills of each text sorted.
func stableMessages(r *modeltest.Request) []modeltest.Message {
	messages := r.Messages()
	for _, m := range messages {
		for i, text := range m.Texts {
			skills := skill.FindAllString(text, -1)
			slices.Sort(skills)
			m.Texts[i] = skill.ReplaceAllStringFunc(text, func(string) string {
				next := skills[0]
				skills = skills[1:]
				return next
			})
		}
	}
	return messages
}

// checkStable checks three requests: two equal ones, and one that resumes the first.
func (w *fixture) checkStable() {
	w.t.Helper()
	requests := w.wantRequests(3)
	first := stableMessages(requests[0])
	if diff := cmp.Diff(first, stableMessages(requests[1])); diff != "" {
		w.t.Errorf("two equal runs sent (-first +second):\n%s", diff)
	}
	turn := []modeltest.Message{{Role: "assistant", Texts: []string{"ok"}}, {Role: "user", Texts: []string{"and again"}}}
	if diff := cmp.Diff(slices.Concat(first, turn), stableMessages(requests[2])); diff != "" {
		w.t.Errorf("the resumed session sent (-want +got):\n%s", diff)
	}
}

// Two equal runs send the same messages, so that the provider's prompt cache applies; a
// resumed run adds nothing to those of its session but the new prompt.
func TestPromptsOfRunsAreStable(t *testing.T) {
	t.Parallel()
	stableCases(t, func(t *testing.T, w *fixture) {
		first, o := w.run("hello", "--workdir", w.repo+"/services")
		w.wantAnswer("ok", first, o)
		second, o := w.run("hello", "--workdir", w.repo+"/services")
		w.wantAnswer("ok", second, o)
		resumed, o := w.run("and again", "--workdir", w.repo+"/services", "--resume", first.SessionID)
		w.wantAnswer("ok", resumed, o)
		w.checkStable()
	})
}

// The same of sessions.
func TestPromptsOfSessionsAreStable(t *testing.T) {
	t.Parallel()
	stableCases(t, func(t *testing.T, w *fixture) {
		hold := func(text, resume string) (id string) {
			d := w.startSession(session.Options{}, func(r *agent.Request) { r.Workdir, r.Resume = w.repo+"/services", resume })
			d.sendWant(text, "ok")
			d.stop()
			return d.session.Info().SessionID
		}
		first := hold("hello", "")
		hold("hello", "")
		hold("and again", first)
		w.checkStable()
	})
}
