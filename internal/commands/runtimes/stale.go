package runtimes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/busdk/bus-agent/instructions"
	"github.com/busdk/bus-agent/internal/commands/cmdline"
	"github.com/busdk/bus-agent/internal/process"
	"github.com/busdk/bus-agent/runner"
	"github.com/busdk/bus-agent/session/control"
)

// leftProcess is a process that a dead owner has left.
type leftProcess struct {
	PID     int    `json:"pid"`
	Runtime string `json:"runtime,omitempty"`
	Program string `json:"program"`
	Owner   int    `json:"owner_pid"`
	AgeMS   int64  `json:"age_ms"`
	Ended   bool   `json:"ended"`
}

// leftFolder is a folder that a dead owner has left.
type leftFolder struct {
	Path    string `json:"path"`
	What    string `json:"what"`
	Owner   int    `json:"owner_pid"`
	Removed bool   `json:"removed"`
	Error   string `json:"error,omitempty"`
}

// findLeft finds what dead owners have left and, where the report says so, ends
// and removes it: the processes first, as they use the folders.
func findLeft(prog *cmdline.Program, ctx context.Context, report *doctorReport, workdir string, owner int) error {
	report.Processes, report.Folders = []leftProcess{}, []leftFolder{}
	var errs []error
	left, err := process.StaleProcesses(owner)
	if report.Swept && err == nil {
		var ended []process.StaleProcess
		ended, left, err = process.EndStaleProcesses(ctx, owner)
		for _, l := range ended {
			report.Processes = append(report.Processes, processReport(prog, l, true))
		}
		if len(left) > 0 {
			errs = append(errs, fmt.Errorf("%s could not be ended", cmdline.Count(len(left), "process", "processes")))
		}
	}
	if err != nil {
		errs = append(errs, &cmdline.Failure{Text: "processes cannot be looked at", Err: err})
	}
	for _, l := range left {
		report.Processes = append(report.Processes, processReport(prog, l, false))
	}
	places := places(prog, workdir)
	find := places.Stale
	if report.Swept {
		find = places.RemoveStale
	}
	kept := 0
	for _, f := range find(ctx, owner) {
		folder := leftFolder{Path: f.Path, What: f.What, Owner: f.Owner, Removed: report.Swept && f.Err == nil}
		if f.Err != nil {
			kept++
			folder.Error = f.Err.Error()
		}
		report.Folders = append(report.Folders, folder)
	}
	if kept > 0 {
		errs = append(errs, fmt.Errorf("%s could not be removed", cmdline.Count(kept, "folder", "folders")))
	}
	return errors.Join(errs...)
}

// removeLeft removes the folders that the process that held a session has left, if it
// is dead. What cannot be removed is a warning: the session itself is over.
func RemoveStale(prog *cmdline.Program, ctx context.Context, entry control.Entry) {
	if entry.OwnerPID == 0 {
		return // it has never had one, and 0 is all owners
	}
	for _, f := range places(prog, entry.WorkDir).RemoveStale(ctx, entry.OwnerPID) {
		if f.Err != nil {
			prog.Screen.Warn(fmt.Sprintf("%s is left: %v", f.Path, f.Err))
		}
	}
}

// places are where runs in a directory may have left folders.
func places(prog *cmdline.Program, workdir string) instructions.Locations {
	return instructions.Locations{Workdir: workdir, Owned: ownedPlaces(prog), TempDirs: runner.TempDirs(prog.Env.Environ)}
}

func processReport(prog *cmdline.Program, l process.StaleProcess, ended bool) leftProcess {
	p := leftProcess{PID: l.PID, Owner: l.Owner, AgeMS: time.Since(l.Born).Milliseconds(), Ended: ended}
	if len(l.Names) > 0 {
		p.Program = l.Names[0]
	}
	for _, rt := range prog.Stored.Registry.All() {
		if slices.ContainsFunc(l.Names, func(name string) bool { return slices.Contains(rt.Executables, name) }) {
			p.Runtime = rt.ID
		}
	}
	return p
}

// leftText is what was left, for people, a line each.
func (r *doctorReport) leftText() string {
	var b strings.Builder
	for _, p := range r.Processes {
		what := p.Runtime
		if what == "" {
			what = p.Program
		}
		age := (time.Duration(p.AgeMS) * time.Millisecond).Round(time.Second)
		fmt.Fprintf(&b, "%sprocess %d: %s, of bus-agent %d, %v old\n", done(p.Ended, "ended "), p.PID, cmdline.OneWord(what), p.Owner, age)
	}
	for _, f := range r.Folders {
		fmt.Fprintf(&b, "%s%s: %s, of bus-agent %d", done(f.Removed, "removed "), cmdline.OneWord(f.Path), f.What, f.Owner)
		if f.Error != "" {
			b.WriteString(": " + cmdline.OneWord(f.Error))
		}
		b.WriteByte('\n')
	}
	if b.Len() == 0 {
		return "nothing to sweep\n"
	}
	return b.String()
}

func done(ok bool, word string) string {
	if ok {
		return word
	}
	return ""
}
