// Command canary verifies the newest versions of the agent CLIs. It installs each CLI of
// scripts/agents.txt from npm, runs all checks of package verify, and prints what changed
// against the kept results. It fails if a CLI breaks another promise, or cannot be
// installed or verified.
package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	_ "github.com/busdk/bus-agent/backends/all"
	_ "github.com/busdk/bus-agent/backends/more"
	"github.com/busdk/bus-agent/internal/process"
	"github.com/busdk/bus-agent/verify"
	"github.com/busdk/bus-agent/verify/targets"
)

// installLimit bounds the installation of one CLI.
const installLimit = 10 * time.Minute

// serveTool is the argument with which the CLIs start this program as an MCP server.
const serveTool = "serve-tool"

func main() {
	if len(os.Args) == 2 && os.Args[1] == serveTool {
		if err := verify.ServeTool(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "canary:", err)
			os.Exit(1)
		}
		return
	}
	table := flag.String("table", "scripts/agents.txt", "the table of agent CLIs")
	dir := flag.String("dir", ".cache/canary", "where to install them")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	c := canary{out: os.Stdout, install: install, find: targets.Find, verify: verify.Run}
	if err := c.run(ctx, *table, *dir); err != nil {
		fmt.Fprintln(os.Stderr, "canary:", err)
		os.Exit(1)
	}
}

// A pin is a row of the table: the CLI of a runtime, and the version that tests use.
type pin struct{ runtime, npmPackage, version string }

// readPins reads the table. Empty lines and those that begin with # are comments.
func readPins(r io.Reader) (pins []pin, err error) {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		if len(fields) == 4 && fields[3] == "canary" {
			fields = fields[:3]
		}
		if len(fields) != 3 {
			return nil, fmt.Errorf("%q is not a runtime, a package and a version", lines.Text())
		}
		pins = append(pins, pin{fields[0], fields[1], fields[2]})
	}
	return pins, lines.Err()
}

// A canary prints to out. Its functions are replaced in tests.
type canary struct {
	out     io.Writer
	install func(ctx context.Context, dir, npmPackage string) error
	find    func(runtime string) (verify.Target, bool)
	verify  func(context.Context, verify.Target, verify.Options) (verify.Report, error)
}

// run checks each CLI of the table in a separate folder in dir. A failure does not stop
// the others.
func (c canary) run(ctx context.Context, table, dir string) error {
	file, err := os.Open(table)
	if err != nil {
		return err
	}
	defer file.Close()
	pins, err := readPins(file)
	if err != nil {
		return fmt.Errorf("%s: %w", table, err)
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	var failures []error
	for _, p := range pins {
		target, ok := c.find(p.runtime)
		if !ok {
			fmt.Fprintf(c.out, "%s: cannot be verified, because it has no target\n", p.runtime)
			continue
		}
		err := c.one(ctx, target, p, filepath.Join(dir, p.runtime))
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			failures = append(failures, fmt.Errorf("%s %w", p.runtime, err))
		}
	}
	return errors.Join(failures...)
}

// one installs the newest version of one CLI, verifies it and prints what changed.
func (c canary) one(ctx context.Context, target verify.Target, p pin, dir string) error {
	if err := c.install(ctx, dir, p.npmPackage); err != nil {
		fmt.Fprintf(c.out, "%s: cannot be installed: %v\n", p.runtime, err)
		return errors.New("cannot be installed")
	}
	bin := filepath.Join(dir, "node_modules", ".bin")
	self, err := os.Executable()
	if err != nil {
		return err
	}
	report, err := c.verify(ctx, target, verify.Options{
		ToolServer: []string{self, serveTool},
		Environ:    []string{"PATH=" + bin + string(filepath.ListSeparator) + os.Getenv("PATH")},
	})
	if err == nil && filepath.Dir(report.Path) != bin {
		err = fmt.Errorf("its package has no executable; PATH has %s", report.Path)
	}
	if err != nil {
		fmt.Fprintf(c.out, "%s: cannot be verified: %v\n", p.runtime, err)
		return errors.New("cannot be verified")
	}
	fmt.Fprintf(c.out, "%s %s, pinned %s: ", p.runtime, cmp.Or(report.Version, "without a version"), p.version)
	lines, broken := compare(target.Verified, report)
	if len(lines) == 0 {
		fmt.Fprintln(c.out, "same results")
		return nil
	}
	fmt.Fprintf(c.out, "%d changed\n", len(lines))
	for _, line := range lines {
		fmt.Fprintln(c.out, "  "+line)
	}
	if len(broken) > 0 {
		return fmt.Errorf("breaks %d more of the promises: %s", len(broken), strings.Join(broken, ", "))
	}
	return nil
}

// compare returns a line for each check whose status differs from that in the kept
// record, and the names of those that are now broken.
func compare(kept verify.Record, report verify.Report) (lines, broken []string) {
	before := map[string]verify.Status{}
	for _, r := range kept.Results {
		before[r.Check] = r.Status
	}
	for _, r := range report.Results {
		was := before[r.Check]
		delete(before, r.Check)
		if r.Status == was {
			continue
		}
		line := fmt.Sprintf("%s: %s, was %s", r.Check, r.Status, cmp.Or(was, "unchecked"))
		if r.Detail != "" {
			line += ": " + strings.ReplaceAll(r.Detail, "\n", "\n    ")
		}
		lines = append(lines, line)
		if r.Status == verify.Broken {
			broken = append(broken, r.Check)
		}
	}
	for _, r := range kept.Results {
		if _, missing := before[r.Check]; missing {
			lines = append(lines, fmt.Sprintf("%s: not checked, was %s", r.Check, r.Status))
		}
	}
	return lines, broken
}

// install installs the newest version of a package into dir.
func install(ctx context.Context, dir, npmPackage string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, installLimit, fmt.Errorf("it took longer than %v", installLimit))
	defer cancel()
	script, err := filepath.Abs("scripts/install-agents.sh")
	if err != nil {
		return err
	}
	exit, err := process.Run(ctx, process.Spec{
		Path: script, Args: []string{dir, npmPackage + "@latest"}, Env: os.Environ(), Dir: filepath.Dir(script),
		Stdout: os.Stderr, Stderr: os.Stderr,
	})
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return err
	case exit.Code != 0:
		return fmt.Errorf("%s ended with exit code %d; see standard error", filepath.Base(script), exit.Code)
	}
	return nil
}
