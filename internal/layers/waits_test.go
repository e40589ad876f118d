package layers

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// A test that sleeps until something has happened elsewhere fails on a busy machine, and is
// slow on an idle one: it waits with package testwait, or in a bubble of testing/synctest.
// A stub can sleep for hours until it is killed.
var sleepers = map[string]string{
	"cmd/bus-agent/fake_test.go":           "an agent that takes a while",
	"cmd/bus-agent/signals_test.go":        "a clock that stops with the machine",
	"runner/agent_hang_test.go":            "the pace of an agent without end",
	"session/tmux/stub_test.go":            "a CLI that is slow to start and to read",
	"bus-integration-task/internal/soak/*": "faults that last a while",
}

func TestNoTestSleeps(t *testing.T) {
	t.Parallel()
	root := moduleRoot(t)
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && file != root) {
			return fs.SkipDir
		}
		rel, err := filepath.Rel(root, file)
		if err != nil || !strings.HasSuffix(file, "_test.go") {
			return err
		}
		for pattern := range sleepers {
			if ok, _ := path.Match(pattern, filepath.ToSlash(rel)); ok {
				return nil
			}
		}
		fset := token.NewFileSet()
		parsed, err := parser.ParseFile(fset, file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, spec := range parsed.Imports {
			if spec.Path.Value == `"testing/synctest"` {
				return nil
			}
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && isTime(call.Fun, "Sleep") && !isHours(call.Args[0]) {
				t.Errorf("%s:%d sleeps; use internal/testwait or testing/synctest", rel, fset.Position(n.Pos()).Line)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func isTime(e ast.Expr, name string) bool {
	s, ok := e.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != name {
		return false
	}
	pkg, ok := s.X.(*ast.Ident)
	return ok && pkg.Name == "time"
}

// isHours reports whether a duration is written as hours.
func isHours(e ast.Expr) bool {
	if b, ok := e.(*ast.BinaryExpr); ok {
		return isHours(b.X) || isHours(b.Y)
	}
	return isTime(e, "Hour")
}
