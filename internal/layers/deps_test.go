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
	for _, file := range folders {
		backend := "backends/" + filepath.Base(filepath.Dir(file))
		if backend == "backends/rest" { // what REST backends share
			continue
		}
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			c := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", "./"+backend, "./registry", "./runner")
			c.Dir = root
			out, err := c.Output()
			if err != nil {
				t.Fatal(err)
			}
			got := strings.Fields(strings.ReplaceAll(string(out), module+"/", ""))
			want := slices.Concat(everyProgram, brings[backend], []string{backend})
			slices.Sort(got)
			slices.Sort(want)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
