package soak

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/backendtest"
	"github.com/busdk/bus-agent/instructions"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/runner"
)

// sessionFiles are where CLIs with a private home write sessions; %d separates those
// of two runs apart.
var sessionFiles = map[string]string{
	"codex":  "$CODEX_HOME/sessions/2026/01/02/rollout-2026-01-02T03-04-05-01a1fb7b-3d6d-7b52-8c0c-03818000000%d.jsonl",
	"gemini": "$GEMINI_CLI_HOME/.gemini/tmp/work/chats/session-2026-01-02T03-04-1bca664%d.jsonl",
}

// Two runs at once in one workdir, while it is cleaned without pause: each gets
// what a run alone gets and keeps it to its end, and afterwards the workdir is as
// it was.
func TestRunsShareAWorkdirThatIsBeingCleaned(t *testing.T) {
	atOnce(t)
	for _, rt := range registry.Default().All() {
		for name, trust := range map[string]bool{rt.ID: false, rt.ID + " trusted": true} {
			t.Run(name, func(t *testing.T) {
				atOnce(t)
				for range size(10, 1) {
					w := newWorkdir(t, rt, trust)
					w.share(t)
				}
			})
		}
	}
}

// A workdir is a directory in a repository that runs share.
type workdir struct {
	runtime registry.Runtime
	trust   bool
	root    string // of all
	dir     string
	tmp     string
	owned   []instructions.Owned
	before  map[string]string
}

func newWorkdir(t *testing.T, rt registry.Runtime, trust bool) *workdir {
	t.Helper()
	w := &workdir{runtime: rt, trust: trust, root: t.TempDir()}
	w.dir, w.tmp = filepath.Join(w.root, "repository", "pkg"), filepath.Join(w.root, "tmp")
	for name, text := range map[string]string{
		"repository/.git/HEAD":          "ref: refs/heads/main\n",
		"repository/AGENTS.md":          strings.Repeat("a rule of the root\n", 500),
		"repository/pkg/AGENTS.md":      strings.Repeat("a rule of the directory\n", 500),
		"repository/pkg/.gitignore":     "*.tmp",
		"home/.codex/auth.json":         "{}",
		"home/.gemini/oauth_creds.json": "{}",
		"tmp/keep":                      "",
	} {
		name = filepath.Join(w.root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if rt.Instructions != nil {
		w.owned = rt.Instructions.Owned
	}
	w.before = w.files(t)
	return w
}

// files are all files of the repository and for temporary use.
func (w *workdir) files(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, tree := range []string{filepath.Join(w.root, "repository"), w.tmp} {
		if err := filepath.WalkDir(tree, func(name string, entry os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			all[name] = entry.Type().String()
			if entry.Type().IsRegular() {
				text, err := os.ReadFile(name)
				all[name] += string(text)
				return err
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// A visit is one run in the workdir that waits until it is let go.
type visit struct {
	agent   *backendtest.Agent
	gate    *backendtest.Gate
	started chan struct{}
	ended   chan error
	stopped bool
}

// begin begins run number n. beforeStart is called when everything is arranged.
func (w *workdir) begin(t *testing.T, n int, beforeStart func()) *visit {
	t.Helper()
	gate, err := backendtest.NewGate(filepath.Join(w.root, fmt.Sprint("gate", n)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { gate.Close() })
	v := &visit{gate: gate, started: make(chan struct{}), ended: make(chan error, 1)}
	steps := []backendtest.Step{backendtest.PrintErr("started\n"), backendtest.Wait(gate)}
	if file, ok := sessionFiles[w.runtime.ID]; ok {
		steps = append(steps, backendtest.WriteFile(fmt.Sprintf(file, n), "{}\n"))
	}
	bin := filepath.Join(w.root, fmt.Sprint("bin", n))
	if v.agent, err = backendtest.Install(bin, w.runtime.Executables[0], steps...); err != nil {
		t.Fatal(err)
	}
	r := runner.Runner{
		Environ: []string{"PATH=" + bin, "HOME=" + filepath.Join(w.root, "home"), "TMPDIR=" + w.tmp, "IS_SANDBOX=1", "GORACE=atexit_sleep_ms=0"},
		Warn:    func(line string) { t.Errorf("run %d warns: %s", n, line) },
	}
	go func() {
		_, err := r.Run(t.Context(), agent.Request{
			Runtime: w.runtime.ID, Prompt: "x", Workdir: w.dir, TrustWorkspace: w.trust, RequireInstructions: true,
		}, agent.Output{Started: func(agent.Start) { beforeStart() }, Stderr: writerFunc(func(b []byte) (int, error) {
			if !v.stopped {
				v.stopped = true
				close(v.started)
			}
			return len(b), nil
		})})
		v.ended <- err
	}()
	return v
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// seen waits for the start of the agent and returns what it found then.
func (v *visit) seen(t *testing.T) *backendtest.Invocation {
	t.Helper()
	select {
	case <-v.started:
	case err := <-v.ended:
		t.Fatalf("the agent was not started: %v", err)
	}
	seen, err := v.agent.Invocation()
	if err != nil {
		t.Fatal(err)
	}
	return seen
}

// end lets the agent go and waits for the end of the run.
func (v *visit) end(t *testing.T) {
	t.Helper()
	if err := v.gate.Open(); err != nil {
		t.Fatal(err)
	}
	// The agent reports no result, which is all that may be wrong.
	if err := <-v.ended; err != nil && !errors.Is(err, agent.ErrAgent) {
		t.Error(err)
	}
}

func (w *workdir) clean(t *testing.T) {
	t.Helper()
	if _, err := instructions.Clean(t.Context(), w.dir, w.owned); err != nil {
		t.Errorf("cleaning: %v", err)
	}
}

func (w *workdir) share(t *testing.T) {
	alone := w.begin(t, 0, func() {})
	want := w.given(alone.seen(t))
	alone.end(t)
	w.clean(t)
	w.expectAsBefore(t, "a run alone")

	// Cleaning continues until the runs may end.
	stop := w.keepCleaning(t)
	first := w.begin(t, 1, func() { w.clean(t) })
	second := w.begin(t, 2, func() { w.clean(t) })
	for n, v := range []*visit{first, second} {
		seen := v.seen(t)
		w.expectGiven(t, fmt.Sprintf("run %d", n+1), want, w.given(seen))
		w.clean(t)
		w.expectKept(t, fmt.Sprintf("run %d", n+1), seen)
	}
	stop()
	first.end(t)
	second.end(t)
	w.expectSessions(t, 1, 2)
	w.clean(t)
	w.expectAsBefore(t, "two runs")

	// Cleaning continues while they end.
	first, second = w.begin(t, 3, func() {}), w.begin(t, 4, func() {})
	first.seen(t)
	second.seen(t)
	stop = w.keepCleaning(t)
	first.end(t)
	second.end(t)
	stop()
	w.clean(t)
	w.expectAsBefore(t, "two runs that end while it is cleaned")
}

// keepCleaning cleans until stop is called. It leaves the lock of the workdir to
// others in between: a waiter tries every few milliseconds.
func (w *workdir) keepCleaning(t *testing.T) (stop func()) {
	quit, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-quit:
				return
			case <-time.After(3 * time.Millisecond):
				w.clean(t)
			}
		}
	}()
	stop = sync.OnceFunc(func() {
		close(quit)
		<-ended
	})
	t.Cleanup(stop)
	return stop
}

// random matches the names that differ from run to run.
var random = regexp.MustCompile(`[0-9a-f]{16,}|bus-agent-[A-Za-z0-9-]+`)

// given returns all that a run was given, as text, without what differs from run
// to run.
func (w *workdir) given(seen *backendtest.Invocation) []string {
	var all []string
	add := func(what, text string) { all = append(all, random.ReplaceAllString(what+": "+text, "…")) }
	for _, text := range seen.Args {
		add("argument", text)
	}
	add("input", string(seen.Stdin))
	for _, text := range seen.Descriptors {
		add("descriptor", string(text))
	}
	homes := w.homes(seen)
	for _, name := range slices.Sorted(maps.Keys(seen.Files)) {
		inHome := slices.ContainsFunc(homes, func(home string) bool { return strings.HasPrefix(name, home+"/") })
		// Others have homes in the same directories.
		if _, was := w.before[name]; was || inHome || !random.MatchString(strings.TrimPrefix(name, w.root)) {
			add("file "+strings.TrimPrefix(name, w.root), string(seen.Files[name]))
		}
	}
	return all
}

// homes returns the directories of the workdir that variables of the agent name.
func (w *workdir) homes(seen *backendtest.Invocation) (dirs []string) {
	for _, entry := range seen.Env {
		_, value, _ := strings.Cut(entry, "=")
		for _, parent := range []string{w.dir, w.tmp} {
			if strings.HasPrefix(value, parent+"/") {
				dirs = append(dirs, value)
			}
		}
	}
	return dirs
}

func (w *workdir) expectGiven(t *testing.T, who string, want, have []string) {
	t.Helper()
	for _, text := range want {
		if !slices.Contains(have, text) {
			t.Errorf("%s was not given %.300q", who, text)
		}
	}
}

// expectKept checks that the files of a run still exist, as the run found them.
func (w *workdir) expectKept(t *testing.T, who string, seen *backendtest.Invocation) {
	t.Helper()
	for _, home := range w.homes(seen) {
		if _, err := os.Stat(home); err != nil {
			t.Errorf("%s lost its home: %v", who, err)
		}
		for name, text := range seen.Files {
			if !strings.HasPrefix(name, home+"/") {
				continue
			}
			if target, err := os.Readlink(name); err == nil {
				if "-> "+target != string(text) {
					t.Errorf("%s: link %s leads to %s", who, name, target)
				}
				continue
			}
			if now, err := os.ReadFile(name); err != nil || string(now) != string(text) {
				t.Errorf("%s: %s was %.100q and is %.100q, %v", who, name, text, now, err)
			}
		}
	}
}

// expectSessions checks that the sessions of the runs are kept.
func (w *workdir) expectSessions(t *testing.T, numbers ...int) {
	t.Helper()
	file, ok := sessionFiles[w.runtime.ID]
	if !ok {
		return
	}
	var names []string
	for name := range w.files(t) {
		names = append(names, filepath.Base(name))
	}
	for _, n := range numbers {
		if want := filepath.Base(fmt.Sprintf(file, n)); !slices.Contains(names, want) {
			t.Errorf("the session of run %d, %s, is not kept", n, want)
		}
	}
}

func (w *workdir) expectAsBefore(t *testing.T, after string) {
	t.Helper()
	now := w.files(t)
	for name, text := range now {
		if was, ok := w.before[name]; !ok || was != text {
			t.Errorf("after %s: %s is %.100q, was %.100q", after, strings.TrimPrefix(name, w.root), text, was)
		}
	}
	for name := range w.before {
		if _, ok := now[name]; !ok {
			t.Errorf("after %s: %s is gone", after, strings.TrimPrefix(name, w.root))
		}
	}
}
