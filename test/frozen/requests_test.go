//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/runner"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/engine"
)

// A world is where requests are made: folders bin, home, repo and tmp below root.
type world struct {
	root    string
	rt      registry.Runtime
	stub    string
	environ []string
	req     agent.Request

	mu       sync.Mutex
	warnings []string
}

// newWorld makes a world in which the stub of rt performs p.
func newWorld(t *testing.T, rt registry.Runtime, p play) *world {
	t.Helper()
	root, err := os.MkdirTemp(filepath.Dir(stub), "world")
	if err != nil {
		t.Fatal(err)
	}
	w := &world{root: root, rt: rt, stub: filepath.Join(root, "bin", rt.Executables[0])}
	w.req = agent.Request{Runtime: rt.ID, Prompt: "Say hello.", Workdir: w.path("repo"), Timeout: time.Minute}
	w.environ = []string{"PATH=" + w.path("bin"), "HOME=" + w.path("home"), "TMPDIR=" + w.path("tmp"), "LANG=C.UTF-8", "IS_SANDBOX=1"}
	w.plays(t, p)
	write(t, w.path("bin/mcp-notes"), "", 0o755)
	write(t, w.path("repo/.git/HEAD"), "ref: refs/heads/main\n", 0o644)
	for _, dir := range []string{"repo/.git/objects", "repo/.git/refs", "repo/sub/deep", "tmp", "home", "more"} {
		if err := os.MkdirAll(w.path(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(stub, w.stub); err != nil {
		t.Fatal(err)
	}
	if rt.Home.Folder != "" {
		for _, login := range rt.Home.Logins {
			write(t, w.path("home", rt.Home.Folder, login), "{}\n", 0o600)
		}
	}
	return w
}

// plays makes the stub perform p from now on.
func (w *world) plays(t *testing.T, p play) {
	t.Helper()
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	write(t, w.stub+playSuffix, string(text), 0o600)
}

func (w *world) path(elements ...string) string {
	return filepath.Join(append([]string{w.root}, elements...)...)
}

// A row is a request that differs in something from that of newWorld.
type row struct {
	name string
	// once leaves the row out for sessions, which take the field as a run does.
	once   bool
	files  map[string]string // by their path below the root
	change func(w *world)
}

var (
	instructions = map[string]string{"repo/AGENTS.md": "Root rule.\n"}
	nested       = map[string]string{"repo/AGENTS.md": "Root rule.\n", "repo/sub/AGENTS.md": "Sub rule.\n", "repo/sub/deep/AGENTS.md": "Deep rule.\n"}
	userFiles    = map[string]string{
		"home/.codex/config.toml":           "model = \"user-model\"\n[projects.\"/x\"]\ntrust_level = \"trusted\"\n",
		"home/.claude/settings.json":        `{"model":"user-model","hooks":{"Stop":[{"hooks":[{"type":"command","command":"true"}]}]}}` + "\n",
		"home/.claude.json":                 `{"mcpServers":{}}` + "\n",
		"home/.gemini/settings.json":        `{"model":{"name":"user-model"}}` + "\n",
		"home/.cursor/cli-config.json":      `{"version":1}` + "\n",
		"home/.qwen/settings.json":          `{"model":{"name":"user-model"}}` + "\n",
		"home/.config/opencode/config.json": `{"model":"user/model"}` + "\n",
		"home/.copilot/config.json":         `{"model":"user-model"}` + "\n",
		"home/.factory/settings.json":       `{"model":"user-model"}` + "\n",
		"home/.pi/agent/settings.json":      `{"model":"user-model"}` + "\n",
	}
	repositoryFiles = map[string]string{
		"repo/.codex/config.toml":     "model = \"repo-model\"\n",
		"repo/.claude/settings.json":  `{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"true"}]}]}}` + "\n",
		"repo/.gemini/settings.json":  `{"mcpServers":{"x":{"command":"true"}}}` + "\n",
		"repo/.cursor/mcp.json":       `{"mcpServers":{"x":{"command":"true"}}}` + "\n",
		"repo/.qwen/settings.json":    `{"mcpServers":{"x":{"command":"true"}}}` + "\n",
		"repo/.factory/settings.json": `{"hooks":{}}` + "\n",
		"repo/.mcp.json":              `{"mcpServers":{"x":{"command":"true"}}}` + "\n",
		"repo/.env":                   "A=b\n",
		"repo/opencode.json":          `{"mcp":{"x":{"type":"local","command":["true"]}}}` + "\n",
	}
	stdioServer = agent.MCPServer{Name: "notes", Command: "mcp-notes", Args: []string{"--read"}, Env: map[string]string{"NOTES_KEY": "notes-secret-1"}}
	httpServer  = agent.MCPServer{Name: "docs", URL: "https://example.com/mcp", Headers: map[string]string{"X-Key": "docs-secret-1"}}
	png         = agent.Attachment{Name: "a.png", Data: []byte("\x89PNG\r\n\x1a\n\x00")}
	pdf         = agent.Attachment{Name: "a.pdf", Data: []byte("%PDF-1.4\n\x00")}
	text        = agent.Attachment{Name: "a.txt", Data: []byte("some text\n")}
	schema      = json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}`)
)

// rows are the requests, of which the first is the one that the others are compared with.
var rows = []row{
	{name: "base", change: func(w *world) {}},
	{name: "prompt with a slash", change: func(w *world) { w.req.Prompt = "/help me" }},
	{name: "template", once: true, change: func(w *world) {
		w.req.Prompt, w.req.Template, w.req.Vars = "", "Say {{WORD}}.", map[string]string{"WORD": "-- 'a b'"}
	}},
	{name: "prompt with two lines", once: true, change: func(w *world) { w.req.Prompt = "--flag\n{\"a\": \"ä\"}\n" }},
	{name: "access read", change: func(w *world) { w.req.Access = agent.AccessRead }},
	{name: "access full", change: func(w *world) { w.req.Access = agent.AccessFull }},
	{name: "model", change: func(w *world) { w.req.Model = "m-1" }},
	{name: "model auto", once: true, change: func(w *world) { w.req.Model = "auto" }},
	{name: "effort minimal", once: true, change: func(w *world) { w.req.ReasoningEffort = "minimal" }},
	{name: "effort high", change: func(w *world) { w.req.ReasoningEffort = "high" }},
	{name: "model, effort xhigh", once: true, change: func(w *world) { w.req.Model, w.req.ReasoningEffort = "m-1", "xhigh" }},
	{name: "verbosity low", once: true, change: func(w *world) { w.req.Verbosity = "low" }},
	{name: "system prompt", change: func(w *world) { w.req.AppendSystemPrompt = "Be brief.\n" }},
	{name: "resume", change: func(w *world) { w.req.Resume = resumed }},
	{name: "resume no session", once: true, change: func(w *world) { w.req.Resume = "--last" }},
	{name: "resume, model, access full", change: func(w *world) { w.req.Resume, w.req.Model, w.req.Access = resumed, "m-1", agent.AccessFull }},
	{name: "resume, AGENTS.md", files: instructions, change: func(w *world) { w.req.Resume = resumed }},
	{name: "continue", once: true, change: func(w *world) { w.req.Continue = true }},
	{name: "continue, access read", once: true, change: func(w *world) { w.req.Continue, w.req.Access = true, agent.AccessRead }},
	{name: "schema", change: func(w *world) { w.req.Schema = schema }},
	{name: "schema of an unusual kind", once: true, change: func(w *world) { w.req.Schema = json.RawMessage(`{"type":"array","items":{"not":{}}}`) }},
	{name: "MCP server", change: func(w *world) { w.req.MCPServers = []agent.MCPServer{stdioServer} }},
	{name: "MCP servers, access read", once: true, change: func(w *world) {
		w.req.MCPServers, w.req.Access = []agent.MCPServer{stdioServer, httpServer}, agent.AccessRead
	}},
	{name: "MCP server at an address", change: func(w *world) { w.req.MCPServers = []agent.MCPServer{httpServer} }},
	{name: "attached image", change: func(w *world) { w.req.Attachments = []agent.Attachment{png} }},
	{name: "attached PDF", once: true, change: func(w *world) { w.req.Attachments = []agent.Attachment{pdf} }},
	{name: "attached text", change: func(w *world) { w.req.Attachments = []agent.Attachment{text} }},
	{name: "AGENTS.md", files: instructions, change: func(w *world) {}},
	{name: "AGENTS.md nested", files: nested, change: func(w *world) { w.req.Workdir = w.path("repo/sub/deep") }},
	{name: "AGENTS.md too large", once: true, files: map[string]string{"repo/AGENTS.md": strings.Repeat("A rule of some length.\n", 13_000)}, change: func(w *world) {}},
	{name: "AGENTS.md required, missing", once: true, change: func(w *world) { w.req.RequireInstructions = true }},
	{name: "AGENTS.md, system prompt, schema", once: true, files: instructions, change: func(w *world) {
		w.req.AppendSystemPrompt, w.req.Schema = "Be brief.\n", schema
	}},
	{name: "repository configuration", files: repositoryFiles, change: func(w *world) {}},
	{name: "repository configuration, trusted", files: repositoryFiles, change: func(w *world) { w.req.TrustWorkspace = true }},
	{name: "trusted, access full", once: true, change: func(w *world) { w.req.TrustWorkspace, w.req.Access = true, agent.AccessFull }},
	{name: "user configuration", files: userFiles, change: func(w *world) {}},
	{name: "user configuration on", files: userFiles, change: func(w *world) { w.req.UserConfig = "on" }},
	{name: "user configuration off", files: userFiles, change: func(w *world) { w.req.UserConfig = "off" }},
	{name: "another account", change: func(w *world) {
		w.req.Env = []string{w.rt.Home.Env + "=" + w.path("more")}
		if w.rt.Home.Env == "" {
			w.req.Env = []string{"HOME=" + w.path("more")}
		}
	}},
	{name: "variables", once: true, change: func(w *world) { w.req.Env = []string{"NAME=a value", "API_TOKEN=secret-token-1"} }},
	{name: "arguments", change: func(w *world) { w.req.Args = []string{"--extra", "a b"} }},
	{name: "allowed tools", once: true, change: func(w *world) { w.req.AllowTools = []string{"read_file", "Grep"} }},
	{name: "denied tools", once: true, change: func(w *world) { w.req.DenyTools = []string{"read_file", "Grep"} }},
	{name: "allowed commands", once: true, change: func(w *world) { w.req.AllowCommands = []string{"go test"} }},
	{name: "added folder", change: func(w *world) { w.req.AddDirs = []string{w.path("more")} }},
	{name: "turns", once: true, change: func(w *world) { w.req.MaxTurns = 3 }},
	{name: "idle timeout", once: true, change: func(w *world) { w.req.IdleTimeout = 50 * time.Second }},
	{name: "crowded environment", change: func(w *world) {
		for _, rt := range registry.Default().All() {
			for _, name := range slices.Concat(rt.NestedEnv, rt.TokenEnv, rt.ProviderEnv) {
				w.environ = append(w.environ, name+"=value-of-"+name)
			}
		}
		for _, name := range []string{"BUS_AGENT_MODEL", "BUS_AGENT_USER_CONFIG", "CURSOR_AGENT_MODEL", "GIT_DIR", "GT_SESSION_ID", "OTEL_SERVICE_NAME"} {
			w.environ = append(w.environ, name+"=off")
		}
	}},
}

// ways are the ways to use an agent.
var ways = map[string]func(t *testing.T, w *world) (*seen, error){
	"run": func(t *testing.T, w *world) (*seen, error) {
		_, err := w.runner(nil).Run(t.Context(), w.req, agent.Output{})
		return w.noted(t), err
	},
	"session": func(t *testing.T, w *world) (*seen, error) {
		s, err := w.runner(nil).StartSession(t.Context(), w.req, session.Options{})
		if err != nil {
			return nil, err // the stub may have been ended before it noted anything
		}
		<-s.Ended()
		s.Stop(context.Background(), "")
		return w.noted(t), nil
	},
	"terminal": func(t *testing.T, w *world) (got *seen, err error) {
		stop := errors.New("the terminal is not opened")
		_, err = w.runner(func(_ context.Context, p engine.Program, _ engine.Start) (engine.Engine, engine.Process, error) {
			got = &seen{Args: p.Args, Env: p.Env, Dir: w.req.Workdir, Tree: tree(w.root)}
			return nil, nil, stop
		}).StartSession(t.Context(), w.req, session.Options{Mode: session.ModeTmux})
		return got, err
	},
}

func (w *world) runner(terminal engine.OpenTerminal) *runner.Runner {
	return &runner.Runner{Environ: w.environ, OpenTerminal: terminal, Warn: func(line string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.warnings = append(w.warnings, "warning: "+line)
	}}
}

// noted returns how the stub was started; nil if it was not.
func (w *world) noted(t *testing.T) *seen {
	t.Helper()
	note, err := os.ReadFile(w.stub + seenSuffix)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	s := new(seen)
	if err == nil {
		err = json.Unmarshal(note, s)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// shown is shown for content with paths below the root.
func (w *world) shown(label, content string) []string {
	return shown(label, neutral(content, w.root))
}

// describe returns s as lines. before are the files before the start.
func (w *world) describe(s *seen, before map[string][]byte) (lines []string) {
	for _, arg := range s.Args {
		lines = append(lines, w.shown("argv", arg+"\n")...)
	}
	lines = append(lines, "dir: "+s.Dir)
	now := variables(s.Env)
	for _, name := range sorted(now) {
		if old, ok := variables(w.environ)[name]; !ok || old != now[name] {
			lines = append(lines, w.shown("env", name+"="+now[name]+"\n")...)
		}
	}
	for _, name := range sorted(variables(w.environ)) {
		if _, ok := now[name]; !ok {
			lines = append(lines, "env without "+name)
		}
	}
	if s.Stdin != nil {
		lines = append(lines, w.shown("stdin", string(s.Stdin))...)
	}
	for i, content := range s.Files {
		if len(content) > 0 {
			lines = append(lines, w.shown(fmt.Sprintf("fd %d", 3+i), string(content))...)
		}
	}
	lines = append(lines, w.differences("file", before, s.Tree)...)
	return lines
}

func variables(environ []string) map[string]string {
	m := map[string]string{}
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		m[name] = value
	}
	return m
}

// request makes the request of r in a way and returns what happened.
func (w *world) request(t *testing.T, way string, r row) []string {
	t.Helper()
	clean, environ, req := tree(w.root), w.environ, w.req
	for name, content := range r.files {
		write(t, w.path(name), content, 0o644)
	}
	r.change(w)
	before := tree(w.root)
	s, err := ways[way](t, w)
	var lines []string
	if s != nil {
		lines = w.describe(s, before)
	}
	lines = append(lines, w.warnings...)
	if s == nil {
		lines = append(lines, fmt.Sprintf("refused (%s): %v", agent.KindOf(err), err))
	}
	after := tree(w.root)
	lines = append(lines, w.differences("left", before, after)...)
	for i, line := range lines {
		lines[i] = neutral(line, w.root)
	}
	w.environ, w.req, w.warnings = environ, req, nil
	w.restore(t, clean, after)
	return lines
}

// restore makes the files after as clean again.
func (w *world) restore(t *testing.T, clean, after map[string][]byte) {
	t.Helper()
	for _, name := range slices.Backward(sorted(after)) {
		old, ok := clean[name]
		var err error
		if !ok {
			err = os.Remove(name)
		} else if !bytes.Equal(old, after[name]) {
			err = os.WriteFile(name, old, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(w.stub + seenSuffix); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	if now := tree(w.root); len(now) != len(clean) {
		t.Fatalf("the files %q became %q", sorted(clean), sorted(now))
	}
}

// differences returns the files that are new or changed after as lines.
func (w *world) differences(label string, before, after map[string][]byte) (lines []string) {
	for _, name := range sorted(after) {
		if old, ok := before[name]; !ok || !bytes.Equal(old, after[name]) {
			lines = append(lines, w.shown(label+" "+name, string(after[name]))...)
		}
	}
	for _, name := range sorted(before) {
		if _, ok := after[name]; !ok {
			lines = append(lines, label+" without "+name)
		}
	}
	return lines
}

// TestRequests compares how each CLI is started: arguments, environment, standard input,
// inherited files, and the files that exist then and afterwards. The first request is shown
// whole, the others as differences to it.
func TestRequests(t *testing.T) {
	t.Parallel()
	for _, rt := range registry.Default().All() {
		for way := range ways {
			if way == "run" && rt.Run.Command == nil || way == "session" && rt.Session == nil || way == "terminal" && rt.Terminal == nil {
				continue
			}
			t.Run(rt.ID+"/"+way, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, rt, play{Session: way == "session"})
				var lines, base []string
				for i, r := range rows {
					if way == "session" && r.once {
						continue
					}
					got := w.request(t, way, r)
					lines = append(lines, "== "+r.name)
					refused := slices.ContainsFunc(got, func(line string) bool { return strings.HasPrefix(line, "refused") })
					if i == 0 {
						base = got
					} else if !refused {
						got = changes(base, got)
					}
					lines = append(lines, got...)
				}
				golden(t, filepath.Join("requests", rt.ID+"."+way+".txt"), lines)
			})
		}
	}
}
