package runtimes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/commands/cmdline"
	"github.com/busdk/bus-agent/internal/commands/settings"
	"github.com/busdk/bus-agent/internal/process"
	"github.com/busdk/bus-agent/internal/statefile"
	"github.com/busdk/bus-agent/internal/unix"
	"github.com/busdk/bus-agent/runner"
	"github.com/busdk/bus-agent/session/control"
)

// checkSettings checks the settings of runs. A runtime that is not installed is reported
// with the others.
func checkSettings(ctx context.Context, prog *cmdline.Program) []check {
	var checks []check
	c := settings.Read(ctx, prog)
	for _, line := range c.Problems() {
		checks = append(checks, check{"settings", checkProblem, line})
	}
	for _, line := range c.Ignored() {
		checks = append(checks, check{"settings", checkNote, line})
	}
	if checks == nil {
		checks = append(checks, check{"settings", checkOK, "all can be used; see \"" + cmdline.Name + " config show\""})
	}
	return checks
}

// checkState checks that the records and the state of runs and sessions can be written.
func checkState(prog *cmdline.Program, dir string) []check {
	var checks []check
	add := func(name, path string, status string, err error) {
		c := check{name, checkOK, path}
		if err != nil {
			c.Status, c.Text = status, err.Error()
			if status == checkProblem {
				c.Text = "cannot be written: " + c.Text
			}
		}
		checks = append(checks, c)
	}
	root, err := prog.RunsRoot("")
	if err == nil {
		err = statefile.CheckWritable(root)
	}
	add("records", root, checkProblem, err)
	store, err := control.DefaultDir(prog.Env.Environ)
	if err == nil {
		err = control.NewStore(store).Check()
	}
	add("sessions", store, checkProblem, err)
	var temp string
	for _, base := range runner.TempDirs(prog.Env.Environ) {
		if temp, err = base, unix.Access(base, unix.W_OK|unix.X_OK); err == nil {
			break
		}
		err = fmt.Errorf("%s: %w", base, err)
	}
	add("temporary files", temp, checkProblem, err)
	if err = unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
		err = fmt.Errorf("%s: %w; agents cannot write there; private homes are made elsewhere", dir, err)
	}
	add("workdir", dir, checkNote, err)
	return checks
}

// checkDefault checks which runtime runs and sessions in dir use by default.
func checkDefault(ctx context.Context, prog *cmdline.Program, dir string) (checks []check) {
	warn := func(string) {} // Detect has warned of the rest
	runs := prog.Runner(warn)
	runs.Workdir = dir
	forRuns := describeDefault(ctx, "default", runs)
	sessions := SessionRunner(prog, dir, func(line string) {
		if !slices.Contains(prog.Stored.Warnings, line) {
			checks = append(checks, check{"runtime override", checkNote, line})
		}
	})
	sessions.Warn = warn
	if forSessions := describeDefault(ctx, "session default", sessions); forSessions.Text != forRuns.Text {
		checks = append(checks, forSessions)
	}
	return append([]check{forRuns}, checks...)
}

// describeDefault returns the runtime that r selects and its source.
func describeDefault(ctx context.Context, name string, r *runner.Runner) check {
	selection, err := r.Resolve(ctx, "")
	switch {
	case err == nil:
		return check{name, checkOK, fmt.Sprintf("%s (%s)", selection.Token, selection.Source)}
	case errors.Is(err, agent.ErrNoneAvailable):
		return check{name, checkNote, "none; no runtime can be used"}
	}
	text := err.Error()
	if e, ok := errors.AsType[*agent.Error](err); ok {
		for _, named := range r.NamedRuntimes(ctx) {
			if named.Value == e.Runtime && named.Value != "" {
				text = fmt.Sprintf("%s names %s", named.Source, text)
				break
			}
		}
	}
	return check{name, checkProblem, text}
}

// tmuxLimit bounds the call of tmux -V.
const tmuxLimit = 10 * time.Second

// checkTmux checks the program of sessions in mode tmux, which is optional.
func checkTmux(ctx context.Context, prog *cmdline.Program, dir string) check {
	const need = "\"session start --mode tmux\" needs tmux 3.2 or later"
	environ := runner.CleanPath(prog.Env.Environ, dir, false)
	search, _ := agent.LookupEnv(environ, "PATH")
	path, err := process.LookPath("tmux", search)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return check{"tmux", checkNote, "not installed; " + need}
	case err != nil:
		return check{"tmux", checkNote, err.Error()}
	}
	ctx, cancel := context.WithTimeout(ctx, tmuxLimit)
	defer cancel()
	var said bytes.Buffer
	_, err = process.Run(ctx, process.Spec{Path: path, Args: []string{"-V"}, Env: environ, Dir: "/", Stdout: &said, Grace: time.Second, Settle: -1})
	version := strings.TrimSpace(strings.TrimPrefix(said.String(), "tmux "))
	var major, minor int
	if _, scanErr := fmt.Sscanf(version, "%d.%d", &major, &minor); err != nil || scanErr != nil {
		return check{"tmux", checkNote, path + ": tmux -V prints no version; " + need}
	}
	if major < 3 || major == 3 && minor < 2 {
		return check{"tmux", checkNote, fmt.Sprintf("%s, version %s; %s", path, version, need)}
	}
	return check{"tmux", checkOK, fmt.Sprintf("%s, version %s", path, version)}
}
