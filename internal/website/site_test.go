package main

import (
	"html"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// realSite makes the site of this repository and returns its folder.
func realSite(t *testing.T) (s *site, out string) {
	t.Helper()
	s, out = &site{root: filepath.Join("..", "..")}, filepath.Join(t.TempDir(), "site")
	files, err := markdown(s.root)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.build(files, menu, out); err != nil {
		t.Fatal(err)
	}
	return s, out
}

// small makes a site of pages, and returns the error instead of failing.
func small(t *testing.T, pages map[string]string, groups ...group) (s *site, out string, err error) {
	t.Helper()
	s, out = &site{root: t.TempDir()}, filepath.Join(t.TempDir(), "site")
	var files []string
	for name, text := range pages {
		if err := write(filepath.Join(s.root, name), []byte(text)); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, ".md") {
			files = append(files, name)
		}
	}
	return s, out, s.build(files, groups, out)
}

func readFile(t *testing.T, elements ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(elements...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var (
	reference = regexp.MustCompile(`(?:href|src)="([^"]*)"`)
	identity  = regexp.MustCompile(` id="([^"]*)"`)
)

// Every link in the files of the site leads to a file of the site and an anchor in it, read
// from the HTML and not from what the generator knows.
func TestLinksOfTheSiteLeadSomewhere(t *testing.T) {
	t.Parallel()
	s, out := realSite(t)
	ids, links := map[string]map[string]bool{}, map[string][]string{}
	err := filepath.WalkDir(out, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, _ := filepath.Rel(out, file)
		ids[name] = map[string]bool{}
		if filepath.Ext(file) != ".html" {
			return nil
		}
		text := readFile(t, file)
		for _, m := range identity.FindAllStringSubmatch(text, -1) {
			if ids[name][m[1]] {
				t.Errorf("%s has the ID %s twice", name, m[1])
			}
			ids[name][html.UnescapeString(m[1])] = true
		}
		for _, m := range reference.FindAllStringSubmatch(text, -1) {
			links[name] = append(links[name], html.UnescapeString(m[1]))
		}
		return nil
	})
	if err != nil || len(links) != len(s.pages) {
		t.Fatalf("%d pages of %d, %v", len(links), len(s.pages), err)
	}
	for name, list := range links {
		for _, link := range list {
			if strings.HasPrefix(link, "https://") || link == "data:," {
				continue
			}
			file, anchor, _ := strings.Cut(link, "#")
			target := name
			if file != "" {
				target = path.Join(path.Dir(name), file)
			}
			if known, ok := ids[target]; !ok || anchor != "" && !known[anchor] {
				t.Errorf("%s: the link %s leads nowhere", name, link)
			}
		}
	}
}

// A link that leads nowhere, or a page that cannot be shown whole, makes no site.
func TestProblemsAreNamed(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ text, want string }{
		"page":        {"# A\n[x](b.md)", "docs/a.md: b.md: no such file in the repository"},
		"anchor":      {"# A\n[x](other.md#missing)", "docs/a.md: other.md#missing: docs/other.md has no heading #missing"},
		"own anchor":  {"# A\n[x](#missing)", "docs/a.md: #missing: docs/a.md has no heading #missing"},
		"image":       {"# A\n![x](x.png)", "docs/a.md: x.png: no such file in the repository"},
		"far image":   {"# A\n![x](https://example.com/x.png)", "docs/a.md: https://example.com/x.png: neither https nor a path in the repository"},
		"outside":     {"# A\n[x](../../x.md)", "docs/a.md: ../../x.md: outside the repository"},
		"absolute":    {"# A\n[x](/docs/other.md)", "docs/a.md: /docs/other.md: neither https nor a path in the repository"},
		"script":      {"# A\n[x](javascript:alert(1))", "docs/a.md: javascript:alert(1): neither https nor a path in the repository"},
		"by name":     {"# A\n[x][y]\n\n[y]: b.md", "docs/a.md: b.md: no such file in the repository"},
		"in a table":  {"# A\n\n| a |\n|---|\n| [x](b.md) |", "docs/a.md: b.md: no such file in the repository"},
		"two":         {"# A\n[x](b.md) [x](c.md)", "docs/a.md: b.md: no such file in the repository\ndocs/a.md: c.md: no such file in the repository"},
		"HTML":        {"# A\n<b>x</b>", `docs/a.md: HTML is not supported: "<b>"`},
		"HTML block":  {"# A\n\n<div>x</div>", `docs/a.md: HTML is not supported: "<div>x</div>"`},
		"no title":    {"## A", "docs/a.md: 0 headings of level 1, want one"},
		"many titles": {"# A\n# B", "docs/a.md: 2 headings of level 1, want one"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, out, err := small(t, map[string]string{"docs/a.md": test.text, "docs/other.md": "# Other\n"})
			if err == nil || err.Error() != test.want {
				t.Errorf("error %v, want %s", err, test.want)
			}
			if _, err := os.Stat(out); err == nil {
				t.Error("there is a site")
			}
		})
	}
}

func TestMenuListsPagesThatExist(t *testing.T) {
	t.Parallel()
	_, _, err := small(t, map[string]string{"a.md": "# A"}, group{Name: "G", entries: []entry{{"b.md", "B"}}})
	if err == nil || err.Error() != "the menu lists b.md, which does not exist" {
		t.Error(err)
	}
	_, _, err = small(t, map[string]string{"a.md": "# A"}, group{Name: "G", entries: []entry{{"a.md", "A"}}}, group{Name: "H", entries: []entry{{"a.md", "A"}}})
	if err == nil || err.Error() != "the menu lists a.md twice" {
		t.Error(err)
	}
	s, out, err := small(t, map[string]string{"a.md": "# A", "b.md": "# Title of B"}, group{Name: "G", entries: []entry{{"a.md", "Label of A"}}})
	if err != nil || len(s.menu) != 2 {
		t.Fatal(len(s.menu), err)
	}
	if page := readFile(t, out, "a.html"); !strings.Contains(page, `<a href="a.html" aria-current="page">Label of A</a>`) || !strings.Contains(page, `<a href="b.html">Title of B</a>`) || !strings.Contains(page, `<a rel="next" href="b.html">`) {
		t.Errorf("the page is %s", page)
	}
}

// What pages consist of, in the HTML.
func TestMarkdownBecomesHTML(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ text, want string }{
		"heading":         {"## The `run` & \"more\"", `<h2 id="the-run--more">The <code>run</code> &amp; &quot;more&quot; <a class="anchor" href="#the-run--more" aria-label="Link to The run &amp; &#34;more&#34;">#</a></h2>`},
		"same headings":   {"## A\n## A", `<h2 id="a-2">`},
		"page":            {"[x](sub/c.md#part)", `<a href="sub/c.html#part">x</a>`},
		"readme":          {"[x](../README.md)", `<a href="../index.html">x</a>`},
		"own anchor":      {"[x](#a)", `<a href="#a">x</a>`},
		"file":            {"[x](x.json)", `<a href="x.json">x</a>`},
		"image":           {"![x](sub/x.png)", `<img src="sub/x.png" alt="x">`},
		"code elsewhere":  {"[x](../main.go)", `<a href="https://github.com/busdk/bus-agent/blob/main/main.go">x</a>`},
		"folder":          {"[x](sub)", `<a href="https://github.com/busdk/bus-agent/tree/main/docs/sub">x</a>`},
		"far":             {"[x](https://example.com/?a=1&b=2#c)", `<a href="https://example.com/?a=1&amp;b=2#c">x</a>`},
		"names in tables": {"| a-b |\n|:--|\n| 2026-11-26 |\n| one two-three |", "<th scope=\"col\" class=\"left name\">a-b</th>\n</tr>\n</thead>\n<tbody>\n<tr>\n<td class=\"left name\">2026-11-26</td>\n</tr>\n<tr>\n<td class=\"left\">one two-three</td>"},
		"code":            {"```html\n<b>&amp;</b>\n```", "<pre tabindex=\"0\"><code>&lt;b&gt;&amp;amp;&lt;/b&gt;\n</code></pre>"},
		"table":           {"| a | |\n|--:|---|\n| 1 | 2 |", "<div class=\"scroll\" role=\"group\" aria-label=\"Table\" tabindex=\"0\"><table>\n<thead>\n<tr>\n<th scope=\"col\" class=\"right\">a</th>\n<td></td>\n</tr>\n</thead>\n<tbody>\n<tr>\n<td class=\"right\">1</td>\n<td>2</td>\n</tr>\n</tbody>\n</table></div>"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, out, err := small(t, map[string]string{
				"README.md": "# R", "docs/a.md": "# A\n\n" + test.text, "docs/sub/c.md": "# C\n## Part", "docs/x.json": "{}", "docs/sub/x.png": "png", "main.go": "package main",
			})
			if err != nil {
				t.Fatal(err)
			}
			if page := readFile(t, out, "docs", "a.html"); !strings.Contains(page, test.want) {
				t.Errorf("the page lacks %s: %s", test.want, page)
			}
			for name, link := range map[string]string{"docs/x.json": "(x.json)", "docs/sub/x.png": "(sub/x.png)"} {
				if _, err := os.Stat(filepath.Join(out, name)); (err == nil) != strings.Contains(test.text, link) {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
	}
}

func TestSearchHasTheTextOfAllSections(t *testing.T) {
	t.Parallel()
	_, out, err := small(t, map[string]string{"docs/a.md": "# A\nFirst *line*\nand `code`.\n\n- one\n- two\n\n## B `</script>`\n\n| x | y |\n|---|---|\n| 1 | 2 |\n\n    indented\n"})
	if err != nil {
		t.Fatal(err)
	}
	want := `window.searchIndex = [{"page":"docs/a.html","title":"A","sections":[{"anchor":"a","heading":"A","text":"First line and code. one two"},{"anchor":"b-script","heading":"B \u003c/script\u003e","text":"x y 1 2 indented"}]}];` + "\n"
	if diff := cmp.Diff(want, readFile(t, out, "search.js")); diff != "" {
		t.Error(diff)
	}
}

// The same repository gives the same site, and an existing folder is kept.
func TestBuildIsRepeatable(t *testing.T) {
	t.Parallel()
	s, first := realSite(t)
	_, second := realSite(t)
	for _, p := range s.pages {
		if readFile(t, first, p.Out) != readFile(t, second, p.Out) {
			t.Errorf("%s differs", p.Out)
		}
	}
	if readFile(t, first, "search.js") != readFile(t, second, "search.js") {
		t.Error("search.js differs")
	}
	if _, _, err := small(t, map[string]string{"a.md": "# A"}); err != nil {
		t.Fatal(err)
	}
	if err := s.build(nil, nil, first); err == nil {
		t.Error("a site replaced another")
	}
}
