package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// What the program of the first version wrote is read, and stays readable: these files are
// never written again. docs/stability.md promises it.
func TestFilesOfTheFirstVersion(t *testing.T) {
	t.Parallel()
	s := newSandbox(t, "claude", "")
	state := s.path("home/.local/state/bus-agent")
	if err := os.CopyFS(state, os.DirFS("testdata/written-by-v1/state")); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(state, "sessions/2c667cc2"), 0o700); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("testdata/written-by-v1/preferences.json")
	if err == nil {
		err = os.WriteFile(s.path("preferences.json"), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args  string
		wants []string // patterns of whole lines
	}{
		{"runs list", []string{
			`20261126-2219194205-14947-1 +completed +claude .* work/task-20261126-221919-claude-539f8e`,
			`20261126-2219162376-14348-1 +unknown +codex .* demo/task-20261126-220100-killed`,
			`20261126-2219161017-14251-2 +completed +codex .* 101ms +demo/task-20261126-220000-tests`,
			`20261126-2219160052-14251-1 +failed +claude .* demo/task-20261126-220000-tests`,
		}},
		{"runs show 20261126-2219160052-14251-1", []string{`error: .*You have no quota left`, `exit code: +1`}},
		{"runs show 20261126-2219161017-14251-2", []string{`before it: +20261126-2219160052-14251-1 claude, failed`, `tokens: +1200 in \(1000 cached\), 34 out \(5 reasoning\)`}},
		{"runs output 20261126-2219161017-14251-2", []string{`All tests pass\.`}},
		{"runs events --text 20261126-2219161017-14251-2", []string{`> Do the tests pass\?`, `\[tool\] command: /bin/sh -lc 'go test ./\.\.\.'`, `\[file\] update a\.go`, `All tests pass\.`}},
		{"runs events --text 20261126-2219194205-14947-1", []string{`> Hello`, `> again`, `you said again`}},
		{"session list --all", []string{`2c667cc2 +talk +claude +stopped .* /srv/bus/work`}},
		{"session show talk", []string{`runtime's session: +5e551011-0000-4000-8000-000000000001`, `record: +20261126-2219194205-14947-1`, `turns: +2, 0 waiting`}},
		{"config show", []string{`runtime +claude +bus-agent\.runtime`, `fallback +codex,gemini .*`, `timeout +10m .*`, `record +on .*`, `hooks .*/srv/events.ndjson.*`, `mcp .*/srv/notes.*`, `policy .*accept.*`}},
	} {
		got := s.exits(0, strings.Fields(c.args)...)
		for _, want := range c.wants {
			if !regexp.MustCompile(`(?m)^` + want + `$`).MatchString(got) {
				t.Errorf("%s: no line %s in\n%s", c.args, want, got)
			}
		}
	}
}

// Events of a version that the program does not know are refused, not misread.
func TestNewerEventsAreRefused(t *testing.T) {
	t.Parallel()
	s := newSandbox(t, "codex", "")
	root := s.path("home/.local/state/bus-agent/runs")
	if err := os.CopyFS(root, os.DirFS("testdata/written-by-v1/state/runs")); err != nil {
		t.Fatal(err)
	}
	const run = "20261126-2219161017-14251-2"
	name := filepath.Join(root, "demo/task-20261126-220000-tests/runs", run, "run-info.yaml")
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	newer := strings.Replace(string(text), "events_version: 1\n", "events_version: 2\n", 1)
	if err := os.WriteFile(name, []byte(newer), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := s.exits(1, "runs", "events", run); !strings.Contains(got, "version 2 of events; this program reads version 1") || strings.Count(got, "\n") != 1 {
		t.Error(got)
	}
	if got := s.exits(0, "runs", "output", run); got != "All tests pass.\n" {
		t.Error(got)
	}
}

// The page lists the preference keys that exist.
func TestStabilityListsThePreferenceKeys(t *testing.T) {
	t.Parallel()
	keys := func(file, pattern string) (list []string) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(text), -1) {
			list = append(list, match[1])
		}
		slices.Sort(list)
		return list
	}
	exist := keys("../../runner/sources.go", `(?m)^\tKey\w+ += "(bus-agent\.[\w-]+)"$`)
	if listed := keys("../../docs/stability.md", "(?m)^- `(bus-agent\\.[\\w-]+)`$"); !slices.Equal(exist, listed) || len(exist) == 0 {
		t.Errorf("the page lists %q, want %q", listed, exist)
	}
}
