// Command typecheck checks the types of packages for the system in GOOS and GOARCH, without
// compiling them and the standard library, which takes minutes. With -test it checks their
// tests too.
package main

import (
	"flag"
	"fmt"
	"os"

	"golang.org/x/tools/go/packages"
)

func main() {
	tests := flag.Bool("test", false, "check the tests too")
	flag.Parse()
	list, err := packages.Load(&packages.Config{Mode: packages.LoadAllSyntax, Tests: *tests}, flag.Args()...)
	if err != nil {
		fmt.Fprintln(os.Stderr, "typecheck:", err)
		os.Exit(1)
	}
	if len(list) == 0 || packages.PrintErrors(list) > 0 {
		os.Exit(1)
	}
}
