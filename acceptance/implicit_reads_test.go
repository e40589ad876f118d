//go:build acceptance

package acceptance

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/busdk/bus-agent/modeltest"
)

// canary is the value of a variable that must not reach the model.
const canary = "canary-4f9d2c7a1b"

// A trap creates a file in a repository that a CLI might read implicitly.
type trap func(t *testing.T, repo string)

// links creates links from pairs of name and target.
func links(pairs ...string) trap {
	return func(t *testing.T, repo string) {
		for i := 0; i < len(pairs); i += 2 {
			file := filepath.Join(repo, pairs[i])
			os.Remove(file)
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(pairs[i+1], file); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func fifo(name string) trap {
	return func(t *testing.T, repo string) {
		file := filepath.Join(repo, name)
		os.Remove(file)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(file, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func texts(files map[string]string, more ...trap) trap {
	return func(t *testing.T, repo string) {
		writeFiles(t, repo, files)
		for _, trap := range more {
			trap(t, repo)
		}
	}
}

const environFile = "/proc/self/environ"

// gitTraps are the traps for all CLIs.
func gitTraps() map[string]trap {
	return map[string]trap{
		"a FIFO .gitignore":       fifo(".gitignore"),
		"a FIFO .gitignore below": texts(map[string]string{"services/b/x": "x"}, fifo("services/b/.gitignore")),
		"a linked HEAD":           links(".git/HEAD", environFile),
		"a FIFO HEAD":             fifo(".git/HEAD"),
		"a FIFO commondir":        fifo(".git/commondir"),
		"a FIFO that git ignores by": func(t *testing.T, repo string) {
			fifo("f")(t, repo)
			writeFiles(t, repo, map[string]string{".git/config": "[core]\n\texcludesFile = f\n"})
		},
	}
}

var geminiTraps = map[string]trap{
	"a linked GEMINI.md below":     links("services/a/GEMINI.md", environFile),
	"a linked AGENTS.md below":     links("services/a/AGENTS.md", environFile),
	"a linked import":              texts(map[string]string{"GEMINI.md": "Read @./x first.\n"}, links("x", environFile)),
	"an import in a linked folder": texts(map[string]string{"GEMINI.md": "@./d/environ\n"}, links("d", "/proc/self")),
	"an import of an import": texts(map[string]string{"AGENTS.md": "@./services/x.md\n", "services/x.md": "@../y\n"},
		links("y", environFile)),
	"a FIFO below":       fifo("services/a/GEMINI.md"),
	"a FIFO import":      texts(map[string]string{"GEMINI.md": "@./x\n"}, fifo("x")),
	"a FIFO ignore file": fifo(".geminiignore"),
	"a FIFO agent":       fifo(".gemini/agents/a.md"),
	"a FIFO skill":       fifo(".gemini/skills/s/SKILL.md"),
	"a linked skill":     links(".agents/skills/s/SKILL.md", environFile),
	"a linked skills folder": texts(map[string]string{"../outside/s/SKILL.md": "---\nname: s\ndescription: " + canary + "\n---\n"},
		links(".gemini/skills", "../../outside")),
	"a device":    links("GEMINI.md", "/dev/zero"),
	"its input":   links("GEMINI.md", "/dev/stdin"),
	"a directory": texts(map[string]string{"GEMINI.md/x": "x", ".geminiignore/x": "x"}),
}

var codexTraps = map[string]trap{
	"a linked override": texts(map[string]string{"AGENTS.md": strings.Repeat("Be brief.\n", 2000)},
		links("AGENTS.override.md", environFile)),
	"a linked override above": links("services/AGENTS.override.md", environFile),
	"a FIFO skill":            fifo(".agents/skills/s/SKILL.md"),
	"a linked skill":          links(".agents/skills/s/SKILL.md", environFile),
	"a linked skills folder": texts(map[string]string{"../outside/s/SKILL.md": "---\nname: s\ndescription: " + canary + "\n---\n"},
		links(".agents/skills", "../../outside")),
	"a FIFO plugin": fifo(".codex-plugin/plugin.json"),
	"FIFO settings": fifo(".codex/config.toml"),
}

var claudeTraps = map[string]trap{
	"a linked CLAUDE.md below": links("services/a/CLAUDE.md", environFile),
	"a linked rule":            links(".claude/rules/r.md", environFile),
	"a linked import":          texts(map[string]string{"CLAUDE.md": "@x.md\n"}, links("x.md", environFile)),
	"a FIFO below":             fifo("services/a/CLAUDE.md"),
	"a FIFO skill":             fifo(".claude/skills/s/SKILL.md"),
	"a FIFO command":           fifo(".claude/commands/c.md"),
	"a FIFO agent":             fifo(".claude/agents/a.md"),
	"FIFO settings":            fifo(".claude/settings.json"),
	"FIFO tasks":               fifo(".claude/scheduled_tasks.json"),
}

// Files that a CLI reads implicitly, besides the context files at the root that bus-agent
// verify replaces, neither disclose a secret in the environment to the
// model or the workdir, nor block the run.
func TestHostileFilesReadImplicitly(t *testing.T) {
	t.Parallel()
	for agent, tt := range map[string]struct {
		setup setupFunc
		read  string // the tool that reads a file
		key   string // its argument
		traps map[string]trap
	}{
		"gemini": {newGemini, "read_file", "file_path", geminiTraps},
		"codex":  {newCodex, "", "", codexTraps},
		"claude": {newClaude, "Read", "file_path", claudeTraps},
	} {
		for _, traps := range []map[string]trap{tt.traps, gitTraps()} {
			for name, trap := range traps {
				t.Run(agent+"/"+name, func(t *testing.T) {
					t.Parallel()
					var file string
					w := tt.setup(t, func(r *modeltest.Request) modeltest.Reply {
						if tt.read == "" || len(r.ToolResults()) > 0 {
							return answer("done")
						}
						return modeltest.Reply{modeltest.ToolCall{Name: tt.read, Arguments: `{"` + tt.key + `":"` + file + `"}`}}
					}, layered())
					file = filepath.Join(w.repo, "services", "a", "main.go")
					w.env = append(w.env, "CANARY_TOKEN="+canary)
					trap(t, w.repo)
					args := append([]string{"run", "--format", "json", "--prompt", "-", "--agent", w.agent, "--model", w.modelID,
						"--access", "read", "--timeout", "90s", "--workdir", filepath.Join(w.repo, "services")}, w.codexArgs()...)
					if !strings.Contains(name, "above") {
						args[len(args)-len(w.codexArgs())-1] = w.repo
					}
					ctx, cancel := context.WithTimeout(t.Context(), runLimit)
					defer cancel()
					begun := time.Now()
					cmd, stdout, stderr := w.start(ctx, "hello", args...)
					_ = cmd.Wait()
					o := outcome{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode(), time.Since(begun)}
					t.Logf("exit code %d after %v\n%s", o.code, o.took.Round(time.Millisecond), clip(o.stderr))
					if o.code != 0 && o.code != 2 {
						t.Errorf("want an answer or a usage error: %v", o)
					}
					if n := len(w.model.Requests()); o.code == 2 && n > 0 {
						t.Errorf("the model got %d requests", n)
					}
					for _, r := range w.model.Requests() {
						if strings.Contains(string(r.Body), canary) {
							t.Errorf("request %s %s contains the secret", r.Method, r.Path)
						}
					}
					w.checkNotInFiles(w.repo, canary)
				})
			}
		}
	}
}
