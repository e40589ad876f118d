//go:build acceptance

package acceptance

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/busdk/bus-agent/modeltest"
)

// plantGit configures the repository so that git commands such as git status run
// programs. Each program creates a file with its name in fired.
func plantGit(t *testing.T, w *fixture, fired string) {
	t.Helper()
	text := ""
	for _, p := range [][3]string{
		{"core", "", "fsmonitor"}, {"core", "", "pager"}, {"core", "", "sshCommand"}, {"core", "", "askPass"},
		{"filter", "planted", "clean"}, {"filter", "planted", "smudge"}, {"diff", "planted", "textconv"},
		{"diff", "", "external"}, {"credential", "", "helper"}, {"gpg", "", "program"},
	} {
		program := filepath.Join(fired, "..", "git-"+p[0]+"-"+p[2])
		writeFiles(t, filepath.Dir(program), map[string]string{
			filepath.Base(program): "#!/bin/sh\nenv | grep -c API_KEY >" + filepath.Join(fired, filepath.Base(program)) + "\ncat\n",
		})
		section := p[0]
		if p[1] != "" {
			section = fmt.Sprintf("%s %q", p[0], p[1])
		}
		text += fmt.Sprintf("[%s]\n\t%s = %s\n", section, p[2], program)
	}
	hook := "#!/bin/sh\n: >" + filepath.Join(fired, "hook") + "\n"
	writeFiles(t, filepath.Join(w.repo, ".git"), map[string]string{
		"config":                  text + "[log]\n\tshowSignature = true\n",
		"info/attributes":         "* filter=planted diff=planted\n",
		"hooks/post-index-change": hook, "hooks/post-checkout": hook, "hooks/pre-commit": hook,
	})
	// git runs filters for files that may have changed.
	if err := os.Chtimes(filepath.Join(w.repo, "AGENTS.md"), time.Unix(1, 0), time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	w.noGit = true // git would run the plants in the test itself
}

// The CLIs run git before the first tool call. With trust the configuration applies, and
// git status by Codex runs the filter with the key in its environment. So the next test
// is meaningful.
func TestHostileGitRunsInTrustedCodex(t *testing.T) {
	t.Parallel()
	fired := newFiredDir(t)
	w := newCodex(t, modeltest.Replies(answer("done")), layered())
	plantGit(t, w, fired)
	r, o := w.run("hello", "--access", "read", "--trust-workspace")
	w.wantAnswer("done", r, o)
	checkFired(t, fired, "git-filter-clean")
	if got, err := os.ReadFile(filepath.Join(fired, "git-filter-clean")); err != nil || string(got) == "0\n" {
		t.Errorf("%s variables with keys, %v", got, err)
	}
}

func TestHostileGitRunsNothing(t *testing.T) {
	t.Parallel()
	for name, setup := range map[string]setupFunc{"codex": newCodex, "claude": newClaude, "gemini": newGemini} {
		for _, access := range []string{"read", "write"} { // bus-agent verify tests full access
			t.Run(name+"/"+access, func(t *testing.T) {
				t.Parallel()
				fired := newFiredDir(t)
				call := modeltest.ToolCall{Name: "exec_command", Arguments: `{"cmd":"git status; git diff; git log -p"}`}
				switch name {
				case "claude":
					call = modeltest.ToolCall{Name: "Bash", Arguments: `{"command":"git status; git diff; git log -p","description":"look"}`}
				case "gemini":
					call = modeltest.ToolCall{Name: "run_shell_command", Arguments: `{"command":"git status; git diff; git log -p","description":"look"}`}
				}
				w := setup(t, func(r *modeltest.Request) modeltest.Reply {
					if len(r.ToolResults()) == 0 {
						return modeltest.Reply{call}
					}
					return answer("done")
				}, layered())
				plantGit(t, w, fired)
				r, o := w.run("hello", "--access", access)
				w.wantAnswer("done", r, o)
				checkNothingFired(t, fired)
			})
		}
	}
}
