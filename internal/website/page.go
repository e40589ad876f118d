package main

import (
	"bytes"
	"fmt"
	"html/template"
	"path"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// A page is a Markdown file and what it becomes.
type page struct {
	source      string // path in the repository
	Out         string // path on the site
	Title       string // the heading of level 1
	Label       string // in the menu
	Description string // the first paragraph
	markdown    []byte
	doc         ast.Node
	anchors     map[string]bool
	sections    []section
}

// A section is a heading and the text below it, for the search.
type section struct {
	Anchor  string `json:"anchor"`
	Heading string `json:"heading"`
	Text    string `json:"text"`
}

var converter = goldmark.New(
	goldmark.WithExtensions(extension.GFM),
	goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(elements{}, 100))), // before those of goldmark
)

// read reads a page. It has one heading of level 1 and no HTML but
// comments, because HTML is left out.
func read(source string, markdown []byte) (*page, error) {
	p := &page{source: source, markdown: markdown, anchors: map[string]bool{}}
	p.Out = strings.TrimSuffix(source, ".md") + ".html"
	if path.Base(source) == "README.md" {
		p.Out = path.Join(path.Dir(source), "index.html")
	}
	p.doc = converter.Parser().Parse(text.NewReader(markdown))
	titles := 0
	err := ast.Walk(p.doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.RawHTML:
			return ast.WalkStop, fmt.Errorf("%s: HTML is not supported: %.60q", source, n.Segments.Value(markdown))
		case *ast.HTMLBlock:
			if strings.HasPrefix(string(n.Lines().Value(markdown)), "<!--") {
				return ast.WalkContinue, nil
			}
			return ast.WalkStop, fmt.Errorf("%s: HTML is not supported: %.60q", source, n.Lines().Value(markdown))
		case *ast.Heading:
			id := p.anchor(p.textOf(n))
			n.SetAttributeString("id", []byte(id))
			if n.Level == 1 {
				p.Title = p.textOf(n)
				titles++
			}
		}
		return ast.WalkContinue, nil
	})
	if err == nil && titles != 1 {
		err = fmt.Errorf("%s: %d headings of level 1, want one", source, titles)
	}
	if err != nil {
		return nil, err
	}
	p.split()
	return p, nil
}

// anchor returns a new anchor for a heading, as GitHub makes it.
func (p *page) anchor(heading string) string {
	id := strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, heading)
	unique := id
	for i := 1; p.anchors[unique]; i++ {
		unique = fmt.Sprintf("%s-%d", id, i)
	}
	p.anchors[unique] = true
	return unique
}

// split fills in the description and the sections.
func (p *page) split() {
	for n := p.doc.FirstChild(); n != nil; n = n.NextSibling() {
		text := p.textOf(n)
		if heading, ok := n.(*ast.Heading); ok {
			id, _ := heading.AttributeString("id")
			p.sections = append(p.sections, section{Anchor: string(id.([]byte)), Heading: text})
			continue
		}
		if n.Kind() == ast.KindParagraph && p.Description == "" {
			p.Description = text
		}
		if len(p.sections) == 0 {
			p.sections = append(p.sections, section{})
		}
		last := &p.sections[len(p.sections)-1]
		last.Text = strings.TrimSpace(last.Text + " " + text)
	}
}

// textOf returns the text of a node in one line.
func (p *page) textOf(n ast.Node) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // nothing in it fails
		switch n := n.(type) {
		case *ast.Text:
			if entering {
				b.Write(n.Segment.Value(p.markdown))
				if n.SoftLineBreak() || n.HardLineBreak() {
					b.WriteByte(' ')
				}
			}
		case *ast.String:
			if entering {
				b.Write(n.Value)
			}
		case *ast.AutoLink:
			if entering {
				b.Write(n.Label(p.markdown))
			}
		case *ast.CodeBlock, *ast.FencedCodeBlock:
			if entering {
				b.Write(n.Lines().Value(p.markdown))
			}
		default:
			if n.Type() == ast.TypeBlock {
				b.WriteByte(' ')
			}
		}
		return ast.WalkContinue, nil
	})
	return strings.Join(strings.Fields(b.String()), " ")
}

// html returns the content of the page, with the links that link has set.
func (p *page) html() (template.HTML, error) {
	var b bytes.Buffer
	err := converter.Renderer().Render(&b, p.markdown, p.doc)
	return template.HTML(b.String()), err
}
