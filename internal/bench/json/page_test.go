package json

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/internal/bench/corpus"
)

var page = flag.String("page", "", "write the candidates' figures into this Markdown file, between its markers")

// The lines of a page around the table.
const (
	pageBegin = "<!-- candidates: make bench-page -->\n"
	pageEnd   = "<!-- end of candidates -->\n"
)

const pageRounds = 3

// TestPage measures all candidates in turn and writes what it finds where -page
// says.
func TestPage(t *testing.T) {
	if *page == "" {
		t.Skip("without -page nothing is measured")
	}
	type column struct {
		name  string
		shape corpus.Shape
		lines [][]byte
	}
	var columns []column
	for _, shape := range corpus.Shapes() {
		columns = append(columns, column{string(shape), shape, split(corpus.Bytes(shape, 5000, 1))})
	}
	columns = append(columns, column{"recorded " + string(corpus.Claude), corpus.Claude, recorded(t, corpus.Claude)})

	rates := make([][][]float64, len(candidates))
	allocations := make([][]float64, len(candidates))
	for range pageRounds {
		for i, c := range candidates {
			if runnable(c.name) != nil {
				continue
			}
			rates[i] = slices.Grow(rates[i], len(columns))[:len(columns)]
			allocations[i] = slices.Grow(allocations[i], len(columns))[:len(columns)]
			for k, column := range columns {
				r := testing.Benchmark(func(b *testing.B) { through(b, c.new(), column.shape, column.lines) })
				rates[i][k] = append(rates[i][k], r.Extra[processor])
				allocations[i][k] = r.Extra[perLine]
			}
		}
	}

	var table bytes.Buffer
	table.WriteString("| MB a second of processor time (allocations a line) |")
	for _, column := range columns {
		fmt.Fprintf(&table, " %s |", column.name)
	}
	table.WriteString(" hostile lines read otherwise |\n|" + strings.Repeat(" --- |", len(columns)+2) + "\n")
	for i, c := range candidates {
		fmt.Fprintf(&table, "| %s |", c.name)
		if err := runnable(c.name); err != nil {
			fmt.Fprintf(&table, " cannot run here: %v |\n", err)
			continue
		}
		for k := range columns {
			slices.Sort(rates[i][k])
			fmt.Fprintf(&table, " %.0f (%.1f) |", rates[i][k][pageRounds/2], allocations[i][k])
		}
		fmt.Fprintf(&table, " %d of %d |\n", differences(i), len(hostiles()))
	}

	text, err := os.ReadFile(*page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), pageBegin)
	_, after, end := strings.Cut(rest, pageEnd)
	if !ok || !end {
		t.Fatalf("%s lacks the markers of the table", *page)
	}
	if err := os.WriteFile(*page, []byte(before+pageBegin+table.String()+pageEnd+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

// differences counts the hostile lines that a candidate reads otherwise than
// encoding/json.
func differences(candidate int) int {
	n := 0
	for _, h := range hostiles() {
		if verdict(candidates[candidate].new(), h.line) != verdict(candidates[0].new(), h.line) {
			n++
		}
	}
	return n
}
