package all_test

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/runner"
)

// A verdict is what a run must come to when its CLI writes what it was once
// seen to write and exits as it did then.
type verdict struct {
	name    string
	runtime string

	// source is where it was seen: a recording in the runtime's testdata, or
	// "seen" for what was measured and not recorded, "docs" for what only the
	// CLI's documentation or its users say.
	source string
	stdout string // if source is not a recording
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
	for _, rt := range packaged() { // package more has what the others say
		for file := range recordings(t, rt) {
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
		t.Fatalf("%s has both a recording and a separate output", v.name)
	}
	output, err := os.ReadFile(filepath.Join("..", v.runtime, "testdata", v.source))
	if err != nil {
		t.Fatal(err)
	}
	return string(output)
}

// installReplay makes a CLI that reads its input, writes what it is given, and
// ends as a line of shell says. There are a hundred of these, so it is not a test
// binary; and it is a link, as a file that was just written may be busy.
func installReplay(t *testing.T, file, stdout, stderr, end string) {
	t.Helper()
	for suffix, text := range map[string]string{".out": stdout, ".err": stderr, ".end": end + "\n"} {
		if err := os.WriteFile(file+suffix, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	script, err := filepath.Abs(filepath.Join("testdata", "replay"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(script, file); err != nil {
		t.Fatal(err)
	}
}

// check checks the verdict with an events callback, which needs every event decoded,
// and without one.
func (v verdict) check(t *testing.T) {
	t.Helper()
	v.checkRun(t, nil)
	v.checkRun(t, func(*agent.Event) error { return nil })
}

func (v verdict) checkRun(t *testing.T, events func(*agent.Event) error) {
	t.Helper()
	rt, ok := registry.Default().Lookup(v.runtime)
	if !ok {
		t.Fatalf("%s is not registered", v.runtime)
	}
	end := fmt.Sprintf("exit %d", v.exit)
	switch {
	case v.hang:
		end = "exec sleep 60"
	case v.signal:
		end = "kill -KILL $$"
	}
	bin, work := t.TempDir(), t.TempDir()
	installReplay(t, filepath.Join(bin, rt.Executables[0]), v.output(t), v.stderr, end)
	for name, text := range v.files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(work, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(work, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := runner.Runner{
		Environ: []string{"PATH=" + bin + ":/usr/bin:/bin", "HOME=" + t.TempDir(), "TMPDIR=" + t.TempDir()},
		Warn:    func(string) {},
	}
	result, err := r.Run(t.Context(), agent.Request{Runtime: v.runtime, Prompt: "do it", Workdir: work, Resume: v.resume}, agent.Output{Events: events})

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
