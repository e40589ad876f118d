package runtimes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/busdk/bus-agent/instructions"
	"github.com/busdk/bus-agent/internal/commands/cmdline"
	"github.com/busdk/bus-agent/internal/process"
	"github.com/busdk/bus-agent/runner"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/control"
)

// staleProcess is a process that a dead bus-agent left behind.
type staleProcess struct {
	PID     int    `json:"pid"`
	Runtime string `json:"runtime,omitempty"`
	Program string `json:"program"`
	Owner   int    `json:"owner_pid"`
	Session string `json:"session,omitempty"` // that the owner held
	AgeMS   int64  `json:"age_ms"`
	Ended   bool   `json:"ended"`
}

func (p *staleProcess) String() string {
	age := (time.Duration(p.AgeMS) * time.Millisecond).Round(time.Second)
	return fmt.Sprintf("process %d: %s, of %s, %v old", p.PID, cmdline.OneWord(cmp.Or(p.Runtime, p.Program)), ownerText(p.Owner, p.Session), age)
}

// staleFolder is a folder that a dead bus-agent left behind.
type staleFolder struct {
	Path    string `json:"path"`
	What    string `json:"what"`
	Owner   int    `json:"owner_pid"`         // 0 if it is not known
	Session string `json:"session,omitempty"` // that the owner held
	Removed bool   `json:"removed"`
	Error   string `json:"error,omitempty"`
}

func (f *staleFolder) String() string {
	return fmt.Sprintf("%s: %s, of %s", cmdline.OneWord(f.Path), f.What, ownerText(f.Owner, f.Session))
}

func ownerText(pid int, label string) string {
	if pid == 0 {
		return "an unknown owner; if no run uses it, \"" + cmdline.Name + " instructions clean\" removes it"
	}
	text := fmt.Sprintf("bus-agent %d", pid)
	if label != "" {
		text += " (session " + cmdline.OneWord(label) + ")"
	}
	return text
}

// sweeper finds what dead owners left behind.
type sweeper struct {
	prog     *cmdline.Program
	places   instructions.Locations
	sessions map[int]string // labels by the PID of the owner
}

func newSweeper(prog *cmdline.Program, workdir string) *sweeper {
	s := &sweeper{prog: prog, places: locations(prog, workdir), sessions: map[int]string{}}
	dir, err := control.DefaultDir(prog.Env.Environ)
	if err != nil {
		return s // there are none
	}
	entries, _, _ := control.NewStore(dir).List(control.Filter{}) // the report does without those it cannot read
	for _, e := range entries {
		if _, later := s.sessions[e.OwnerPID]; !later && e.State != session.StateStopped {
			s.sessions[e.OwnerPID] = e.Label()
		}
	}
	return s
}

// findStale adds to the report what dead owners left behind, and ends and removes it if
// the report is of a sweep: the processes first, because they use the folders. A sweep
// first shows what it has found.
func findStale(ctx context.Context, prog *cmdline.Program, report *doctorReport, workdir string, owner int) error {
	s := newSweeper(prog, workdir)
	report.Processes, report.Folders = []staleProcess{}, []staleFolder{}
	var errs []error
	left, err := process.StaleProcesses(owner)
	if report.Swept {
		s.announce(left, s.places.Stale(ctx, owner))
	}
	if report.Swept && err == nil {
		var ended []process.StaleProcess
		ended, left, err = process.EndStaleProcesses(ctx, owner)
		for _, l := range ended {
			report.Processes = append(report.Processes, s.process(l, true))
		}
		if len(left) > 0 {
			errs = append(errs, fmt.Errorf("%s could not be ended", cmdline.Count(len(left), "process", "processes")))
		}
	}
	if err != nil {
		errs = append(errs, &cmdline.Failure{Text: "cannot list processes", Err: err})
	}
	for _, l := range left {
		report.Processes = append(report.Processes, s.process(l, false))
	}
	find := s.places.Stale
	if report.Swept {
		find = s.places.RemoveStale
	}
	kept := 0
	for _, f := range find(ctx, owner) {
		folder := s.folder(f)
		folder.Removed = report.Swept && f.Err == nil
		if f.Err != nil {
			kept++
			folder.Error = f.Err.Error()
		}
		report.Folders = append(report.Folders, folder)
	}
	report.Folders = append(report.Folders, s.unclaimed(ctx, owner, report.Folders)...)
	if kept > 0 {
		errs = append(errs, fmt.Errorf("%s could not be removed", cmdline.Count(kept, "folder", "folders")))
	}
	return errors.Join(errs...)
}

// unclaimed returns the private homes of the workdir that no run uses and that say nothing
// about their owner, since an agent removed that. Other machines can use them, so a sweep
// leaves them.
func (s *sweeper) unclaimed(ctx context.Context, owner int, stale []staleFolder) (folders []staleFolder) {
	if owner != 0 {
		return nil
	}
	found, _ := instructions.Show(ctx, s.places.Workdir, s.places.Owned) // the command that is offered reports what cannot be read
	for _, f := range found {
		home := filepath.Join(s.places.Workdir, filepath.FromSlash(f.Path))
		if f.What == "private home" && !f.InUse && !slices.ContainsFunc(stale, func(other staleFolder) bool { return other.Path == home }) {
			folders = append(folders, staleFolder{Path: home, What: f.What})
		}
	}
	return folders
}

// announce shows what is about to be ended and removed.
func (s *sweeper) announce(processes []process.StaleProcess, folders []instructions.StaleFolder) {
	for _, l := range processes {
		p := s.process(l, false)
		s.prog.Screen.Info("ending " + p.String())
	}
	for _, l := range folders {
		f := s.folder(l)
		s.prog.Screen.Info("removing " + f.String())
	}
}

// staleTime is how long a command that does something else removes stale folders: the work
// of an agent decides how many files these have.
const staleTime = 5 * time.Second

// RemoveStale removes the folders that the dead process owner left in workdir, for a few
// seconds at most, also if ctx is canceled. What cannot be removed is a warning.
func RemoveStale(ctx context.Context, prog *cmdline.Program, workdir string, owner int) {
	if owner == 0 { // there has been none; 0 would mean any
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), staleTime)
	defer cancel()
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

func (s *sweeper) process(l process.StaleProcess, ended bool) staleProcess {
	p := staleProcess{PID: l.PID, Owner: l.Owner, Session: s.sessions[l.Owner], AgeMS: time.Since(l.Born).Milliseconds(), Ended: ended}
	if len(l.Names) > 0 {
		p.Program = l.Names[0]
	}
	for _, rt := range s.prog.Stored.Registry.All() {
		if slices.ContainsFunc(l.Names, func(name string) bool { return slices.Contains(rt.Executables, name) }) {
			p.Runtime = rt.ID
		}
	}
	return p
}

func (s *sweeper) folder(f instructions.StaleFolder) staleFolder {
	return staleFolder{Path: f.Path, What: f.What, Owner: f.Owner, Session: s.sessions[f.Owner]}
}

// staleText returns a line for each process and folder.
func (r *doctorReport) staleText() string {
	var b strings.Builder
	for _, p := range r.Processes {
		b.WriteString(done(p.Ended, "ended ") + p.String() + "\n")
	}
	for _, f := range r.Folders {
		b.WriteString(done(f.Removed, "removed ") + f.String())
		if f.Error != "" {
			b.WriteString(": " + cmdline.OneWord(f.Error))
		}
		b.WriteByte('\n')
	}
	switch {
	case b.Len() == 0:
		return "nothing to sweep\n"
	case !r.Swept && (len(r.Processes) > 0 || slices.ContainsFunc(r.Folders, func(f staleFolder) bool { return f.Owner != 0 })):
		b.WriteString("\"" + cmdline.Name + " doctor --sweep\" ends these processes and removes these files\n")
	}
	return b.String()
}

func done(ok bool, word string) string {
	if ok {
		return word
	}
	return ""
}
