package layers

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/registry/described"
)

// Every test that a page names exists, so that a proof that goes takes its line with
// it, and every local link leads to a file and a heading.
func TestDocsNameWhatExists(t *testing.T) {
	t.Parallel()
	root := moduleRoot(t)
	sources, err := filepath.Glob(filepath.Join(root, "acceptance", "*.go"))
	if err != nil || len(sources) == 0 {
		t.Fatalf("no acceptance tests: %v", err)
	}
	var tests strings.Builder
	for _, file := range sources {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		tests.Write(text)
	}
	pages := []string{filepath.Join(root, "README.md"), filepath.Join(root, "CONTRIBUTING.md")}
	for _, pattern := range []string{"docs/*.md", "docs/runtimes/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("no pages %s: %v", pattern, err)
		}
		pages = append(pages, found...)
	}
	named := regexp.MustCompile("`(Test[A-Za-z0-9]+)`")
	link := regexp.MustCompile(`\]\(([^):#]*)(?:#([^)]+))?\)`)
	var names, links int
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range named.FindAllSubmatch(text, -1) {
			names++
			if !strings.Contains(tests.String(), "func "+string(m[1])+"(") {
				t.Errorf("%s names %s, which does not exist", page, m[1])
			}
		}
		for _, m := range link.FindAllSubmatch(text, -1) {
			links++
			target := filepath.Join(filepath.Dir(page), string(m[1]))
			if len(m[1]) == 0 {
				target = page
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: %v", page, err)
			} else if len(m[2]) > 0 && !slices.Contains(anchors(t, target), string(m[2])) {
				t.Errorf("%s: %s has no heading #%s", page, target, m[2])
			}
		}
	}
	if names == 0 || links == 0 {
		t.Errorf("the pages have %d names of tests and %d links", names, links)
	}
}

// anchors returns the anchors of the headings of a page.
func anchors(t *testing.T, page string) (list []string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	dropped := regexp.MustCompile(`[^\w\- ]`)
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllSubmatch(text, -1) {
		heading := dropped.ReplaceAllString(strings.ToLower(string(m[1])), "")
		list = append(list, strings.ReplaceAll(heading, " ", "-"))
	}
	return list
}

// The page on adding a runtime shows the files of the example, so what it says
// is what is tested.
func TestAddingARuntimeShowsTheExample(t *testing.T) {
	t.Parallel()
	root := moduleRoot(t)
	page, err := os.ReadFile(filepath.Join(root, "docs", "adding-a-runtime.md"))
	if err != nil {
		t.Fatal(err)
	}
	shown := regexp.MustCompile("(?s)\n`([a-z/_-]+\\.go)`:\n\n```go\n(.*?)```").FindAllSubmatch(page, -1)
	if len(shown) != 3 {
		t.Fatalf("the page shows %d files, want 3", len(shown))
	}
	for _, m := range shown {
		file, err := os.ReadFile(filepath.Join(root, "examples", "third-party-runtime", string(m[1])))
		if err != nil || string(file) != string(m[2]) {
			t.Errorf("%s on the page is not the file of the example: %v", m[1], err)
		}
	}
}

// The first definition on the page is the one that is proved with the real CLI, and
// all can be registered.
func TestAddingARuntimeShowsTheDefinition(t *testing.T) {
	t.Parallel()
	root := moduleRoot(t)
	page, err := os.ReadFile(filepath.Join(root, "docs", "adding-a-runtime.md"))
	if err != nil {
		t.Fatal(err)
	}
	proved, err := os.ReadFile(filepath.Join(root, "acceptance", "testdata", "qwen.json"))
	if err != nil {
		t.Fatal(err)
	}
	shown := regexp.MustCompile("(?s)\n```json\n(.*?)```").FindAllSubmatch(page, -1)
	if len(shown) == 0 || string(shown[0][1]) != string(proved) {
		t.Fatalf("the page shows %d definitions, want first the one of acceptance/testdata/qwen.json", len(shown))
	}
	for _, m := range shown {
		rt, err := described.Runtime("mine", m[1], nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := new(registry.Registry).Register(rt); err != nil {
			t.Error(err)
		}
	}
}
