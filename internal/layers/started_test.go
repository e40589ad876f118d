package layers

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// docs/security.md lists every program that bus-agent starts.
func TestStartedProgramsAreListed(t *testing.T) {
	t.Parallel()
	// The files that start programs, and the text of the page about what they start.
	listed := map[string]string{
		"runner/run.go":                       "the executable of the selected runtime",
		"runner/session.go":                   "the executable of the selected runtime",
		"runner/version.go":                   "CLI, for its version",
		"session/control/launch.go":           "itself, as the process that holds a session",
		"session/control/sink.go":             "the commands of the user's [hooks]",
		"session/tmux/server.go":              "tmux, which starts the CLI",
		"internal/commands/session/attach.go": "`session attach`",
		"internal/commands/mcp/mcp.go":        "`bus-agent-mcp`, next to bus-agent",
		"verify/hostile.go":                   "`git add`, `git status` and `git diff`",
		"internal/commands/runtimes/state.go": "with `-V`: `doctor`",
		"internal/unix/unix.go":               "", // for package control
		"internal/process/leader_darwin.go":   "", // for all others
		"internal/process/leader_linux.go":    "",
		"internal/process/lookpath.go":        "", // for session attach and mcp
		"internal/testuser/testuser.go":       "", // for tests
		"backendtest/agent.go":                "",
	}
	root := moduleRoot(t)
	page, err := os.ReadFile(filepath.Join(root, "docs", "security.md"))
	if err != nil {
		t.Fatal(err)
	}
	begin, _, _ := strings.Cut(string(page), "\n## ")
	found := map[string]bool{}
	for pkg := range productImports(t) {
		if rowOf(pkg) >= rowOf("internal/bench/corpus") {
			continue
		}
		for _, file := range productFiles(t, root, pkg) {
			if !startsPrograms(t, file) {
				continue
			}
			name := path.Join(pkg, filepath.Base(file))
			text, known := listed[name]
			if found[name] = true; !known {
				t.Errorf("%s starts a program: add it to docs/security.md and to this test", name)
			}
			if !strings.Contains(begin, text) {
				t.Errorf("docs/security.md lacks %q, which %s starts", text, name)
			}
		}
	}
	for name := range listed {
		if !found[name] && !strings.HasSuffix(name, "_darwin.go") {
			t.Errorf("%s starts no program", name)
		}
	}
}

// startsPrograms reports whether a file calls a function that starts a program.
func startsPrograms(t *testing.T, file string) bool {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	starters := map[string][]string{
		"process": {"Run", "Start", "StartDetached", "Exec"}, "exec": {"Command", "CommandContext"}, "os": {"StartProcess"},
		"syscall": {"Exec", "ForkExec", "StartProcess"}, "unix": {"Exec"},
	}
	found := false
	ast.Inspect(parsed, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			pkg, isName := s.X.(*ast.Ident)
			found = found || isName && slices.Contains(starters[pkg.Name], s.Sel.Name)
		}
		return !found
	})
	return found
}
