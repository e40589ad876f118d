package all_test

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/backendtest"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/runner"
)

func TestMain(m *testing.M) { backendtest.Main(m) }

// A verdict is what a run must come to when its CLI writes what it was once
// seen to write and exits as it did then.
type verdict struct {
	name    string
	runtime string

	// source is where it was seen: a recording in the runtime's testdata, or
	// "seen" for what was measured and not recorded, "docs" for what only the
	// CLI's documentation or its users say.
	source string
	stdout string // where source is no recording
	stderr string
	exit   int
	signal bool // it kills itself instead
	hang   bool // it does not exit: the run must end it

	resume string            // session that is resumed
	files  map[string]string // in the workdir

	kind     error // nil for success
	reason   string
	tail     string // of standard error, in the error
	text     string
	usage    *agent.Usage
	repeated bool
}

func tokens(input, cached, output, reasoning int64) *agent.Usage {
	return &agent.Usage{Input: input, Cached: cached, Output: output, Reasoning: reasoning}
}

func priced(u *agent.Usage, cost float64) *agent.Usage {
	u.CostUSD = &cost
	return u
}

func cumulative(u *agent.Usage) *agent.Usage {
	u.Cumulative = true
	return u
}

func verdicts() []verdict {
	var all []verdict
	for id, list := range map[string][]verdict{
		"claude": claudeVerdicts, "codex": codexVerdicts, "cursor": cursorVerdicts, "gemini": geminiVerdicts,
	} {
		for _, v := range list {
			v.runtime = id
			v.name = id + "/" + cmp.Or(v.name, strings.TrimSuffix(v.source, ".ndjson"))
			all = append(all, v)
		}
	}
	return all
}

func TestVerdicts(t *testing.T) {
	t.Parallel()
	for _, v := range verdicts() {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			v.check(t)
		})
	}
}

// Every recording has a verdict, so that none that fails is taken for a success
// unseen.
func TestEveryRecordingHasAVerdict(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	names := map[string]bool{}
	for _, v := range verdicts() {
		known[v.runtime+"/"+v.source] = true
		if names[v.name] {
			t.Errorf("two verdicts are called %s", v.name)
		}
		names[v.name] = true
	}
	for _, rt := range registry.Default().All() {
		for file := range backendtest.Recorded(t, filepath.Join("..", rt.ID, "testdata")) {
			if !known[rt.ID+"/"+filepath.Base(file)] {
				t.Errorf("%s has no verdict", file)
			}
		}
	}
}

// output returns what the CLI writes on standard output.
func (v verdict) output(t *testing.T) string {
	t.Helper()
	if !strings.HasSuffix(v.source, ".ndjson") {
		return v.stdout
	}
	if v.stdout != "" {
		t.Fatalf("%s has a recording and an output of its own", v.name)
	}
	output, err := os.ReadFile(filepath.Join("..", v.runtime, "testdata", v.source))
	if err != nil {
		t.Fatal(err)
	}
	return string(output)
}

func (v verdict) check(t *testing.T) {
	t.Helper()
	rt, ok := registry.Default().Lookup(v.runtime)
	if !ok {
		t.Fatalf("%s is not registered", v.runtime)
	}
	steps := []backendtest.Step{backendtest.PrintErr(v.stderr), backendtest.Print(v.output(t))}
	switch {
	case v.hang:
		steps = append(steps, backendtest.Hang())
	case v.signal:
		steps = append(steps, backendtest.Die())
	default:
		steps = append(steps, backendtest.Exit(v.exit))
	}
	bin, work := t.TempDir(), t.TempDir()
	if _, err := backendtest.Install(bin, rt.Executables[0], steps...); err != nil {
		t.Fatal(err)
	}
	for name, text := range v.files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(work, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(work, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := runner.Runner{
		Environ: []string{"PATH=" + bin, "HOME=" + t.TempDir(), "TMPDIR=" + t.TempDir(), "GORACE=atexit_sleep_ms=0"},
		Warn:    func(string) {},
	}
	result, err := r.Run(t.Context(), agent.Request{Runtime: v.runtime, Prompt: "do it", Workdir: work, Resume: v.resume})

	v.checkError(t, result, err)
	if result.Text != v.text {
		t.Errorf("text %q, want %q", result.Text, v.text)
	}
	if result.Repeated != v.repeated {
		t.Errorf("repeated is %t", result.Repeated)
	}
	if diff := gocmp.Diff(v.usage, result.Usage); diff != "" {
		t.Errorf("usage (-want +got):\n%s", diff)
	}
}

func (v verdict) checkError(t *testing.T, result agent.Result, err error) {
	t.Helper()
	code := v.exit
	if v.hang || v.signal {
		code = -1
	}
	if result.ExitCode != code || (result.Signal == "") == (v.hang || v.signal) {
		t.Errorf("exit code %d, signal %q, want %d", result.ExitCode, result.Signal, code)
	}
	if v.kind == nil {
		if err != nil {
			t.Errorf("Run = %v, want success", err)
		}
		return
	}
	exit, ok := errors.AsType[*agent.ExitError](err)
	if !ok || !errors.Is(err, v.kind) {
		t.Fatalf("Run = %v, want a failed agent of kind %v", err, v.kind)
	}
	if exit.Reason != v.reason {
		t.Errorf("reason %q, want %q", exit.Reason, v.reason)
	}
	if exit.Stderr != v.tail {
		t.Errorf("standard error %q, want %q", exit.Stderr, v.tail)
	}
	if exit.Code != code {
		t.Errorf("the error has exit code %d, want %d", exit.Code, code)
	}
}
