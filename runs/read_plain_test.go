package runs

import (
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v4"
)

// fullInfo has a value in every field.
func fullInfo() Info {
	cost := 0.0425
	return Info{
		Version: 1, RunID: "20261121-0007233769-28482-1", ParentRunID: "20261121-0007220000-28000-1", PreviousRunID: "20261121-000721123-27000",
		ProjectID: "demo", TaskID: "task-20261121-000723-demo-1a2b3c", Agent: "one:local", ProcessOwnership: "managed", PID: 28490, PGID: 28491,
		StartTime: time.Date(2026, 11, 21, 0, 7, 23, 376949496, time.UTC), EndTime: time.Date(2026, 11, 21, 0, 8, 0, 0, time.UTC),
		ExitCode: -1, Status: StatusFailed, CWD: "/srv/straße", PromptPath: "/srv/runs/prompt.md", OutputPath: "/srv/runs/output.md",
		StdoutPath: "/srv/runs/agent-stdout.txt", StderrPath: "/srv/runs/agent-stderr.txt", CommandLine: "one exec --json - < /srv/runs/prompt.md",
		ErrorSummary: "agent exited with code 3", AgentVersion: "one 1.2.3", Process: "b0:4026531836:28490:123", Owner: "b0:4026531836:28482:122",
		Session: true, Model: "m-1", SessionID: "0197", Access: "write", Signal: "killed", ErrorKind: "quota", Error: "it's over: quota # used up",
		Usage: &Usage{Input: 1 << 40, Cached: 2, Output: 3, Reasoning: 4, CostUSD: &cost, Cumulative: true}, ToolCalls: 7,
		Warnings: []string{"one", "two: it's", "drei – vier"}, EventsPath: "/srv/runs/events.ndjson", EventsVersion: 1, RecordProblem: "the disk is full",
	}
}

func TestPlainReaderReadsEveryField(t *testing.T) {
	t.Parallel()
	want := fullInfo()
	for i, v := range reflect.ValueOf(want).Fields() {
		if v.IsZero() {
			t.Errorf("%s of the example is empty", i.Name)
		}
	}
	text, err := marshalInfo(&want)
	if err != nil {
		t.Fatal(err)
	}
	got, ok := parsePlain(string(text))
	if diff := cmp.Diff(want, got); !ok || diff != "" {
		t.Errorf("%v\n%s", diff, text)
	}
}

func TestPlainReaderMatchesTheLibrary(t *testing.T) {
	t.Parallel()
	for text, plain := range plainTexts {
		checkPlain(t, text)
		if _, ok := parsePlain(text); ok != plain {
			t.Errorf("%q is read without the library: %v, want %v", text, ok, plain)
		}
	}
}

// plainTexts maps a file to whether it is read without the library.
var plainTexts = map[string]bool{
	"version: 1\npid: 0\nsession: true\n":        true,
	"agent: x\nexit_code: -1\n":                  true,
	"agent: \"\"\nmodel: ''\n":                   true,
	"agent: 'it''s'\nmodel: \"a b\"\n":           true,
	"error: a:b#c\n":                             true,
	"model: true\nagent: 12\n":                   true, // strings, like the field
	"agent: grün 漢字 😀\n":                         true,
	"usage:\n  input: 1\nmodel: x\n":             true,
	"warnings:\n  - a\n  - 'b'\nmodel: x\n":      true,
	"end_time: 0001-01-01T00:00:00Z\n":           true,
	"usage:\n    input: 1\n    cost_usd: 0.25\n": true,
	"":                                     false,
	"agent: x":                             false,
	"agent:\n":                             false,
	"agent: x\nagent: y\n":                 false,
	"agent: null\n":                        false,
	"agent: ~\n":                           false,
	"agent: <<\n":                          false,
	"agent: - x\n":                         false,
	"agent: *x\n":                          false,
	"agent: !!str x\n":                     false,
	"agent: x # note\n":                    false,
	"agent: x: y\n":                        false,
	"agent: x:\n":                          false,
	"agent: x \n":                          false,
	"agent: x\n y\n":                       false,
	"agent: |\n  x\n":                      false,
	"agent: \"a\\nb\"\n":                   false,
	"agent: 'a'b'\n":                       false,
	"agent: '\n":                           false,
	"agent: a\u0085b\n":                    false,
	"agent: a\u2028b\n":                    false,
	"agent: a\xffb\n":                      false,
	"agent: a\tb\n":                        false,
	"agent: a\r\n":                         false,
	"pid: 010\n":                           false,
	"pid: 0x10\n":                          false,
	"pid: 1_0\n":                           false,
	"pid: +1\n":                            false,
	"pid: -0\n":                            false,
	"pid: '1'\n":                           false,
	"pid: 99999999999999999999\n":          false,
	"session: yes\n":                       false,
	"start_time: 2026-11-21\n":             false,
	"start_time: 2026-11-21T00:07:23,3Z\n": false,
	"start_time: 2026-11-21T00:07:23+02:00\n":      false,
	"start_time: '2026-11-21T00:07:23Z'\n":         false,
	"future: x\nagent: y\n":                        false,
	"usage:\nagent: x\n":                           false,
	"usage:\n  input: 1\n   output: 2\n":           false,
	"usage:\n  input: 1\n  future: 2\n":            false,
	"usage: {input: 1}\n":                          false,
	"usage:\n  cost_usd: 1e-05\n":                  false,
	"warnings:\n- a\n":                             false,
	"warnings:\n  - a: b\n":                        false,
	"warnings:\n  - - a\n":                         false,
	"warnings:\n  - a\n    b\n":                    false,
	"warnings: []\n":                               false,
	"---\nagent: x\n":                              false,
	"agent: x\n---\nagent: y\n":                    false,
	"agent: x\n...\n":                              false,
	"\ufeffagent: x\n":                             false,
	"# note\nagent: x\n":                           false,
	"\nagent: x\n":                                 false,
	"agent : x\n":                                  false,
	"\"agent\": x\n":                               false,
	"? agent\n: x\n":                               false,
	"{agent: x}\n":                                 false,
	"agent:x\n":                                    false,
	"agent: " + strings.Repeat("x", 2000) + "\n":   true,
	"pid: 999999999999999999\nusage:\n input: 5\n": true,
}

// checkPlain fails the test if the plain reader and the library differ.
func checkPlain(t *testing.T, text string) {
	t.Helper()
	got, ok := parsePlain(text)
	if !ok {
		return
	}
	var want Info
	if err := yaml.Load([]byte(text), &want, yaml.WithV3Defaults()); err != nil {
		t.Fatalf("%q: the library has: %v", text, err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("%q: %s", text, diff)
	}
}

// FuzzPlainInfo compares the plain reader with the library.
func FuzzPlainInfo(f *testing.F) {
	for text := range plainTexts {
		f.Add(text)
	}
	full := fullInfo()
	text, err := marshalInfo(&full)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(text))
	golden, err := filepath.Glob("testdata/agent-protocol/*/*/runs/*/run-info.yaml")
	if err != nil || len(golden) == 0 {
		f.Fatalf("%d files, %v", len(golden), err)
	}
	for _, path := range golden {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Fuzz(func(t *testing.T, text string) { checkPlain(t, text) })
}

// FuzzWrittenInfo checks that what is written is read back unchanged.
func FuzzWrittenInfo(f *testing.F) {
	f.Add("it's: # over", "- a", int64(1), 0.5, int64(0))
	f.Add("null", "~", int64(math.MinInt64), 1e-9, int64(1<<60))
	f.Fuzz(func(t *testing.T, text, other string, n int64, cost float64, at int64) {
		info := fullInfo()
		info.Error, info.Warnings = text, []string{other, text}
		info.Usage.Input, info.Usage.CostUSD = n, &cost
		info.StartTime = time.Unix(at%(1<<33), at&(1<<29-1)).UTC()
		written, err := marshalInfo(&info)
		if err != nil {
			t.Skip()
		}
		checkPlain(t, string(written))
	})
}
