// Package layers tests which packages of the module import which.
package layers

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/busdk/bus-integration-task/"

// rows lists the packages, base first. A package imports packages of earlier rows only, and
// those below its own folder.
var rows = [][]string{
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
		row := rowOf(pkg)
		if row < 0 && pkg != "internal/layers" {
			t.Errorf("%s is in no row", pkg)
		}
		listed++
		for _, path := range words[1:] {
			name, ours := strings.CutPrefix(path, module)
			switch {
			case ours && rowOf(name) >= row && !strings.HasPrefix(name, pkg+"/") && !sameFolder(name, pkg):
				t.Errorf("%s imports %s, which is in a later row", pkg, name)
			case pkg == "task" && (ours || strings.Contains(path, ".") || path == "net/http" || path == "os"):
				t.Errorf("task imports %s, but is to be pure", path)
			}
		}
	}
	if listed < 10 {
		t.Errorf("only %d packages", listed)
	}
}

// rowOf returns the row of a package, or of the folder above it that is in a row.
func rowOf(pkg string) int {
	for {
		if i := slices.IndexFunc(rows, func(row []string) bool { return slices.Contains(row, pkg) }); i >= 0 {
			return i
		}
		cut := strings.LastIndexByte(pkg, '/')
		if cut < 0 {
			return -1
		}
		pkg = pkg[:cut]
	}
}

// sameFolder reports whether two packages are below the same package of a row.
func sameFolder(a, b string) bool {
	for _, row := range rows {
		for _, pkg := range row {
			if strings.HasPrefix(a+"/", pkg+"/") && strings.HasPrefix(b+"/", pkg+"/") {
				return true
			}
		}
	}
	return false
}
