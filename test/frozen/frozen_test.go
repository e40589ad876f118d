//go:build unix

package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/diff"

	_ "github.com/busdk/bus-agent/backends/all"
	_ "github.com/busdk/bus-agent/backends/more"
	_ "github.com/busdk/bus-agent/backends/openai"
	_ "github.com/busdk/bus-agent/backends/perplexity"
	_ "github.com/busdk/bus-agent/backends/xai"
)

var update = flag.Bool("update", false, "write the files in testdata")

func TestMain(m *testing.M) {
	syscall.Umask(0o022)
	program()
	if err := build(); err != nil {
		panic(err)
	}
	flag.Parse()
	code := m.Run()
	_ = os.RemoveAll(filepath.Dir(stub))
	if code == 0 && flag.Lookup("test.run").Value.String() == "" {
		code = stale()
	}
	os.Exit(code)
}

// stub is the path of the program that plays the CLIs. Its folder has all temporary files.
var stub string

// build makes stub. The characters of its path are such that no shell and no CLI needs quotes.
func build() error {
	parent := os.TempDir()
	if regexp.MustCompile(`[^\w./-]`).MatchString(parent) {
		parent = "/tmp"
	}
	dir, err := os.MkdirTemp(parent, "frozen")
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return err
	}
	stub = filepath.Join(dir, "stub")
	out, err := exec.Command("go", "build", "-buildvcs=false", "-o", stub, ".").CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// compared are the files of testdata that a test compared.
var compared = struct {
	sync.Mutex
	names map[string]bool
}{names: map[string]bool{}}

// golden compares lines with the file name in testdata, or writes it.
func golden(t *testing.T, name string, lines []string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	compared.Lock()
	compared.names[path] = true
	compared.Unlock()
	got := strings.Join(lines, "\n") + "\n"
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; make frozen-update writes it", err)
	}
	if changes := diff.Diff(path, want, "now", []byte(got)); changes != nil {
		t.Errorf("%s differs; if that is meant, run make frozen-update:\n%s", path, changes)
	}
}

// stale reports the files of testdata that no test compared, or removes them, and returns
// the exit code.
func stale() (code int) {
	files, _ := filepath.Glob("testdata/*/*.txt")
	for _, path := range files {
		if compared.names[path] {
			continue
		}
		if *update {
			_ = os.Remove(path)
			continue
		}
		fmt.Printf("%s: no test compares this file; run make frozen-update\n", path)
		code = 1
	}
	return code
}

var random = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "UUID"},
	{regexp.MustCompile(`(BUS_AGENT_RUN=)\S+`), "${1}RUN"},
	{regexp.MustCompile(`(/bus-agent-)[0-9a-f]{12}(-\d+)`), "${1}RANDOM$2"},
	{regexp.MustCompile(`(/\.bus-agent-owner: ).*`), "${1}OWNER"},
}

// neutral returns text without what differs between two runs: root and random values.
func neutral(text, root string) string {
	text = strings.ReplaceAll(text, root, "$ROOT")
	for _, r := range random {
		text = r.pattern.ReplaceAllStringFunc(text, func(found string) string {
			if found == resumed {
				return found
			}
			return r.pattern.ReplaceAllString(found, r.with)
		})
	}
	return text
}

// shown returns content as lines after a label. A long line and the middle of a long text
// are replaced by their checksum, and a line of JSON is indented.
func shown(label, content string) (lines []string) {
	const most, edge, width = 400, 12, 1000
	switch {
	case content == "":
		return []string{label + " is empty"}
	case !strings.HasSuffix(content, "\n"):
		content += "\n[no final line break]\n"
	}
	for line := range strings.Lines(content) {
		line = strings.TrimSuffix(line, "\n")
		var indented bytes.Buffer
		if len(line) > 100 && (line[0] == '{' || line[0] == '[') && json.Indent(&indented, []byte(line), "", " ") == nil {
			lines = append(lines, strings.Split(indented.String(), "\n")...)
		} else {
			lines = append(lines, line)
		}
	}
	if len(lines) > most {
		sum := sha256.Sum256([]byte(content))
		cut := fmt.Sprintf("[%d lines, %d bytes, sha256 %x]", len(lines), len(content), sum[:8])
		lines = slices.Concat(lines[:edge], []string{cut}, lines[len(lines)-edge:])
	}
	for i, line := range lines {
		if len(line) > width {
			line = fmt.Sprintf("%s [%d bytes, sha256 %x]", line[:100], len(line), sha256.Sum256([]byte(line)))
		}
		lines[i] = label + ": " + strings.ToValidUTF8(strings.ReplaceAll(line, "\x00", `\0`), "?")
	}
	return lines
}

// changes returns what has to be done to the lines before to get after.
func changes(before, after []string) (lines []string) {
	text := func(lines []string) []byte { return []byte(strings.Join(lines, "\n") + "\n") }
	inHunk := false
	for line := range strings.Lines(string(diff.Diff("before", text(before), "after", text(after)))) {
		inHunk = inHunk || line[0] == '@'
		if inHunk && (line[0] == '-' || line[0] == '+') {
			lines = append(lines, line[:1]+" "+strings.TrimSuffix(line[1:], "\n"))
		}
	}
	return lines
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func write(t *testing.T, name, content string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
}
