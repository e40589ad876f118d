package main

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/yuin/goldmark/ast"
)

// link makes the links and images of a page lead to the pages of the site, to files that
// are copied, or to the repository. It returns an error for each that leads nowhere.
func (s *site) link(p *page) error {
	var problems []error
	resolve := func(destination *[]byte, image bool) {
		to, err := s.resolve(p, string(*destination), image)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %s: %w", p.source, *destination, err))
		}
		*destination = []byte(to)
	}
	_ = ast.Walk(p.doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // resolve keeps the errors
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Link:
			resolve(&n.Destination, false)
		case *ast.Image:
			resolve(&n.Destination, true)
		}
		return ast.WalkContinue, nil
	})
	return errors.Join(problems...)
}

// resolve returns where a link of a page leads on the site.
func (s *site) resolve(from *page, destination string, image bool) (string, error) {
	u, err := url.Parse(destination)
	switch {
	case err != nil:
		return "", err
	case u.Scheme == "https" && u.Host != "" && !image:
		return destination, nil
	case u.IsAbs() || u.Host != "" || path.IsAbs(u.Path):
		return "", errors.New("neither https nor a path in the repository")
	}
	target := from.source
	if u.Path != "" {
		target = path.Join(path.Dir(from.source), u.Path)
	}
	if to := s.pages[target]; to != nil && !image {
		if u.Fragment != "" && !to.anchors[u.Fragment] {
			return "", fmt.Errorf("%s has no heading #%s", target, u.Fragment)
		}
		if u.Path == "" {
			return "#" + u.EscapedFragment(), nil
		}
		u.Path = relative(from.Out, to.Out)
		return u.String(), nil
	}
	if !filepath.IsLocal(filepath.FromSlash(target)) {
		return "", errors.New("outside the repository")
	}
	info, err := os.Stat(filepath.Join(s.root, target))
	switch {
	case err != nil:
		return "", errors.New("no such file in the repository")
	case info.IsDir():
		return repository + "/tree/main/" + target, nil
	case image || path.Ext(target) == ".json":
		s.copied[target] = true
		return relative(from.Out, target), nil
	}
	return repository + "/blob/main/" + target, nil
}

// rootOf returns the path from a page to the root of the site, "" or such as "../".
func rootOf(out string) string { return strings.Repeat("../", strings.Count(out, "/")) }

// relative returns the path from one file of the site to another.
func relative(from, to string) string {
	rel, err := filepath.Rel(filepath.Dir(from), to)
	if err != nil {
		panic(err) // not with two paths in the same folder
	}
	return filepath.ToSlash(rel)
}
