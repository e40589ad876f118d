//go:build linux || darwin

package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// A row is one figure of the table.
type row struct {
	work   string
	figure string
	limit  string // what it is measured against, with its figure
	ratio  string // how the two compare
	target string // empty: there is none
	met    bool
}

// A table prints its rows as they come and remembers them as Markdown.
type table struct {
	out      io.Writer
	markdown bool
	page     bytes.Buffer
}

func (t *table) head(machine string) {
	fmt.Fprintf(&t.page, "%s.\n\n| work | figure | limit | compared | target | met |\n| --- | --- | --- | --- | --- | --- |\n", machine)
	if t.markdown {
		t.out.Write(t.page.Bytes())
		return
	}
	fmt.Fprintf(t.out, "%s\n\n", machine)
}

func (t *table) add(r row) {
	met := ""
	switch {
	case r.target != "" && r.met:
		met = "yes"
	case r.target != "":
		met = "no"
	}
	line := fmt.Sprintf("| %s |\n", strings.Join([]string{r.work, r.figure, r.limit, r.ratio, r.target, met}, " | "))
	t.page.WriteString(line)
	if t.markdown {
		io.WriteString(t.out, line)
		return
	}
	fmt.Fprintf(t.out, "%-74s %-44s %-40s %-18s %-30s %s\n", r.work, r.figure, r.limit, r.ratio, r.target, met)
}

// marks returns the lines of a page around the table called name.
func marks(name string) (begin, end string) {
	return "<!-- " + name + ": make bench-page -->\n", "<!-- end of " + name + " -->\n"
}

// writePage puts the table into a page, in place of the previous one called name.
func (t *table) writePage(path, name string) error {
	page, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	begin, end := marks(name)
	before, rest, ok := strings.Cut(string(page), begin)
	_, after, ended := strings.Cut(rest, end)
	if !ok || !ended {
		return fmt.Errorf("%s has no lines %q and %q", path, strings.TrimSpace(begin), strings.TrimSpace(end))
	}
	return os.WriteFile(path, []byte(before+begin+t.page.String()+end+after), 0o644)
}

func milliseconds(d time.Duration) string { return fmt.Sprintf("%.3f ms", ms(d)) }

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// rate returns megabytes a second.
func rate(size int64, d time.Duration) float64 { return float64(size) / 1e6 / d.Seconds() }

func perSecond(size int64, d time.Duration) string { return fmt.Sprintf("%.0f MB/s", rate(size, d)) }

func times(ratio float64) string { return fmt.Sprintf("%.2f ×", ratio) }

func megabytes(size int64) string {
	if size >= 950e6 {
		return fmt.Sprintf("%.1f GB", float64(size)/1e9)
	}
	return fmt.Sprintf("%.0f MB", float64(size)/1e6)
}

func mebibytes(size int64) string { return fmt.Sprintf("%.1f MiB", float64(size)/(1<<20)) }
