package runtimes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/instructions"
	"github.com/busdk/bus-agent/internal/commands/cmdline"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/runner"
)

const (
	checkOK      = "ok"
	checkNote    = "note"    // worth knowing
	checkProblem = "problem" // it will not work

	healthOK       = "ok"
	healthBroken   = "broken"
	healthDisabled = "disabled"
	healthMissing  = "not installed"
)

// check is the result of one check.
type check struct {
	Name   string `json:"name"`
	Status string `json:"status"`
	Text   string `json:"text"`
}

// runtimeHealth is the results for one runtime.
type runtimeHealth struct {
	ID     string  `json:"id"`
	Name   string  `json:"name"`
	Status string  `json:"status"`
	Checks []check `json:"checks"`

	// Version is the installed version, Verified the one with which the promises were
	// checked.
	Version  string `json:"version,omitempty"`
	Verified string `json:"verified,omitempty"`
}

func (h *runtimeHealth) add(name, status, format string, args ...any) {
	h.Checks = append(h.Checks, check{name, status, fmt.Sprintf(format, args...)})
	if status == checkProblem && h.Status == healthOK {
		h.Status = healthBroken
	}
}

// checkRuntimes checks the runtimes in names, or all if there are none. No model is asked.
func checkRuntimes(ctx context.Context, prog *cmdline.Program, names []string, dir string) ([]runtimeHealth, error) {
	var ids []string
	for _, name := range names {
		if err := prog.CheckRuntime(name); err != nil {
			return nil, err
		}
		ids = append(ids, baseID(name))
	}
	r := prog.Runner(prog.Screen.Warn)
	r.Workdir = dir
	all, _ := r.Detect(ctx) // checkSettings reports an invalid list
	quiet := *r
	quiet.Warn = func(string) {} // warnings of a run are part of the report
	var health []*runtimeHealth
	var checks sync.WaitGroup
	for _, d := range all {
		if len(ids) > 0 && !slices.Contains(ids, d.Runtime.ID) {
			continue
		}
		h := &runtimeHealth{ID: d.Runtime.ID, Name: d.Runtime.Name, Status: healthOK}
		health = append(health, h)
		checks.Go(func() { examine(ctx, prog, &quiet, d, dir, h) })
	}
	checks.Wait()
	report := make([]runtimeHealth, len(health))
	for i, h := range health {
		report[i] = *h
	}
	return report, ctx.Err()
}

func examine(ctx context.Context, prog *cmdline.Program, r *runner.Runner, d runner.Detected, dir string, h *runtimeHealth) {
	rt := d.Runtime
	switch {
	case d.Problem != nil:
		h.add("executable", checkProblem, "%v; or get it at %s", d.Problem, rt.InstallURL)
		return
	case d.Path == "":
		h.Status = healthMissing
		h.add("executable", checkProblem, "no %s in PATH; get it at %s", strings.Join(rt.Executables, " or "), rt.InstallURL)
		return
	}
	h.add("executable", checkOK, "%s", d.Path)
	if d.Disabled != "" {
		h.Status = healthDisabled
		h.add("selection", checkNote, "%s", d.Disabled)
		return
	}
	checkVersion(ctx, prog, d, dir, h)
	checkLogin(prog, rt, h)
	checkRun(ctx, prog, r, rt, dir, h)
	if s := rt.Session; s != nil {
		h.add("sessions", checkOK, "%s, messages by %s", s.Protocol, s.Delivers())
	} else {
		h.add("sessions", checkNote, "not supported")
	}
}

func checkVersion(ctx context.Context, prog *cmdline.Program, d runner.Detected, dir string, h *runtimeHealth) {
	version, err := versionOf(ctx, prog, d, dir)
	tested, verified := d.Runtime.TestedVersion, recordOf(prog, d.Runtime.ID)
	h.Version, h.Verified = version, verified.Version
	switch {
	case errors.Is(err, runner.ErrNoVersion) && tested == "" && verified.Version == "": // it may have none
		h.add("version", checkNote, "%v", err)
	case err != nil:
		h.add("version", checkProblem, "%v", err)
	case verified.Version != "" && version == verified.Version:
		h.add("version", checkOK, "%s, verified on %s", version, verified.Date)
	case verified.Version != "" && newer(version, verified.Version):
		h.add("version", checkNote, "%s is newer than the verified %s; check it with: %s verify %s", version, verified.Version, cmdline.Name, d.Runtime.ID)
	case verified.Version != "":
		h.add("version", checkNote, "%s; verified with %s", version, verified.Version)
	case tested == "":
		h.add("version", checkNote, "%s; no version was tested", version)
	case version != tested:
		h.add("version", checkNote, "%s; tested with %s", version, tested)
	default:
		h.add("version", checkOK, "%s, as tested", version)
	}
}

// newer reports whether version a is later than version b. Their numbers decide and, if
// they are equal, that a release follows its pre-releases, such as 1.2.0-rc.1.
func newer(a, b string) bool {
	numbersA, preA := splitVersion(a)
	numbersB, preB := splitVersion(b)
	if order := slices.Compare(numbersA, numbersB); order != 0 {
		return order > 0
	}
	return preB && !preA
}

// splitVersion returns the numbers of a version, and whether it is a pre-release.
func splitVersion(version string) (numbers []int, pre bool) {
	end := strings.IndexFunc(version, func(r rune) bool { return r != '.' && (r < '0' || r > '9') })
	if end >= 0 {
		pre = version[end] != '+'
		version = version[:end]
	}
	for part := range strings.SplitSeq(version, ".") {
		n, _ := strconv.Atoi(part) // the greatest number if it is too large
		numbers = append(numbers, n)
	}
	return numbers, pre
}

// versionOf asks the executable of a runtime for its version.
func versionOf(ctx context.Context, prog *cmdline.Program, d runner.Detected, dir string) (string, error) {
	return runner.Version(ctx, d.Runtime, d.Path, runner.CleanPath(prog.Env.Environ, dir, false))
}

func checkLogin(prog *cmdline.Program, rt registry.Runtime, h *runtimeHealth) {
	switch found, text := loginOf(prog, rt); {
	case found:
		h.add("login", checkOK, "%s", text)
	case text == loginUnknown:
		h.add("login", checkNote, "unknown; if there is none, %s", cmdline.LoginHint(rt))
	default:
		h.add("login", checkNote, "%s was found; %s", text, cmdline.LoginHint(rt))
	}
}

// The state of a login when no sign of one is found.
const (
	loginUnknown = "unknown"
	loginNone    = "none"
)

// loginOf returns a sign of a login: a variable or a file.
func loginOf(prog *cmdline.Program, rt registry.Runtime) (found bool, text string) {
	for _, name := range rt.TokenEnv {
		if prog.Env.Getenv(name) != "" {
			return true, name + " is set"
		}
	}
	files := rt.Home.LoginFiles(prog.Env.Getenv)
	for _, file := range files {
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && info.Size() > 0 {
			return true, file
		}
	}
	if len(files) == 0 && !rt.TokenOnly {
		return false, loginUnknown
	}
	return false, loginNone
}

// checkRun checks what a run would do in dir.
func checkRun(ctx context.Context, prog *cmdline.Program, r *runner.Runner, rt registry.Runtime, dir string, h *runtimeHealth) {
	if rt.Run.Command == nil {
		h.add("run", checkNote, "it cannot run once; start a session with it")
		return
	}
	dry, err := r.DryRun(ctx, agent.Request{Runtime: rt.ID, Prompt: "?", Workdir: dir})
	if err != nil {
		h.add("run", checkProblem, "a run here would be refused: %v", err)
		return
	}
	chain, err := instructions.Discover(dir)
	switch {
	case err != nil:
		h.add("instructions", checkProblem, "%v", err)
	case len(chain.Files) == 0:
		h.add("instructions", checkOK, "no %s applies here", instructions.FileName)
	case rt.Instructions == nil:
		h.add("instructions", checkNote, "it does not get %s", instructions.FileName)
	default:
		h.add("instructions", checkOK, "%s of %s, %d bytes", cmdline.Count(len(chain.Files), "file", "files"), instructions.FileName, chain.Size())
	}
	for _, file := range dry.Files {
		h.add("writes", checkOK, "%s", file)
	}
	warnings := dry.Warnings
	for _, file := range dry.Start.UserConfig {
		about := func(line string) bool { return strings.HasPrefix(line, file.Path+" is left out") }
		if i := slices.IndexFunc(warnings, about); i >= 0 {
			h.add("user config", checkNote, "%s", warnings[i])
			warnings = slices.Delete(slices.Clone(warnings), i, i+1)
			continue
		}
		h.add("user config", checkOK, "%s", file)
	}
	for _, line := range warnings {
		h.add("repository", checkNote, "%s", line)
	}
	if len(warnings) == 0 {
		h.add("repository", checkOK, "no settings of it are ignored")
	}
}

func writeChecks(b *strings.Builder, checks []check) {
	for _, c := range checks {
		mark := ""
		if c.Status != checkOK {
			mark = c.Status + ": "
		}
		fmt.Fprintf(b, "  %-15s  %s%s\n", c.Name, mark, cmdline.OneWord(c.Text))
	}
}
