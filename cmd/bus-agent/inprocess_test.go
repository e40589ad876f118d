package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/busdk/bus-agent/internal/commands"
	"github.com/busdk/bus-agent/preferences"
	"github.com/busdk/bus-agent/runner"
	"github.com/busdk/bus-agent/verify/targets"
)

// inProcess runs a call of bus-agent in this process and returns its exit code. It does
// what the program does, except for signals, terminals, descriptors and limits, in a
// fraction of the time that a process takes to start. Tests of these start cmd instead.
func inProcess(cmd *exec.Cmd) int {
	if contains(cmd.Args, replacesProcess) {
		err := cmd.Run()
		if cmd.ProcessState == nil {
			panic(err)
		}
		return cmd.ProcessState.ExitCode()
	}
	env := &commands.Env{
		Args: cmd.Args[1:], Stdin: cmd.Stdin, Stdout: cmd.Stdout, Stderr: cmd.Stderr,
		Environ: cmd.Environ(), Dir: cmd.Dir, Targets: targets.All, Executable: cmd.Path,
	}
	if env.Stdin == nil {
		env.Stdin = strings.NewReader("")
	}
	if out, ok := cmd.Stdout.(*os.File); ok {
		env.Terminal = commands.TerminalOf(out, out)
	}
	path := env.Getenv(preferencesVariable)
	if contains(env.Args, usesPreferences) {
		defer usePreferences(path)()
		env.Preferences = preferences.User()
	} else {
		env.Preferences = preferencesAt{preferences.User(), path}
	}
	return commands.Main(context.Background(), env)
}

// replacesProcess are the commands that run another program in their place.
var replacesProcess = []string{"mcp", "attach"}

func contains(args, commands []string) bool {
	return slices.ContainsFunc(args, func(arg string) bool { return slices.Contains(commands, arg) })
}

// usesPreferences are the commands that do more with the preferences than read them once.
var usesPreferences = []string{"config", "doctor", "set", "unset"}

const preferencesVariable = "BUS_PREFERENCES_PATH"

var preferencesLock sync.Mutex

// usePreferences makes a file that of the user's preferences, which package preferences
// looks up in the environment of this process, until the returned function is called.
func usePreferences(path string) func() {
	preferencesLock.Lock()
	os.Setenv(preferencesVariable, path)
	return preferencesLock.Unlock
}

type preferencesAt struct {
	runner.Preferences
	path string
}

func (p preferencesAt) Snapshot(ctx context.Context) (runner.Preferences, error) {
	defer usePreferences(p.path)()
	return preferences.Read(ctx)
}

// output runs a call in this process and returns what it prints.
func output(cmd *exec.Cmd) (combined string, code int) {
	var both lockedBuilder
	cmd.Stdout, cmd.Stderr = &both, &both
	code = inProcess(cmd)
	return both.String(), code
}

type lockedBuilder struct {
	lock sync.Mutex
	strings.Builder
}

func (b *lockedBuilder) Write(p []byte) (int, error) {
	b.lock.Lock()
	defer b.lock.Unlock()
	return b.Builder.Write(p)
}

// call runs the program in this process: call ARGS. In contrast to
// "exec bus-agent" it has no standard input and cannot run in the background.
func call(ts *testscript.TestScript, neg bool, args []string) {
	if code := callInScript(ts, args); (code != 0) != neg {
		ts.Fatalf("exit code %d", code)
	}
}

func callInScript(ts *testscript.TestScript, args []string) int {
	path, err := exec.LookPath("bus-agent")
	ts.Check(err)
	cmd := exec.Command(path, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = ts.MkAbs("."), ts.Stdout(), ts.Stderr()
	for _, name := range ts.Value(namesKey{}).([]string) {
		if value := ts.Getenv(name); value != "" { // which scripts use as unset
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	return inProcess(cmd)
}

// namesKey is the key of the names of all variables that scripts set, which testscript
// does not list.
type namesKey struct{}

var assignment = regexp.MustCompile(`(?m)^env (.*)`)

func variableNames(env *testscript.Env) ([]string, error) {
	set := slices.Clone(env.Vars)
	scripts, err := filepath.Glob(filepath.Join("testdata", "script", "*.txtar"))
	for _, script := range scripts {
		text, readErr := os.ReadFile(script)
		err = errors.Join(err, readErr)
		for _, line := range assignment.FindAllStringSubmatch(string(text), -1) {
			set = append(set, strings.Fields(line[1])...)
		}
	}
	for i, assigned := range set {
		set[i], _, _ = strings.Cut(strings.Trim(assigned, "'"), "=")
	}
	slices.Sort(set)
	return slices.Compact(set), err
}
