package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/internal/commands"
)

var update = flag.Bool("update", false, "write docs/cli.md anew")

// TestReferenceIsUpToDate compares docs/cli.md with the help of every command.
func TestReferenceIsUpToDate(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("# The command line of bus-agent\n\n" +
		"This is the output of `bus-agent help` for every command. Regenerate it with\n" +
		"`go test ./cmd/bus-agent -run TestReferenceIsUpToDate -update`.\n")
	writeReference(t, &b)

	name := filepath.Join("..", "..", "docs", "cli.md")
	if *update {
		if err := os.WriteFile(name, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != b.String() {
		t.Error("docs/cli.md is out of date; run with -update and look at what git shows")
	}
}

// writeReference appends the help of the command that path names and of all
// below it.
func writeReference(t *testing.T, b *strings.Builder, path ...string) {
	var out, errs bytes.Buffer
	code := commands.Main(t.Context(), &commands.Env{
		Args: append([]string{"help"}, path...), Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Dir: t.TempDir(),
	})
	if code != 0 {
		t.Fatalf("help %q: %s", path, errs.String())
	}
	b.WriteString("\n## bus-agent")
	for _, word := range path {
		b.WriteString(" " + word)
	}
	b.WriteString("\n\n```text\n" + out.String() + "```\n")
	_, list, group := strings.Cut(out.String(), "\nCommands:\n")
	if !group {
		return
	}
	list, _, _ = strings.Cut(list, "\n\n")
	for line := range strings.Lines(list) {
		if word := strings.TrimPrefix(line, "  "); word[0] != ' ' {
			writeReference(t, b, append(path[:len(path):len(path)], strings.Fields(word)[0])...)
		}
	}
}
