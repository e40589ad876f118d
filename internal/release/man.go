package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"
)

// link is a link of Markdown.
var link = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)

// manPages returns a man page for every section of docs/cli.md, which is at name: for
// bus-agent and for each of its commands. date is that of the commit.
func manPages(name, version string, date time.Time) (files []file, err error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	for section := range strings.SplitSeq(string(text), "\n## ") {
		heading, body, _ := strings.Cut(section, "\n")
		if strings.HasPrefix(heading, "# ") {
			continue // the contents
		}
		page := "bus-agent"
		if heading != page {
			page += "-" + strings.ReplaceAll(heading, " ", "-")
		}
		summary, rest, _ := strings.Cut(strings.TrimSpace(link.ReplaceAllString(body, "$1")), "\n")
		var man strings.Builder
		fmt.Fprintf(&man, ".TH %q 1 %q %q\n", strings.ToUpper(page), date.Format(time.DateOnly), "bus-agent "+version)
		fmt.Fprintf(&man, ".SH NAME\n%s \\- %s\n.SH DESCRIPTION\n", roff(page), roff(strings.TrimSuffix(summary, ".")))
		shown := false // as it is
		for line := range strings.Lines(strings.TrimSpace(rest)) {
			switch line = strings.TrimRight(line, "\n"); {
			case line == "```text":
				man.WriteString(".nf\n")
				shown = true
			case line == "```":
				man.WriteString(".fi\n")
				shown = false
			case shown:
				man.WriteString(roff(line) + "\n")
			case line == "":
				man.WriteString(".PP\n")
			default:
				man.WriteString(roff(strings.ReplaceAll(line, "`", "")) + "\n")
			}
		}
		if page != "bus-agent" {
			man.WriteString(".SH SEE ALSO\n.BR bus-agent (1)\n")
		}
		files = append(files, file{"share/man/man1/" + page + ".1", []byte(man.String()), 0o644})
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s has no sections", name)
	}
	return files, nil
}

// roff returns a line that roff shows as it is.
func roff(line string) string {
	line = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(line)
	if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
		line = `\&` + line
	}
	return line
}
