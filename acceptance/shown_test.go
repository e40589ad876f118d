//go:build acceptance

package acceptance

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/busdk/bus-agent/internal/testpages"
	"github.com/busdk/bus-agent/modeltest"
)

// Every command that a page shows works as it is shown, in order, with the real CLIs.
func TestShownCommands(t *testing.T) {
	t.Parallel()
	for _, page := range testpages.Pages() {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			commands, err := testpages.Commands(filepath.Join("..", filepath.FromSlash(page)))
			if err != nil || len(commands) == 0 {
				t.Fatal(commands, err)
			}
			r := newPageReader(t, page)
			// A reader who looks at records has some.
			r.run("bus-agent run --record --text hello")
			for _, command := range commands {
				for _, before := range testpages.Before(command) {
					r.run(before)
				}
				r.run(command)
			}
		})
	}
}

// A pageReader runs what a page shows.
type pageReader struct {
	*fixture
	bin string
}

// newPageReader returns the fixture of a reader who has every CLI and the files that the
// pages name.
func newPageReader(t *testing.T, page string) *pageReader {
	t.Helper()
	definition, err := os.ReadFile("testdata/qwen.json")
	if err != nil {
		t.Fatal(err)
	}
	files, err := testpages.Files(filepath.Join("..", "docs"))
	if err != nil {
		t.Fatal(err)
	}
	work := map[string]string{
		"qwen.json": string(definition), "README.md": "# a project\n",
		"count.json": `{"type":"object","properties":{"files":{"type":"integer"}},"required":["files"],"additionalProperties":false}`,
		"run.ndjson": `{"type":"thread.started","thread_id":"t"}` + "\n",
	}
	for name, text := range files {
		if name, ok := strings.CutPrefix(name, "work/"); ok {
			work[name] = text
		}
	}
	w := newOnboardedClaude(t, pageScript(), work)
	w.env = append(w.env, "GOOGLE_GEMINI_BASE_URL="+w.model.GeminiURL(), "GEMINI_API_KEY=sk-acceptance", "TERM=xterm-256color")
	if strings.Contains(page, "adding") { // its runtime is configured by variables that others read too
		offline := filepath.Join(filepath.Dir(w.home), "offline.cjs")
		writeFiles(t, filepath.Dir(offline), map[string]string{filepath.Base(offline): offlineModule})
		w.env = append(w.env, "OPENAI_BASE_URL="+w.model.OpenAIURL(), "OPENAI_API_KEY=sk-acceptance", "NODE_OPTIONS=--require="+offline)
	}
	r := &pageReader{w, filepath.Join(filepath.Dir(w.home), "bin")}
	writeFiles(t, filepath.Dir(w.home), map[string]string{
		"home/.gemini/settings.json": geminiSettings,
		// Codex reads its provider from arguments or the user's file, which runs leave out.
		"bin/codex":                           fmt.Sprintf("#!/bin/sh\nexec %s -c model_provider=fake -c 'model_providers.fake={name=\"fake\",base_url=%q,wire_api=\"responses\",env_key=\"FAKE_API_KEY\"}' \"$@\"\n", codex, w.model.OpenAIURL()),
		"home/.config/fish/completions/.keep": "",
		"home/policies/build.json":            files["home/policies/build.json"],
	})
	if err := os.Symlink(w.busAgent(), filepath.Join(r.bin, "bus-agent")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // if the test failed
		cmd := r.command(context.Background(), "bus-agent session list --format json | grep -o '\"session_id\": \"[^\"]*' | cut -d'\"' -f4 | xargs -r -n1 bus-agent session stop")
		_ = cmd.Run()
	})
	return r
}

// pageScript is a model that runs a command, which needs approval, to run the tests, and
// asks the user when it should.
func pageScript() modeltest.Script {
	var mu sync.Mutex
	tested, asked := false, false
	return func(r *modeltest.Request) modeltest.Reply {
		mu.Lock()
		defer mu.Unlock()
		switch last := lastPrompt(r); {
		case strings.Contains(last, "List the defects"):
			return answer(`{"defects":[]}`)
		case strings.Contains(last, "Count the Go files."):
			for _, tool := range r.Tools() {
				if tool == "StructuredOutput" {
					return modeltest.Reply{modeltest.ToolCall{Name: tool, Arguments: `{"files":12}`}}
				}
			}
			return answer(`{"files":12}`)
		case strings.Contains(last, testpages.AskOne) && !asked:
			asked = true
			return modeltest.Reply{modeltest.ToolCall{Name: "AskUserQuestion", Arguments: `{"questions":[{"question":"Which way?","header":"Way","multiSelect":false,` +
				`"options":[{"label":"left","description":"shorter"},{"label":"right","description":"longer"}]}]}`}}
		case strings.Contains(last, "Run the tests") && !tested && len(r.Tools()) > 0:
			tested = true
			return modeltest.Reply{bash("sh -c 'echo tested > tested'")}
		}
		return answer("done")
	}
}

func (r *pageReader) command(ctx context.Context, command string, more ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "/bin/bash", "-c", command)
	if len(more) > 0 {
		cmd = exec.CommandContext(ctx, more[0], append(more[1:], command)...)
	}
	cmd.Dir, cmd.WaitDelay = r.repo, 10*time.Second
	for _, entry := range r.environ() {
		if path, ok := strings.CutPrefix(entry, "PATH="); ok {
			entry = "PATH=" + r.bin + ":" + path
		}
		cmd.Env = append(cmd.Env, entry)
	}
	return cmd
}

// run runs a command, which must succeed.
func (r *pageReader) run(command string) {
	r.t.Helper()
	limit := r.limit
	if strings.HasPrefix(command, "bus-agent verify") {
		limit *= 3 // it runs the CLI many times, here next to other tests
	}
	ctx, cancel := context.WithTimeout(r.t.Context(), limit)
	defer cancel()
	if testpages.NeedsTerminal(command) {
		r.runInTerminal(ctx, command)
		return
	}
	if out, err := r.command(ctx, command).CombinedOutput(); err != nil {
		r.t.Errorf("%s: %v\n%s", command, err, out)
	}
}

// runInTerminal runs a command in a terminal and leaves it by its keys.
func (r *pageReader) runInTerminal(ctx context.Context, command string) {
	r.t.Helper()
	keys := "\x04" // Ctrl-D
	if strings.Contains(command, "attach") {
		keys = "\x02d"
	}
	cmd := r.command(ctx, command, "script", "-qe", "/dev/null", "-c")
	var shown lockedBuffer
	cmd.Stdout, cmd.Stderr = &shown, &shown
	input, err := cmd.StdinPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	for again := time.NewTicker(500 * time.Millisecond); ; {
		select {
		case err := <-done:
			again.Stop()
			if err != nil {
				r.t.Errorf("%s: %v\n%s", command, err, shown.String())
			}
			return
		case <-again.C:
			if strings.Contains(shown.String(), "\x1b[?") || strings.Contains(shown.String(), "> ") {
				_, _ = io.WriteString(input, keys) // it may have ended
			}
		}
	}
}

// A lockedBuffer is a buffer for concurrent use.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
