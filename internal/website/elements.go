package main

import (
	"fmt"
	"html"
	"strings"

	"github.com/yuin/goldmark/ast"
	extension "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/util"
)

// elements renders what differs from plain Markdown: headings with links to themselves,
// and wide tables and code in boxes that scroll, also by keyboard.
type elements struct{}

// RegisterFuncs implements renderer.NodeRenderer.
func (elements) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindHeading, heading)
	r.Register(ast.KindCodeBlock, code)
	r.Register(ast.KindFencedCodeBlock, code)
	r.Register(extension.KindTable, table)
	r.Register(extension.KindTableCell, cell)
}

func heading(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	h := n.(*ast.Heading)
	id, _ := h.AttributeString("id")
	anchor := html.EscapeString(string(id.([]byte)))
	var err error
	switch {
	case entering:
		_, err = fmt.Fprintf(w, `<h%d id="%s">`, h.Level, anchor)
	case h.Level == 1:
		_, err = fmt.Fprintln(w, "</h1>")
	default:
		name := html.EscapeString((&page{markdown: source}).textOf(h))
		_, err = fmt.Fprintf(w, ` <a class="anchor" href="#%s" aria-label="Link to %s">#</a></h%d>`+"\n", anchor, name, h.Level)
	}
	return ast.WalkContinue, err
}

func code(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	_, err := fmt.Fprintf(w, "<pre tabindex=\"0\"><code>%s</code></pre>\n", html.EscapeString(string(n.Lines().Value(source))))
	return ast.WalkSkipChildren, err
}

func table(w util.BufWriter, _ []byte, _ ast.Node, entering bool) (ast.WalkStatus, error) {
	text := "</table></div>\n"
	if entering {
		text = `<div class="scroll" role="group" aria-label="Table" tabindex="0"><table>` + "\n"
	}
	_, err := w.WriteString(text)
	return ast.WalkContinue, err
}

// longestName is how many bytes of a name or date in a cell are kept in one line.
const longestName = 24

// cell makes an empty cell of the header a plain one, because it names no column, and keeps
// names and dates from being broken at their hyphens.
func cell(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	name, attributes := "td", ""
	if n.Parent().Kind() == extension.KindTableHeader && n.HasChildren() {
		name, attributes = "th", ` scope="col"`
	}
	var classes []string
	if c := n.(*extension.TableCell); c.Alignment != extension.AlignNone {
		classes = append(classes, c.Alignment.String())
	}
	if text := (&page{markdown: source}).textOf(n); strings.Contains(text, "-") && !strings.Contains(text, " ") && len(text) <= longestName {
		classes = append(classes, "name")
	}
	if len(classes) > 0 {
		attributes += fmt.Sprintf(` class="%s"`, strings.Join(classes, " "))
	}
	var err error
	if entering {
		_, err = fmt.Fprintf(w, "<%s%s>", name, attributes)
	} else {
		_, err = fmt.Fprintf(w, "</%s>\n", name)
	}
	return ast.WalkContinue, err
}
