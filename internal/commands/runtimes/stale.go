package runtimes

import (
	"cmp"
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
)

// staleProcess is a process that a dead bus-agent left behind.
type staleProcess struct {
	PID     int    `json:"pid"`
	Runtime string `json:"runtime,omitempty"`
	Program string `json:"program"`
	Owner   int    `json:"owner_pid"`
	AgeMS   int64  `json:"age_ms"`
	Ended   bool   `json:"ended"`
}

// staleFolder is a folder that a dead bus-agent left behind.
type staleFolder struct {
	Path    string `json:"path"`
	What    string `json:"what"`
	Owner   int    `json:"owner_pid"`
	Removed bool   `json:"removed"`
	Error   string `json:"error,omitempty"`
}

// findStale adds to the report what dead owners left behind, and ends and removes it if
// the report is of a sweep: the processes first, because they use the folders.
func findStale(ctx context.Context, prog *cmdline.Program, report *doctorReport, workdir string, owner int) error {
	report.Processes, report.Folders = []staleProcess{}, []staleFolder{}
	var errs []error
	left, err := process.StaleProcesses(owner)
	if report.Swept && err == nil {
		var ended []process.StaleProcess
		ended, left, err = process.EndStaleProcesses(ctx, owner)
		for _, l := range ended {
			report.Processes = append(report.Processes, newStaleProcess(prog, l, true))
		}
		if len(left) > 0 {
			errs = append(errs, fmt.Errorf("%s could not be ended", cmdline.Count(len(left), "process", "processes")))
		}
	}
	if err != nil {
		errs = append(errs, &cmdline.Failure{Text: "cannot list processes", Err: err})
	}
	for _, l := range left {
		report.Processes = append(report.Processes, newStaleProcess(prog, l, false))
	}
	stale := locations(prog, workdir)
	find := stale.Stale
	if report.Swept {
		find = stale.RemoveStale
	}
	kept := 0
	for _, f := range find(ctx, owner) {
		folder := staleFolder{Path: f.Path, What: f.What, Owner: f.Owner, Removed: report.Swept && f.Err == nil}
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

// RemoveStale removes the folders that the dead process owner left in workdir. What cannot
// be removed is a warning.
func RemoveStale(ctx context.Context, prog *cmdline.Program, workdir string, owner int) {
	if owner == 0 { // there has been none; 0 would mean any
		return
	}
	for _, f := range locations(prog, workdir).RemoveStale(ctx, owner) {
		if f.Err != nil {
			prog.Screen.Warn(fmt.Sprintf("cannot remove %s: %v", f.Path, f.Err))
		}
	}
}

// locations returns where runs in a directory keep folders.
func locations(prog *cmdline.Program, workdir string) instructions.Locations {
	return instructions.Locations{Workdir: workdir, Owned: ownedBlocks(prog), TempDirs: runner.TempDirs(prog.Env.Environ)}
}

func newStaleProcess(prog *cmdline.Program, l process.StaleProcess, ended bool) staleProcess {
	p := staleProcess{PID: l.PID, Owner: l.Owner, AgeMS: time.Since(l.Born).Milliseconds(), Ended: ended}
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

// staleText returns a line for each process and folder.
func (r *doctorReport) staleText() string {
	var b strings.Builder
	for _, p := range r.Processes {
		age := (time.Duration(p.AgeMS) * time.Millisecond).Round(time.Second)
		fmt.Fprintf(&b, "%sprocess %d: %s, of bus-agent %d, %v old\n", done(p.Ended, "ended "), p.PID, cmdline.OneWord(cmp.Or(p.Runtime, p.Program)), p.Owner, age)
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
