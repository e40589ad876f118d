// Release makes the tree that is tagged as a release of the modules of this repository,
// a module proxy that serves them, and with -artifacts what users download.
//
// In the repository the modules need each other by replace lines, which
// "go install …@version" refuses. The tree has none: its modules require each other at
// the version that is released.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
)

func main() {
	var r release
	flag.StringVar(&r.root, "root", ".", "the repository")
	flag.StringVar(&r.version, "version", "", "the version of the modules, such as v1.2.3")
	flag.StringVar(&r.preferences, "preferences", "", "the version of bus-preferences (default: that of -version)")
	flag.StringVar(&r.out, "out", "", "the folder to make, with the folders tree and proxy")
	artifacts := flag.Bool("artifacts", false, "make the folder artifacts too, with what users download")
	flag.Parse()
	r.preferences = cmp.Or(r.preferences, r.version)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := r.make(ctx)
	if err == nil && *artifacts {
		err = r.makeArtifacts(ctx, platforms)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}
