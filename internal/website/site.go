package main

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// repository is where links to what is not on the site lead.
const repository = "https://github.com/busdk/bus-agent"

//go:embed assets
var assets embed.FS

var layout = template.Must(template.ParseFS(assets, "assets/page.html"))

// A site is what is made of a repository.
type site struct {
	root, version string
	pages         map[string]*page // by the path of their source
	menu          []group
	copied        map[string]bool // files that pages link to
}

// build makes the site in the folder out, which must not exist. It names every link that
// leads nowhere, and then makes nothing.
func (s *site) build(files []string, groups []group, out string) error {
	s.pages, s.copied = map[string]*page{}, map[string]bool{}
	var problems []error
	for _, file := range files {
		source, err := os.ReadFile(filepath.Join(s.root, file))
		if err != nil {
			return err
		}
		p, err := read(file, source)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		s.pages[file] = p
	}
	if len(problems) > 0 {
		return errors.Join(problems...)
	}
	if err := s.order(groups); err != nil {
		return err
	}
	for _, file := range slices.Sorted(maps.Keys(s.pages)) {
		problems = append(problems, s.link(s.pages[file]))
	}
	if err := errors.Join(problems...); err != nil {
		return err
	}
	if err := os.Mkdir(out, 0o755); err != nil {
		return err
	}
	return errors.Join(s.writePages(out), s.writeSearch(out), s.writeFiles(out))
}

// view is what the layout shows.
type view struct {
	*page
	Root, Version  string
	Content        template.HTML
	Menu           []group
	Previous, Next *page
}

// To returns the path from the page to another.
func (v view) To(other *page) string { return relative(v.Out, other.Out) }

func (s *site) writePages(out string) error {
	var all []*page
	for _, g := range s.menu {
		all = append(all, g.Pages...)
	}
	for i, p := range all {
		content, err := p.html()
		if err != nil {
			return fmt.Errorf("%s: %w", p.source, err)
		}
		v := view{page: p, Root: rootOf(p.Out), Version: s.version, Content: content, Menu: s.menu}
		if i > 0 {
			v.Previous = all[i-1]
		}
		if i+1 < len(all) {
			v.Next = all[i+1]
		}
		var text bytes.Buffer
		if err := layout.Execute(&text, v); err != nil {
			return err
		}
		if err := write(filepath.Join(out, p.Out), text.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

// writeSearch writes the text of all pages as a script, because a page that is opened as a
// file can load scripts but no data.
func (s *site) writeSearch(out string) error {
	type indexed struct {
		Page     string    `json:"page"`
		Title    string    `json:"title"`
		Sections []section `json:"sections"`
	}
	var list []indexed
	for _, g := range s.menu {
		for _, p := range g.Pages {
			list = append(list, indexed{p.Out, p.Title, p.sections})
		}
	}
	text, err := json.Marshal(list)
	if err != nil {
		return err
	}
	return write(filepath.Join(out, "search.js"), slices.Concat([]byte("window.searchIndex = "), text, []byte(";\n")))
}

func (s *site) writeFiles(out string) error {
	for _, name := range []string{"style.css", "site.js"} {
		text, err := assets.ReadFile("assets/" + name)
		if err == nil {
			err = write(filepath.Join(out, name), text)
		}
		if err != nil {
			return err
		}
	}
	for file := range s.copied {
		text, err := os.ReadFile(filepath.Join(s.root, file))
		if err == nil {
			err = write(filepath.Join(out, file), text)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func write(file string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o644)
}
