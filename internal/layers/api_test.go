package layers

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write docs/api.txt")

// A change of what other modules can call is seen in review: docs/api.txt lists it
// all, for every system that the tree builds on.
func TestAPIIsListed(t *testing.T) {
	t.Parallel()
	root := moduleRoot(t)
	file := filepath.Join(root, "docs", "api.txt")
	got := listing(t, root)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("the public API is not what docs/api.txt lists; if that is meant, write it again (make api):\n%s", diff)
	}
}

// listing returns the exported declarations of every public package, without their
// comments, a package after the other.
func listing(t *testing.T, root string) string {
	t.Helper()
	packages := map[string][]string{}
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			name := d.Name()
			if file != root && (name == "testdata" || name == "internal" || name == "examples" || strings.HasPrefix(name, ".")) {
				return fs.SkipDir
			}
			return nil
		}
		if strings.HasSuffix(file, ".go") && !strings.HasSuffix(file, "_test.go") {
			rel, err := filepath.Rel(root, filepath.Dir(file))
			packages[filepath.ToSlash(rel)] = append(packages[filepath.ToSlash(rel)], file)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, pkg := range slices.Sorted(maps.Keys(packages)) {
		lines := exported(t, packages[pkg])
		if len(lines) == 0 {
			continue
		}
		b.WriteString("# " + pkg + "\n\n" + strings.Join(lines, "\n") + "\n\n")
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

var (
	layout = printer.Config{Mode: printer.UseSpaces | printer.TabIndent, Tabwidth: 4}
	blank  = regexp.MustCompile(`\n\s*\n`)
)

// exported returns the exported declarations in files, sorted by name, methods behind
// their type. Each is listed once, also where several systems have their own file.
func exported(t *testing.T, files []string) []string {
	t.Helper()
	found := map[string][]string{} // declarations by name
	fset := token.NewFileSet()
	for _, file := range files {
		parsed, err := parser.ParseFile(fset, file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if parsed.Name.Name == "main" || !ast.FileExports(parsed) {
			continue
		}
		for _, decl := range parsed.Decls {
			name, text := "", new(strings.Builder)
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				decl.Body = nil
				if name = decl.Name.Name; decl.Recv != nil {
					of := receiver(decl.Recv.List[0].Type)
					if !ast.IsExported(of) {
						continue
					}
					name = of + "." + name
				}
			case *ast.GenDecl:
				if decl.Tok == token.IMPORT {
					continue
				}
				switch spec := decl.Specs[0].(type) {
				case *ast.TypeSpec:
					name = spec.Name.Name
				case *ast.ValueSpec:
					name = spec.Names[0].Name
				}
			}
			if err := layout.Fprint(text, fset, decl); err != nil {
				t.Fatal(err)
			}
			if shown := blank.ReplaceAllString(text.String(), "\n"); !slices.Contains(found[name], shown) {
				found[name] = append(found[name], shown)
			}
		}
	}
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(found)) {
		slices.Sort(found[name])
		lines = append(lines, found[name]...)
	}
	return lines
}

func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}
