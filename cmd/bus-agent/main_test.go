package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/busdk/bus-agent/internal/process"
	"github.com/busdk/bus-agent/internal/testwait"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/session/control"
)

// TestMain makes the test binary the program and every fake agent, depending
// on the name they are called by.
func TestMain(m *testing.M) {
	// "mine" is not a runtime until a script describes it.
	commands := map[string]func(){"bus-agent": program, "mine": fakeAgent, "tmux": fakeAgent, panicsName: panics, panicsInRunName: panicsInRun}
	for _, rt := range registry.Default().All() {
		for _, name := range rt.Executables {
			commands[name] = fakeAgent
		}
	}
	testscript.Main(stoppable{m}, commands)
}

// inTime is a variable with which the program ends within the time after a signal
// that it promises. Without it, it is as patient as the tests, which so see it end
// in order on a machine that is too busy to do that in time.
const inTime = "BUS_AGENT_TEST_IN_TIME"

// program is bus-agent.
func program() {
	if os.Getenv(inTime) == "" {
		process.KillAfter, process.ExitAfter = testwait.Limit, 2*testwait.Limit
	}
	main()
}

// stoppable runs the tests so that signals end the programs they start, also
// where the tests ignore one themselves, as under nohup or in the background: what
// a program ignores its children ignore too, unless it receives the signal.
type stoppable struct{ *testing.M }

func (m stoppable) Run() int {
	for _, sig := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT} {
		if signal.Ignored(sig) {
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
	return m.M.Run()
}

func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup:               setUp,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"call":    call,
			"ended":   ended,
			"exits":   exits,
			"install": install,
			"same":    same,
			"until":   until,
		},
	})
}

// A column is as wide as its widest cell, which can be a PID or a duration, so no
// pattern of a script may count the spaces between two columns: " +" matches them.
func TestScriptsCountNoSpaces(t *testing.T) {
	t.Parallel()
	scripts, err := filepath.Glob(filepath.Join("testdata", "script", "*.txtar"))
	if err != nil || len(scripts) == 0 {
		t.Fatal("no scripts", err)
	}
	indent := regexp.MustCompile(`(\^|\\n|') +`)
	counted := regexp.MustCompile(`\S {2,}([^ +*]|$)`)
	for _, name := range scripts {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			command := strings.Fields(strings.TrimPrefix(line, "! "))
			if len(command) == 0 || !slices.Contains([]string{"stdout", "stderr", "grep"}, command[0]) {
				continue
			}
			if counted.MatchString(indent.ReplaceAllString(strings.TrimSpace(line), "'")) {
				t.Errorf("%s counts spaces: %s", name, line)
			}
		}
	}
}

// raceOptions keeps programs under the race detector from sleeping a second
// before they exit.
const raceOptions = "atexit_sleep_ms=0"

// setUp gives a script a home, preferences and a separate PATH: $AGENTS for the
// agents it installs, and a folder with bus-agent alone. Both are outside $WORK,
// which is the workdir of most runs.
func setUp(env *testscript.Env) error {
	outside := filepath.Join(filepath.Dir(env.WorkDir), "of-"+filepath.Base(env.WorkDir))
	own := filepath.Join(outside, "own")
	if err := link(own, "bus-agent"); err != nil {
		return err
	}
	bin := filepath.Join(outside, "bin")
	home := filepath.Join(env.WorkDir, "home")
	for _, dir := range []string{bin, home} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	env.Defer(func() { endSessions(home) })
	env.Setenv("GORACE", raceOptions)
	env.Setenv("AGENTS", bin)
	env.Setenv("PATH", bin+string(os.PathListSeparator)+own)
	env.Setenv("SYSTEM_PATH", os.Getenv("PATH"))
	env.Setenv("HOME", home)
	env.Setenv(preferencesVariable, filepath.Join(env.WorkDir, "preferences.json"))
	names, err := variableNames(env)
	env.Values[namesKey{}] = names
	return err
}

// ended waits for the end of a session: ended HANDLE.
func ended(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: ended HANDLE")
	}
	store := sessionsOf(filepath.Join(ts.Getenv("WORK"), "home"))
	e, err := store.Find(args[0])
	ts.Check(err)
	if !testwait.Poll(func() bool {
		e, err = store.Get(e.SessionID)
		ts.Check(err)
		return e.State.Ended()
	}) {
		ts.Fatalf("session %s does not end", args[0])
	}
}

func sessionsOf(home string) *control.Store { return control.NewStore(sessionsDir(home)) }

func sessionsDir(home string) string {
	return filepath.Join(home, ".local", "state", "bus-agent", "sessions")
}

// writeEntry writes the file of a session's entry.
func writeEntry(t *testing.T, home string, e control.Entry) {
	t.Helper()
	text, err := json.Marshal(struct {
		Version int `json:"version"`
		control.Entry
	}{2, e})
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(e.SessionID))
	file := filepath.Join(sessionsDir(home), hex.EncodeToString(sum[:12])+".json")
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, text, 0o600)); err != nil {
		t.Fatal(err)
	}
}

// endSessions ends what a test that failed has left running in the sessions of a
// home.
func endSessions(home string) {
	list, _, _ := sessionsOf(home).List(control.Filter{}) // there may be none
	for _, e := range list {
		if e.Served() {
			syscall.Kill(e.OwnerPID, syscall.SIGTERM)
		}
		testwait.Poll(func() bool { return !e.OwnerEnds || process.LifeOf(e.Owner) != process.Alive })
	}
}

// link makes dir/name run the test binary under that name.
func link(dir, name string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	target, err := exec.LookPath(name)
	if err != nil {
		return err
	}
	return os.Symlink(target, filepath.Join(dir, name))
}

// install makes agents available: install NAME... A script says in
// $WORK/bin/NAME.play what they do.
func install(ts *testscript.TestScript, _ bool, names []string) {
	for _, name := range names {
		ts.Check(link(ts.Getenv("AGENTS"), name))
		play := name + ".play"
		ts.Check(os.Symlink(filepath.Join(ts.Getenv("WORK"), "bin", play), filepath.Join(ts.Getenv("AGENTS"), play)))
	}
}

// exits runs a command that must end with an exit code: exits CODE bus-agent ARGS... in
// this process, or exits CODE exec COMMAND...
func exits(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 2 || args[1] == "exec" && len(args) < 3 || args[1] != "bus-agent" && args[1] != "exec" {
		ts.Fatalf("usage: exits CODE bus-agent ARGS, or exits CODE exec COMMAND [ARGS]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if args[1] == "bus-agent" {
		got = callInScript(ts, args[2:])
	} else if err := ts.Exec(args[2], args[3:]...); err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// same checks every byte of a file, written as a Go string: same FILE TEXT.
func same(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: same FILE TEXT")
	}
	want, err := strconv.Unquote(`"` + args[1] + `"`)
	ts.Check(err)
	if got := ts.ReadFile(args[0]); (got == want) == neg {
		ts.Fatalf("%s is %q, compared with %q", args[0], got, want)
	}
}

// until waits for a file that matches a pattern to exist and, if a regular
// expression is given, for its text to match that: until PATTERN [REGEXP].
func until(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: until PATTERN [REGEXP]")
	}
	text := regexp.MustCompile("(?m)" + strings.Join(args[1:], ""))
	if !testwait.Poll(func() bool {
		names, err := filepath.Glob(ts.MkAbs(args[0]))
		ts.Check(err)
		return slices.ContainsFunc(names, func(name string) bool {
			have, err := os.ReadFile(name)
			return err == nil && text.Match(have)
		})
	}) {
		ts.Fatalf("%s does not appear", strings.Join(args, " with "))
	}
}

// sandbox is a place to run bus-agent in from Go, as a script has one.
type sandbox struct {
	t   *testing.T
	dir string
}

// newSandbox installs one fake agent that plays play.
func newSandbox(t *testing.T, agent, play string) *sandbox {
	t.Helper()
	s := &sandbox{t, t.TempDir()}
	t.Cleanup(func() { endSessions(s.path("home")) })
	bin := filepath.Join(s.dir, "bin")
	for _, name := range []string{"bus-agent", agent} {
		if err := link(bin, name); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(bin, agent+".play"), []byte(play), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"home", "work"} {
		if err := os.Mkdir(filepath.Join(s.dir, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func (s *sandbox) path(name string) string { return filepath.Join(s.dir, name) }

// command returns bus-agent with args, not started.
func (s *sandbox) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(s.t.Context(), s.path("bin/bus-agent"), args...)
	cmd.Dir = s.path("work")
	cmd.Env = []string{
		"PATH=" + s.path("bin"), "HOME=" + s.path("home"), "TERM=xterm", "GORACE=" + raceOptions,
		"BUS_PREFERENCES_PATH=" + s.path("preferences.json"),
	}
	return cmd
}

// quoted returns a path as a word of a shell script.
func quoted(path string) string { return "'" + path + "'" }

func (s *sandbox) write(name, text string) {
	s.t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s *sandbox) makeDir(name string) {
	s.t.Helper()
	if err := os.MkdirAll(s.path(name), 0o700); err != nil {
		s.t.Fatal(err)
	}
}

func exitCode(t *testing.T, err error) int {
	t.Helper()
	if err == nil {
		return 0
	}
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		t.Fatal(err)
	}
	return exit.ExitCode()
}
