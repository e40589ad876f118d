package main

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/internal/testneed"
	"github.com/busdk/bus-agent/internal/testpages"
)

// Every command that the pages and the help show works as it is shown, in a
// shell, with a fake agent in place of each runtime. Together they are one
// session, in the order of the page.
func TestShownCommandsRun(t *testing.T) {
	t.Parallel()
	bash := testneed.Program(t, "bash")
	for _, page := range testpages.Pages() {
		if page == "docs/structured-output.md" {
			continue // a fake agent knows no answer to its schema; package acceptance runs it
		}
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			commands := shownCommands(t, filepath.Join("..", "..", filepath.FromSlash(page)))
			if len(commands) < 3 {
				t.Fatalf("only %d commands found: %q", len(commands), commands)
			}
			s := newReader(t)
			// A reader who looks at records has some.
			prepared := []string{`bus-agent run --record --text hello`}
			for _, command := range commands {
				prepared = append(append(prepared, testpages.Before(command)...), command)
			}
			for _, command := range prepared {
				c := exec.CommandContext(t.Context(), bash, "-c", command)
				args, plain := plainWords(command)
				if plain {
					c = s.command(args[1:]...)
				}
				c.Env = append(s.command().Env, "PATH="+s.path("bin")+":"+os.Getenv("PATH"))
				c.Dir = s.path("work")
				if plain {
					if out, code := output(c); code != 0 {
						t.Errorf("%s: exit code %d\n%s", command, code, out)
					}
				} else if out, err := c.CombinedOutput(); err != nil {
					t.Errorf("%s: %v\n%s", command, err, out)
				}
			}
		})
	}
}

var (
	plainCommand = regexp.MustCompile(`^bus-agent( +([\w./:=,@%+-]|"[^"'$\x60\\!]*"|'[^'"]*')+)*$`)
	plainWord    = regexp.MustCompile(`([\w./:=,@%+-]|"[^"]*"|'[^']*')+`)
)

// plainWords returns the words of a call of bus-agent in which a shell would only remove
// quotes, so that it can run without one.
func plainWords(command string) (words []string, ok bool) {
	if !plainCommand.MatchString(command) {
		return nil, false
	}
	for _, word := range plainWord.FindAllString(command, -1) {
		words = append(words, strings.NewReplacer(`"`, "", "'", "").Replace(word))
	}
	return words, true
}

// newReader returns the sandbox of a reader of the pages, with the agents and the files
// that they name.
func newReader(t *testing.T) *sandbox {
	t.Helper()
	s := newSandbox(t, "codex", "")
	if err := link(s.path("bin"), "claude"); err != nil {
		t.Fatal(err)
	}
	definition, err := os.ReadFile(filepath.Join("..", "..", "acceptance", "testdata", "qwen.json"))
	if err != nil {
		t.Fatal(err)
	}
	files, err := testpages.Files(filepath.Join("..", "..", "docs"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(s.path("home/policies"), 0o755); err != nil {
		t.Fatal(err)
	}
	maps.Copy(files, map[string]string{
		// Its module tests the program itself.
		"bin/bus-agent-mcp": "#!/bin/sh\ncat >/dev/null\n",
		"bin/qwen":          "#!/bin/sh\ncat >/dev/null && echo hello\n",
		"work/qwen.json":    string(definition),
		"bin/codex.play": `out {"type":"thread.started","thread_id":"t"}
out {"type":"item.completed","item":{"id":"i","type":"agent_message","text":"{\"defects\":[]}"}}
out {"type":"turn.completed","usage":{"input_tokens":1,"output_tokens":1}}
`,
		"bin/claude.play": "converse\n",
		"work/run.ndjson": `{"type":"thread.started","thread_id":"t"}` + "\n",
	})
	for name, text := range files {
		mode := os.FileMode(0o644)
		if strings.HasPrefix(text, "#!") {
			mode = 0o755
		}
		if err := os.WriteFile(s.path(name), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(s.path("home/.config/fish/completions"), 0o755); err != nil {
		t.Fatal(err)
	}
	return s
}

// shownCommands returns the commands of a page.
func shownCommands(t *testing.T, page string) []string {
	t.Helper()
	commands, err := testpages.Commands(page)
	if err != nil {
		t.Fatal(err)
	}
	// A fake agent draws nothing in a terminal, and keeps no promise: package acceptance
	// verifies the real ones.
	return slices.DeleteFunc(commands, func(command string) bool {
		return testpages.NeedsTerminal(command) || strings.Contains(command, "--mode tmux") || strings.Contains(command, "bus-agent verify")
	})
}
