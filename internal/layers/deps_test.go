package layers

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// everyProgram is what a program with the registry and the runner is built from,
// besides the standard library.
var everyProgram = strings.Fields(`
	agent formatters instructions jsonline registry render runner session session/engine
	internal/capture internal/gitenv internal/process internal/statefile internal/tree internal/unix
	github.com/tailscale/hujson golang.org/x/sys/cpu golang.org/x/sys/unix`)

// brings lists what each backend adds: itself and what it speaks.
var brings = map[string][]string{
	"backends/claude":     {"session/streamjson"},
	"backends/codex":      {"appserver", "session/jsonrpc"},
	"backends/cursor":     {"session/acp", "session/jsonrpc"},
	"backends/gemini":     {"session/acp", "session/jsonrpc"},
	"backends/openai":     {"backends/rest"},
	"backends/perplexity": {"backends/rest"},
	"backends/xai":        {"backends/rest"},
}

func TestABackendBringsOnlyWhatItSpeaks(t *testing.T) {
	t.Parallel()
	root := moduleRoot(t)
	folders, err := filepath.Glob(filepath.Join(root, "backends", "*", "runtime.go"))
	if err != nil || len(folders) == 0 {
		t.Fatal("no backends", err)
	}
	graph := importGraph(t, root)
	for _, file := range folders {
		backend := "backends/" + filepath.Base(filepath.Dir(file))
		if backend == "backends/rest" { // what REST backends share
			continue
		}
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			got := dependencies(graph, "registry", "runner", backend)
			want := slices.Concat(everyProgram, brings[backend], []string{backend})
			slices.Sort(want)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// importGraph returns what each package outside the standard library imports, without the
// path of this module.
func importGraph(t *testing.T, root string) map[string][]string {
	t.Helper()
	c := exec.Command("go", "list", "-deps", "-f", `{{if not .Standard}}{{.ImportPath}} {{join .Imports " "}}{{end}}`, "./...")
	c.Dir = root
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	graph := map[string][]string{}
	for line := range strings.Lines(strings.ReplaceAll(string(out), module+"/", "")) {
		if f := strings.Fields(line); len(f) > 0 {
			graph[f[0]] = f[1:]
		}
	}
	return graph
}

// dependencies returns packages and everything outside the standard library that they are
// built from, sorted.
func dependencies(graph map[string][]string, packages ...string) []string {
	var found []string
	for len(packages) > 0 {
		next := packages[0]
		packages = packages[1:]
		if imported, known := graph[next]; known && !slices.Contains(found, next) {
			found = append(found, next)
			packages = append(packages, imported...)
		}
	}
	slices.Sort(found)
	return found
}
