// Command typecheck checks the types of packages for the system in GOOS and GOARCH, without
// compiling them and the standard library, which takes minutes. With -test it checks their
// tests too.
package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

func main() {
	tests := flag.Bool("test", false, "check the tests too")
	flag.Parse()
	if err := run(*tests, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "typecheck:", err)
		os.Exit(1)
	}
}

// listed is a package as "go list -json" prints it.
type listed struct {
	Dir, ImportPath, ForTest string
	GoFiles                  []string
	ImportMap                map[string]string
	DepOnly                  bool
	Module                   *struct{ GoVersion string }
}

// run checks the packages that match patterns.
func run(tests bool, patterns []string) error {
	list := exec.Command("go", append([]string{"list", "-deps", fmt.Sprintf("-test=%t", tests), "-json=Dir,ImportPath,ForTest,GoFiles,ImportMap,DepOnly,Module"}, patterns...)...)
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		return fmt.Errorf("go list: %w", err)
	}
	done := imports{"unsafe": types.Unsafe}
	checked := 0
	for input := json.NewDecoder(bytes.NewReader(out)); ; { // dependencies come first
		var p listed
		if err := input.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			return err
		}
		if p.ImportPath == "unsafe" || strings.HasSuffix(p.ImportPath, ".test") { // the second is generated
			continue
		}
		if err := done.check(p); err != nil {
			return fmt.Errorf("%s: %w", p.ImportPath, err)
		}
		if !p.DepOnly {
			checked++
		}
	}
	if checked == 0 {
		return errors.New("no packages")
	}
	return nil
}

// imports holds checked packages by import path.
type imports map[string]*types.Package

// Import implements types.Importer.
func (i imports) Import(path string) (*types.Package, error) {
	if p := i[path]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("%s is not listed", path)
}

// check checks a package and adds it. Bodies of functions are checked only where p is what
// the patterns match.
func (i imports) check(p listed) error {
	files := token.NewFileSet()
	var parsed []*ast.File
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(files, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		parsed = append(parsed, f)
	}
	visible := maps.Clone(i)
	for in, path := range p.ImportMap {
		visible[in] = i[path]
	}
	arch := cmp.Or(os.Getenv("GOARCH"), runtime.GOARCH)
	config := types.Config{Importer: visible, IgnoreFuncBodies: p.DepOnly && p.ForTest == "", FakeImportC: true, Sizes: types.SizesFor("gc", arch)}
	if p.Module != nil && p.Module.GoVersion != "" {
		config.GoVersion = "go" + p.Module.GoVersion
	}
	path, _, _ := strings.Cut(p.ImportPath, " ")
	checked, err := config.Check(path, files, parsed, nil)
	i[p.ImportPath] = checked
	return err
}
