// Package layers tests which packages of the module import which, and that the faults of
// its pages have tests.
package layers

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/busdk/bus-integration-task/"

// rows lists the packages, base first. A package imports packages of earlier rows only, and
// those below its own folder.
var rows = [][]string{
	{"internal/unix", "internal/testwait"},
	{"task", "events"},
	{"task/simulate", "eventserver", "tasklog", "closeout", "worktree"},
	{"worker/backend"},
	{"worker/settings"},
	{"worker", "board"},
	{"cmd/bus-integration-task", "internal/demo", "internal/soak"},
}

func TestPackagesImportEarlierRows(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, module+"...").Output()
	if err != nil {
		t.Fatal(err)
	}
	listed := 0
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		pkg := strings.TrimPrefix(words[0], module)
		entry, row := entryOf(pkg)
		if row < 0 && pkg != "internal/layers" {
			t.Errorf("%s is in no row", pkg)
		}
		listed++
		for _, path := range words[1:] {
			name, ours := strings.CutPrefix(path, module)
			other, otherRow := entryOf(name)
			switch {
			case ours && otherRow >= row && other != entry && !strings.HasPrefix(name, pkg+"/"):
				t.Errorf("%s imports %s, which is in a later row", pkg, name)
			case pkg == "task" && (ours || strings.Contains(path, ".") || path == "net/http" || path == "os"):
				t.Errorf("task imports %s, but is to be pure", path)
			}
			for prefix, allowed := range only {
				if strings.HasPrefix(path, prefix) && !slices.Contains(allowed, entry) {
					t.Errorf("%s imports %s, which only %q may", pkg, path, allowed)
				}
			}
		}
	}
	if listed < 10 {
		t.Errorf("only %d packages", listed)
	}
}

// only lists what a few packages alone import: brokers, programs, and the agents.
var only = map[string][]string{
	"github.com/nats-io/":               {"eventserver", "internal/soak"},
	"os/exec":                           {"internal/unix", "closeout", "worktree", "worker/backend", "worker", "cmd/bus-integration-task", "internal/demo", "internal/soak"},
	"github.com/busdk/bus-agent/runner": {"closeout", "worker/backend", "worker", "cmd/bus-integration-task"},
}

// entryOf returns the entry of rows for a package, itself or the nearest folder above it,
// and its row.
func entryOf(pkg string) (string, int) {
	for {
		if i := slices.IndexFunc(rows, func(row []string) bool { return slices.Contains(row, pkg) }); i >= 0 {
			return pkg, i
		}
		cut := strings.LastIndexByte(pkg, '/')
		if cut < 0 {
			return pkg, -1
		}
		pkg = pkg[:cut]
	}
}

// Each row of docs/faults.md names tests that exist.
func TestFaultsHaveTests(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/faults.md")
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for line := range strings.Lines(string(page)) {
		tests := testName.FindAllStringSubmatch(line, -1)
		if len(tests) == 0 && strings.HasPrefix(line, "|") && named > 0 {
			t.Errorf("no test: %s", line)
		}
		for _, test := range tests {
			named++
			files, err := filepath.Glob("../../" + test[1] + "/*_test.go")
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(files, func(path string) bool {
				text, err := os.ReadFile(path)
				return err == nil && strings.Contains(string(text), "\nfunc "+test[2]+"(t *testing.T) {")
			}) {
				t.Errorf("there is no test %s in %s", test[2], test[1])
			}
		}
	}
	if named < 20 {
		t.Errorf("only %d tests are named", named)
	}
}

var testName = regexp.MustCompile("`([a-z/-]+)\\.(Test[A-Za-z]+)`")
