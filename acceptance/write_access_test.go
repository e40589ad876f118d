//go:build acceptance

package acceptance

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/modeltest"
	"github.com/busdk/bus-agent/session"
)

// A writingCLI is a CLI whose model tries to write files.
type writingCLI struct {
	setup setupFunc
	// write returns a tool call that writes a new file.
	write func(path string) modeltest.ToolCall
	// home is a file in the user's home that the CLI reads.
	home string
}

func writingCLIs() map[string]writingCLI {
	tool := func(name, input string) func(string) modeltest.ToolCall {
		return func(path string) modeltest.ToolCall {
			return modeltest.ToolCall{Name: name, Arguments: fmt.Sprintf(input, path)}
		}
	}
	return map[string]writingCLI{
		"gemini": {newGemini, tool("write_file", `{"file_path":%q,"content":"written"}`), ".gemini/GEMINI.md"},
		"claude": {newClaude, tool("Write", `{"file_path":%q,"content":"written"}`), ".claude/CLAUDE.md"},
		"codex": {newCodex, func(path string) modeltest.ToolCall {
			return execCommand(map[string]any{"cmd": fmt.Sprintf("mkdir -p %q; echo written > %q", filepath.Dir(path), path)})
		}, ".codex/AGENTS.md"},
	}
}

// newHostileTree creates links and files in and around the repository. It returns the
// files that the model tries to write: those permitted by write access, and others.
func newHostileTree(t *testing.T, w *fixture, home string) (inside, others []string) {
	t.Helper()
	root := filepath.Dir(w.repo)
	outside := filepath.Join(root, "outside")
	writeFiles(t, outside, map[string]string{"file": "theirs"})
	writeFiles(t, w.home, map[string]string{home: "remember me", "notes": "theirs"})
	writeFiles(t, w.repo, map[string]string{"sub/file": "x", ".gitignore": "made*\n.gemini/bus\n"})
	for name, target := range map[string]string{
		"out": outside, "up": "..", "dangling": filepath.Join(outside, "dangling"), "git": ".git", "in": "sub",
	} {
		if err := os.Symlink(target, filepath.Join(w.repo, name)); err != nil {
			t.Fatal(err)
		}
	}
	w.commit("links")
	at := func(names ...string) (paths []string) {
		for _, name := range names {
			paths = append(paths, w.repo+"/"+name)
		}
		return paths
	}
	// A bare repository, and a hard link to a file outside.
	writeFiles(t, w.repo, map[string]string{"bare/HEAD": "ref: refs/heads/main", "bare/objects/x": "", "bare/refs/x": ""})
	if err := os.Link(filepath.Join(outside, "file"), filepath.Join(w.repo, "hard")); err != nil {
		t.Fatal(err)
	}
	return at("made", "made-folder/made", "in/made", "sub/../made-by-dots"),
		append(at("../outside/dots", "out/link", "up/outside/up", "dangling", "out/../made-above", ".git/hooks/pre-commit", "git/hooks/post-commit", ".git/made"),
			filepath.Join(outside, "absolute"), filepath.Join(w.home, home), filepath.Join(w.home, ".bash_profile"),
			filepath.Join(w.home, ".gemini/settings.json"), filepath.Join(w.home, ".claude/settings.json"), filepath.Join(w.home, ".claude/commands/made.md"), filepath.Join(w.home, ".codex/config.toml"))
}

// protectedFiles returns the files that no model may change.
func protectedFiles(t *testing.T, w *fixture) map[string]string {
	t.Helper()
	files := map[string]string{}
	root := filepath.Dir(w.repo)
	for _, dir := range []string{filepath.Join(root, "outside"), w.home, filepath.Join(w.repo, ".git", "hooks"), filepath.Join(w.repo, "bare")} {
		err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			data, err := os.ReadFile(name)
			for _, text := range []string{"written", "remember me", "theirs"} {
				if strings.Contains(string(data), text) && len(data) < 100 {
					files[strings.TrimPrefix(name, root)] = string(data)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(files) == 0 {
		t.Fatal("no protected files")
	}
	return files
}

// attempts returns a script that calls write for each path and then answers.
func attempts(paths func() []string, write func(string) modeltest.ToolCall) modeltest.Script {
	return func(r *modeltest.Request) modeltest.Reply {
		list := paths()
		if n := len(r.ToolResults()); n < len(list) {
			path := list[n]
			if strings.Contains(path, "*") { // in a private home, whose name is random
				if found, _ := filepath.Glob(path); len(found) > 0 {
					path = found[0]
				}
			}
			return modeltest.Reply{write(path), turnUsage}
		}
		return modeltest.Reply{modeltest.Text{"done"}, turnUsage}
	}
}

// With write access, no model writes outside the workdir, or files that the user's git
// executes, without approval.
func TestHostileEditsEndAtTheWorkdir(t *testing.T) {
	t.Parallel()
	for name, cli := range writingCLIs() {
		for _, kind := range []string{"run", "session", "trusted session"} {
			t.Run(name+" "+kind, func(t *testing.T) {
				t.Parallel()
				var paths []string
				w := cli.setup(t, attempts(func() []string { return paths }, cli.write), nil)
				inside, others := newHostileTree(t, w, cli.home)
				if name == "gemini" {
					others = append(others, filepath.Join(w.repo, ".gemini/bus/*/.gemini/GEMINI.md"))
				}
				if name == "codex" && kind != "trusted session" {
					others = append(others, filepath.Join(w.repo, ".codex/config.toml"), filepath.Join(w.repo, ".agents/made"))
				}
				if kind != "run" && name != "codex" { // Codex has a sandbox instead
					for _, name := range []string{".mcp.json", ".claude/made.json", "sub/.gemini/made.json", ".cursor/hooks.json", "bare/config", "sub/HEAD", "hard"} {
						others = append(others, filepath.Join(w.repo, name))
					}
				}
				paths = append(append(paths, inside...), others...)
				before := protectedFiles(t, w)
				var mu sync.Mutex
				var asked []string
				if kind == "run" {
					report, o := w.run("try", "--access", "write")
					w.wantAnswer("done", report, o)
				} else {
					d := w.startSession(session.Options{Approve: func(_ context.Context, a session.Approval) session.Decision {
						mu.Lock()
						defer mu.Unlock()
						if a.Tool != nil {
							asked = append(asked, string(a.Tool.Input))
						}
						return session.Decline
					}}, func(r *agent.Request) { r.Access, r.TrustWorkspace = agent.AccessWrite, kind == "trusted session" })
					d.sendWant("try", "done")
					d.session.Stop(t.Context(), "")
				}
				if diff := cmp.Diff(before, protectedFiles(t, w)); diff != "" {
					t.Errorf("(-before +after):\n%s", diff)
				}
				for _, path := range others {
					if data, err := os.ReadFile(path); err == nil && strings.Contains(string(data), "written") {
						t.Errorf("%s was written", path)
					}
				}
				for _, path := range inside {
					if data, err := os.ReadFile(path); err != nil || strings.TrimSpace(string(data)) != "written" {
						t.Errorf("%s: %q, %v", path, data, err)
					}
				}
				requests := w.model.ModelRequests()
				for i, result := range requests[len(requests)-1].ToolResults() {
					if i < len(paths) {
						t.Logf("%s: %s", strings.TrimPrefix(paths[i], filepath.Dir(w.repo)), clip(result.Output))
					}
				}
				list, _ := json.MarshalIndent(asked, "", " ")
				t.Logf("approval requests: %s", list)
			})
		}
	}
}

// An edit accepted for the session covers that file only.
func TestAcceptForSessionCoversOneFile(t *testing.T) {
	t.Parallel()
	for name, cli := range writingCLIs() {
		if name == "codex" { // its approval requests cover the files of a patch
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var paths []string
			w := cli.setup(t, attempts(func() []string { return paths }, cli.write), nil)
			writeFiles(t, w.home, map[string]string{".gemini/GEMINI.md": "remember me"})
			paths = []string{w.repo + "/.mcp.json", w.repo + "/.mcp.json", w.repo + "/sub/.mcp.json", filepath.Join(w.home, ".gemini/GEMINI.md")}
			if name == "claude" { // it does not overwrite files it has not read
				paths[3] = filepath.Join(w.home, ".bash_profile")
			}
			var mu sync.Mutex
			var asked []string
			d := w.startSession(session.Options{Approve: func(_ context.Context, a session.Approval) session.Decision {
				mu.Lock()
				defer mu.Unlock()
				asked = append(asked, string(a.Tool.Input))
				if len(asked) == 1 {
					return session.AcceptForSession
				}
				return session.Decline
			}}, withAccess(agent.AccessWrite))
			d.sendWant("try", "done")
			d.session.Stop(t.Context(), "")
			if len(asked) != 3 {
				t.Errorf("approval requests %q", asked)
			}
			for i, path := range paths {
				if data, _ := os.ReadFile(path); strings.Contains(string(data), "written") != (i < 2) { // a missing file is empty
					t.Errorf("%s holds %q", path, data)
				}
			}
		})
	}
}
