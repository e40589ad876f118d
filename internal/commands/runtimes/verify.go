package runtimes

import (
	"cmp"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/commands/cmdline"
	"github.com/busdk/bus-agent/runner"
	"github.com/busdk/bus-agent/verify"
)

// verifyOptions are the flags of verify.
type verifyOptions struct {
	checks []string
	save   string
	list   bool
}

// VerifyCommand is "verify".
func VerifyCommand(prog *cmdline.Program) *urfave.Command {
	o := &verifyOptions{}
	return &urfave.Command{
		Name:      "verify",
		Usage:     "check the promises of bus-agent with the installed agent CLIs",
		ArgsUsage: "[RUNTIME...]",
		Description: `For each named runtime, or for each that is installed, verify runs the agent CLI many
times against a scripted model server on this machine, and checks what bus-agent promises
of it: prompts arrive whole, AGENTS.md arrives once, access holds, failures have the right
kind, sessions are resumed, a hostile repository runs nothing, and nothing is left behind.
--list shows all checks.

The CLI gets a throwaway home and workdir, and only PATH of the environment. It needs no
account, key or network. A runtime takes about a minute.

A check that a CLI is known to fail is shown as known, with the reason, and does not fail
the command.

--save keeps the results in a JSON file, which changes only if the version of the CLI or a
result does. With --check it replaces only those of the named checks, which needs results of
the same version in the file. --format junit prints JUnit XML.`,
		Flags: []urfave.Flag{
			cmdline.Strings("check", "run only the check `NAME`", &o.checks).Complete(checkNames),
			cmdline.File("save", "replace the results of the verified runtimes in `FILE`, also if a promise is broken", &o.save),
			cmdline.Switch("list", "list the checks, and do nothing else", &o.list),
		},
		UsageText: cmdline.UsageText(`# check every promise with the installed version, and keep the results in a file
bus-agent verify RUNTIME --save verified.json
# check one promise with each installed runtime
bus-agent verify --check model`,
			"no promise is broken, except as known",
			"a promise is broken, or a named runtime or no runtime is installed"),
		BashComplete: cmdline.Completes(func([]string) []string { return targetNames(prog) }),
		Action: prog.Action(cmdline.JSON|cmdline.JUnit|cmdline.Slow, func(ctx context.Context, call cmdline.Call) error {
			if o.list {
				return listChecks(prog, o, call.Args)
			}
			return runVerify(ctx, prog, o, call.Args)
		}),
	}
}

func checkNames() (names []string) {
	for _, c := range verify.Checks() {
		names = append(names, c.Name)
	}
	return names
}

// targets returns the targets of the program whose runtimes are registered.
func targets(prog *cmdline.Program) []verify.Target {
	if prog.Env.Targets == nil {
		return nil
	}
	return slices.DeleteFunc(prog.Env.Targets(), func(t verify.Target) bool {
		_, ok := prog.Stored.Registry.Lookup(t.Runtime)
		return !ok
	})
}

// recordOf returns the record of the last verification of a runtime, zero if there is none.
func recordOf(prog *cmdline.Program, id string) (r verify.Record) {
	for _, t := range targets(prog) {
		if t.Runtime == id {
			r = t.Verified
		}
	}
	return r
}

func targetNames(prog *cmdline.Program) (names []string) {
	for _, t := range targets(prog) {
		names = append(names, t.Runtime)
	}
	return names
}

// A listedCheck is a check as verify --list shows it.
type listedCheck struct {
	Check   string `json:"check"`
	Promise string `json:"promise"`
}

func listChecks(prog *cmdline.Program, o *verifyOptions, names []string) error {
	switch {
	case prog.Global.JUnit():
		return cmdline.Misusef("--list has no JUnit form; leave out --format junit")
	case o.save != "" || len(o.checks) > 0 || len(names) > 0:
		return cmdline.Misusef("--list does nothing else; leave out other flags and arguments")
	}
	var list []listedCheck
	table := prog.Table("CHECK", "PROMISE")
	for _, c := range verify.Checks() {
		list = append(list, listedCheck{c.Name, c.Promise})
		table.Row(c.Name, c.Promise)
	}
	return prog.Out.Report(list, table.String())
}

// verifyReport is what verify prints, in JSON.
type verifyReport struct {
	Date     time.Time       `json:"date"`
	Runtimes []runtimeReport `json:"runtimes"`
}

// A runtimeReport holds the results for one runtime.
type runtimeReport struct {
	Runtime string        `json:"runtime"`
	Path    string        `json:"path"`
	Version string        `json:"version"`
	Results []checkResult `json:"results"`
}

// A checkResult is a result with its duration.
type checkResult struct {
	verify.Result
	DurationMS int64 `json:"duration_ms"`
}

func runVerify(ctx context.Context, prog *cmdline.Program, o *verifyOptions, names []string) error {
	if o.save != "" {
		o.save = prog.Env.Abs(o.save)
		if _, err := readRecords(o.save); err != nil {
			return cmdline.Misusef("--save %s: %v", cmdline.Quote(o.save), err)
		}
	}
	chosen, err := chooseTargets(prog, names)
	if err != nil {
		return err
	}
	live := !prog.Global.JUnit() && !prog.Global.JSON()
	report := verifyReport{Date: time.Now().UTC().Truncate(time.Second)}
	var failures cmdline.Failures
	var results []verify.Report
	for _, t := range chosen {
		result, err := verifyOne(ctx, prog, o, t, live)
		switch {
		case errors.Is(err, agent.ErrNotInstalled) && len(names) == 0:
			continue
		case err != nil:
			return err
		}
		report.add(result)
		results = append(results, result)
		if broken := result.Broken(); len(broken) > 0 {
			failures = append(failures, brokenPromises(t.Runtime, broken))
		}
	}
	if len(report.Runtimes) == 0 {
		return errors.New("none of the runtimes that can be verified is installed: " + strings.Join(targetNames(prog), ", "))
	}
	if o.save != "" {
		failures = append(failures, saveRecords(prog, o.save, results, report.Date, len(o.checks) > 0)...)
	}
	text := ""
	if prog.Global.JUnit() {
		if text, err = report.junit(); err != nil {
			return err
		}
	}
	if err := prog.Out.Report(report, text); err != nil {
		return err
	}
	if failures != nil {
		return failures
	}
	return nil
}

// chooseTargets returns the targets of the named runtimes, or all.
func chooseTargets(prog *cmdline.Program, names []string) ([]verify.Target, error) {
	all := targets(prog)
	if len(names) == 0 {
		return all, nil
	}
	var chosen []verify.Target
	for _, name := range names {
		if err := prog.CheckRuntime(name); err != nil {
			return nil, err
		}
		i := slices.IndexFunc(all, func(t verify.Target) bool { return t.Runtime == name })
		if i < 0 {
			return nil, cmdline.Misusef("%s cannot be verified; only %s can", name, cmp.Or(strings.Join(targetNames(prog), ", "), "runtimes with a target"))
		}
		if !slices.ContainsFunc(chosen, func(t verify.Target) bool { return t.Runtime == name }) {
			chosen = append(chosen, all[i])
		}
	}
	return chosen, nil
}

// verifyOne verifies one runtime. With live it prints each result at once.
func verifyOne(ctx context.Context, prog *cmdline.Program, o *verifyOptions, t verify.Target, live bool) (verify.Report, error) {
	checks, err := verify.Find(o.checks...)
	if err != nil {
		return verify.Report{}, cmdline.Misusef("%v; --list shows them", err)
	}
	list := newChecklist(prog, t.Runtime, len(checks), live)
	defer prog.Screen.Clear()
	report, err := verify.Run(ctx, t, verify.Options{
		ToolServer: toolServer(prog),
		Registry:   prog.Stored.Registry,
		Environ:    append([]string{}, runner.CleanPath(prog.Env.Environ, prog.Env.Dir, false)...), // never nil: that is the process's
		Checks:     o.checks,
		Begin:      list.begin,
		Done:       list.done,
	})
	if err == nil {
		list.end(report.Version)
	}
	return report, cmp.Or(list.err, err)
}

func brokenPromises(id string, broken []verify.Result) error {
	names := make([]string, len(broken))
	for i, r := range broken {
		names[i] = r.Check
	}
	return fmt.Errorf("%s breaks %d of the promises: %s", id, len(broken), strings.Join(names, ", "))
}

func (v *verifyReport) add(r verify.Report) {
	out := runtimeReport{Runtime: r.Runtime, Path: r.Path, Version: r.Version, Results: []checkResult{}}
	for _, result := range r.Results {
		out.Results = append(out.Results, checkResult{result, result.Duration.Milliseconds()})
	}
	v.Runtimes = append(v.Runtimes, out)
}

// The elements of JUnit XML. A known failure is a skipped test with a message.
type (
	junitSuites struct {
		XMLName xml.Name     `xml:"testsuites"`
		Suites  []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Time     string      `xml:"time,attr"`
		Stamp    string      `xml:"timestamp,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Class   string        `xml:"classname,attr"`
		Name    string        `xml:"name,attr"`
		Time    string        `xml:"time,attr"`
		Failure *junitMessage `xml:"failure"`
		Skipped *junitMessage `xml:"skipped"`
	}
	junitMessage struct {
		Message string `xml:"message,attr"`
	}
)

// junit returns the report as JUnit XML.
func (v *verifyReport) junit() (string, error) {
	seconds := func(ms int64) string { return fmt.Sprintf("%.3f", float64(ms)/1000) }
	var doc junitSuites
	for _, r := range v.Runtimes {
		suite := junitSuite{Name: strings.TrimSpace(r.Runtime + " " + r.Version), Tests: len(r.Results), Stamp: v.Date.Format("2006-01-02T15:04:05")}
		var whole int64
		for _, c := range r.Results {
			test := junitCase{Class: "bus-agent.verify." + r.Runtime, Name: c.Check, Time: seconds(c.DurationMS)}
			whole += c.DurationMS
			switch c.Status {
			case verify.Broken:
				test.Failure = &junitMessage{c.Promise + " " + c.Detail}
				suite.Failures++
			case verify.KnownFailure:
				test.Skipped = &junitMessage{"known failure: " + c.Known + "; " + c.Detail}
				suite.Skipped++
			case verify.Unsupported:
				test.Skipped = &junitMessage{c.Detail}
				suite.Skipped++
			}
			suite.Cases = append(suite.Cases, test)
		}
		suite.Time = seconds(whole)
		doc.Suites = append(doc.Suites, suite)
	}
	text, err := xml.MarshalIndent(doc, "", "  ")
	return xml.Header + string(text) + "\n", err
}
