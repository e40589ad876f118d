package layers

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What agents write has lines of any length, and a [bufio.Scanner] ends for good at
// one that is too long for it.
func TestNothingScansLines(t *testing.T) {
	t.Parallel()
	root := moduleRoot(t)
	for pkg := range productImports(t) {
		if rowOf(pkg) >= rowOf("internal/bench/corpus") {
			continue
		}
		for _, file := range productFiles(t, root, pkg) {
			if usesScanner(t, file) {
				t.Errorf("%s/%s uses a bufio.Scanner", pkg, filepath.Base(file))
			}
		}
	}
}

func usesScanner(t *testing.T, file string) bool {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(text, []byte("bufio.")) {
		return false
	}
	parsed, err := parser.ParseFile(token.NewFileSet(), file, text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	found := false
	ast.Inspect(parsed, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			pkg, isName := s.X.(*ast.Ident)
			found = found || isName && pkg.Name == "bufio" && strings.HasSuffix(s.Sel.Name, "Scanner")
		}
		return !found
	})
	return found
}
