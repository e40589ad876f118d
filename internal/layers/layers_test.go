package layers

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/busdk/bus-agent"

// rows lists the packages bottom up. A package may import packages of earlier
// rows only.
var rows = []struct{ packages []string }{
	{packages: []string{"jsonline", "internal/unix", "internal/testneed", "internal/testpages", "internal/testuser", "internal/testwait"}},
	{packages: []string{"agent"}},
	{packages: []string{"internal/statefile"}},
	{packages: []string{"render", "internal/capture", "internal/process", "internal/tree"}},
	{packages: []string{"formatters", "instructions", "internal/gitenv"}},
	{packages: []string{"session/engine"}},
	{packages: []string{"session/jsonrpc", "session/policy"}},
	{packages: []string{"session", "session/acp", "session/streamjson", "appserver"}},
	{packages: []string{"session/sessiontest"}},
	{packages: []string{"registry"}},
	{packages: []string{"registry/described", "backends/rest"}},
	{packages: []string{"runner", "backends/*"}},
	{packages: []string{"backends/all", "backends/more", "backendtest", "modeltest", "preferences", "runs", "structured", "fallback", "session/tmux"}},
	{packages: []string{"runs/*", "session/control", "verify"}},
	{packages: []string{"verify/targets", "delegation", "session/acpagent"}},
	{packages: []string{"internal/commands/cmdline"}},
	{packages: []string{"internal/commands/run"}},
	{packages: []string{"internal/commands/settings"}},
	{packages: []string{"internal/commands/runtimes"}},
	{packages: []string{"internal/commands/mcp", "internal/commands/runs", "internal/commands/session"}},
	{packages: []string{"internal/commands"}},
	{packages: []string{"command"}},
	{packages: []string{"cmd/*"}},
	{packages: []string{"internal/bench/corpus", "internal/soak"}},
	{packages: []string{"internal/layers", "internal/testreport", "internal/typecheck", "internal/bench", "internal/bench/*", "internal/canary", "internal/demo", "internal/demo/*", "internal/soak/*", "acceptance", "test/frozen"}},
}

// forbidden lists what packages up to the runner must not import.
var forbidden = []string{"net/http", "net", "github.com/busdk/bus-preferences"}

func rowOf(pkg string) int {
	for i, row := range rows {
		if slices.Contains(row.packages, pkg) {
			return i
		}
	}
	for i, row := range rows {
		for _, pattern := range row.packages {
			if ok, _ := path.Match(pattern, pkg); ok {
				return i
			}
		}
	}
	return -1
}

func TestImportsGoOneWay(t *testing.T) {
	t.Parallel()
	for pkg, list := range productImports(t) {
		row := rowOf(pkg)
		if row < 0 {
			t.Errorf("package %s has no row: decide where it belongs", pkg)
			continue
		}
		for _, imported := range list {
			checkImport(t, pkg, row, imported)
		}
	}
}

func checkImport(t *testing.T, pkg string, row int, imported string) {
	t.Helper()
	runnerRow := rowOf("runner")
	if row <= runnerRow {
		for _, f := range forbidden {
			if imported == f || strings.HasPrefix(imported, f+"/") {
				t.Errorf("%s imports %s; packages up to runner must not", pkg, imported)
			}
		}
	}
	// The benchmark measures os/exec itself.
	if imported == "os/exec" && pkg != "internal/process" && pkg != "internal/bench" {
		t.Errorf("%s imports os/exec; only internal/process may", pkg)
	}
	if strings.HasPrefix(imported, "github.com/busdk/bus-preferences") && pkg != "preferences" {
		t.Errorf("%s imports %s; only preferences may", pkg, imported)
	}
	if (pkg == "agent" || pkg == "jsonline") && strings.Contains(strings.SplitN(imported, "/", 2)[0], ".") &&
		imported != module+"/jsonline" && imported != "golang.org/x/sys/cpu" {
		t.Errorf("%s imports %s; it may import the standard library and what the processor can only", pkg, imported)
	}
	other, ok := strings.CutPrefix(imported, module+"/")
	if !ok {
		return
	}
	if strings.HasPrefix(pkg, "backends/") && strings.HasPrefix(other, "internal/") {
		t.Errorf("%s imports %s; backends use public packages only", pkg, other)
	}
	if r := rowOf(other); r >= row {
		t.Errorf("%s imports %s, which is not below it", pkg, other)
	}
}

// named lists the packages outside backends that may name a runtime in their code, and
// the strings that do, nil for all.
var named = map[string][]string{
	"appserver":        nil,                                                                                    // the protocol of one
	"modeltest":        nil,                                                                                    // the servers of their models
	"verify/targets":   nil,                                                                                    // how to point each at one
	"runner":           {"CURSOR_AGENT_OUTPUT_FORMAT", "CURSOR_AGENT_TIMEOUT", "CURSOR_AGENT_MODEL", "cursor"}, // the specification makes them variables of all
	"session/acpagent": {`json:"cursor"`, `json:"nextCursor,omitempty"`},                                       // members of the protocol
	"session/tmux":     {"#{history_size},#{cursor_x}:#{cursor_y},#{pane_dead},#{pane_dead_status},#{pane_dead_signal}"},
}

// All runtimes are served alike: what is true of one alone is in its package. Packages
// from internal/bench/corpus on test and show the runtimes.
func TestNothingElseNamesARuntime(t *testing.T) {
	t.Parallel()
	root := moduleRoot(t)
	names := runtimeNames(t, root)
	for pkg := range productImports(t) {
		if strings.HasPrefix(pkg, "backends/") || rowOf(pkg) >= rowOf("internal/bench/corpus") {
			continue
		}
		allowed, all := named[pkg]
		if all && allowed == nil {
			continue
		}
		for _, file := range productFiles(t, root, pkg) {
			for _, text := range stringsAndNames(t, file) {
				for _, name := range names {
					if strings.Contains(strings.ToLower(text), name) && !slices.Contains(allowed, text) {
						t.Errorf("%s/%s names a runtime in %q", pkg, filepath.Base(file), text)
					}
				}
			}
		}
	}
}

// runtimeNames returns the IDs of the runtimes, which are the names of their folders.
func runtimeNames(t *testing.T, root string) (names []string) {
	t.Helper()
	folders, err := os.ReadDir(filepath.Join(root, "backends"))
	if err != nil || len(folders) < 7 {
		t.Fatalf("%d backends, %v", len(folders), err)
	}
	for _, folder := range folders {
		if name := folder.Name(); !slices.Contains([]string{"all", "more", "rest"}, name) {
			names = append(names, name)
		}
	}
	return names
}

// productFiles returns the Go files of a package outside its tests.
func productFiles(t *testing.T, root, pkg string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pkg), "*.go"))
	files = slices.DeleteFunc(files, func(name string) bool { return strings.HasSuffix(name, "_test.go") })
	if err != nil || len(files) == 0 {
		t.Fatalf("no files in %s: %v", pkg, err)
	}
	return files
}

// stringsAndNames returns the strings and the identifiers of a file.
func stringsAndNames(t *testing.T, file string) []string {
	t.Helper()
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	ast.Inspect(parsed, func(n ast.Node) bool {
		if _, ok := n.(*ast.ImportSpec); ok {
			return false
		}
		if name, ok := n.(*ast.Ident); ok && name.Name != "cursor" { // which is a position
			found = append(found, name.Name)
		}
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if text, err := strconv.Unquote(lit.Value); err == nil {
				found = append(found, text)
			}
		}
		return true
	})
	return found
}

// productImports returns the imports of each package of the root module
// outside its tests.
func productImports(t *testing.T) map[string][]string {
	t.Helper()
	found, err := readImports()
	if err != nil || len(found) < 8 {
		t.Fatalf("only %d packages found, %v", len(found), err)
	}
	return found
}

var readImports = sync.OnceValues(func() (map[string][]string, error) {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		return nil, err
	}
	found := map[string][]string{}
	err = filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return skipDir(root, file, d.Name())
		}
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		rel, err := filepath.Rel(root, filepath.Dir(file))
		if err != nil {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		pkg := filepath.ToSlash(rel)
		for _, spec := range parsed.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			if !slices.Contains(found[pkg], imported) {
				found[pkg] = append(found[pkg], imported)
			}
		}
		return nil
	})
	return found, err
})

func skipDir(root, dir, name string) error {
	if dir == root {
		return nil
	}
	if name == "testdata" || strings.HasPrefix(name, ".") {
		return fs.SkipDir
	}
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
		return fs.SkipDir
	}
	return nil
}

func moduleRoot(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// Every program that runs agents has all runtimes.
func TestProgramsHaveTheSameRuntimes(t *testing.T) {
	t.Parallel()
	root := moduleRoot(t)
	for _, name := range []string{"cmd/bus-agent", "bus-agent-mcp", "otel/cmd/bus-agent-otel", "bus-integration-task/cmd/bus-integration-task"} {
		text, err := os.ReadFile(filepath.Join(root, name, "main.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, backends := range []string{"all", "more"} {
			if !strings.Contains(string(text), `_ "github.com/busdk/bus-agent/backends/`+backends+`"`) {
				t.Errorf("%s lacks backends/%s", name, backends)
			}
		}
	}
}
