// Website makes the documentation site: plain HTML from the Markdown of the repository,
// with a search that needs no network, also where the pages are opened as files.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

func main() {
	var s site
	var out string
	flag.StringVar(&s.root, "root", ".", "the repository")
	flag.StringVar(&s.version, "version", "", "the version on the pages")
	flag.StringVar(&out, "out", "", "the folder to make")
	flag.Parse()
	files, err := markdown(s.root)
	if err == nil {
		err = s.build(files, menu, out)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "website:", err)
		os.Exit(1)
	}
	fmt.Printf("%d pages, all links checked: %s/index.html\n", len(s.pages), out)
}

// markdown returns the files that become pages: the Markdown that git knows, except what
// is for tests and for agents.
func markdown(root string) (files []string, err error) {
	list, err := exec.Command("git", "-C", root, "ls-files", "--", "*.md").Output()
	if err != nil {
		return nil, fmt.Errorf("list the files of %s: %w", root, err)
	}
	for _, file := range strings.Fields(string(list)) {
		if file != "AGENTS.md" && !strings.Contains(file, "testdata/") {
			files = append(files, file)
		}
	}
	return files, nil
}
