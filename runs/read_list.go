package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/busdk/bus-agent/internal/unix"
)

// A Filter selects runs. Its zero value selects all.
type Filter struct {
	Project string
	Task    string
	Parent  string // ID of the run that started them
	Status  Status
	// Runtime is a runtime token, or the ID of a runtime for all its variants.
	Runtime string
	// Since and Until bound the start of runs, both included.
	Since, Until time.Time
	Limit        int // the newest runs, 0 for all
}

func (f *Filter) matches(r *Run) bool {
	return (f.Project == "" || r.ProjectID == f.Project) &&
		(f.Task == "" || r.TaskID == f.Task) &&
		(f.Parent == "" || r.ParentRunID == f.Parent) &&
		(f.Status == "" || r.Status == f.Status) &&
		(f.Runtime == "" || r.Agent == f.Runtime || strings.HasPrefix(r.Agent, f.Runtime+":")) &&
		(f.Since.IsZero() || !r.StartTime.Before(f.Since)) &&
		(f.Until.IsZero() || !r.StartTime.After(f.Until))
}

// The time in a run ID is that of its start, at most idSlack before it. Filters allow for
// localSlack, because some writers use local time.
const (
	idSlack    = time.Minute
	localSlack = 24 * time.Hour
)

// mayMatch reports whether the filter may select a run with this time in its ID.
func (f *Filter) mayMatch(at time.Time) bool {
	return (f.Since.IsZero() || !at.Add(localSlack).Before(f.Since)) &&
		(f.Until.IsZero() || !at.Add(-localSlack).After(f.Until))
}

// List returns the runs that a filter selects, newest first, and an error for each
// record or folder that cannot be read. A root that does not exist has no runs.
func (s *Records) List(ctx context.Context, filter Filter) (list []Run, problems []error, err error) {
	candidates, problems, err := s.candidates(ctx, &filter)
	if err != nil {
		return nil, nil, err
	}
	chunk := len(candidates)
	if filter.Limit > 0 {
		chunk = max(filter.Limit, 64)
	}
	for len(candidates) > 0 && !filter.full(list, candidates[0].at) {
		now := candidates[:min(chunk, len(candidates))]
		candidates = candidates[len(now):]
		read, failed, err := readAll(ctx, now)
		if err != nil {
			return nil, nil, err
		}
		problems = append(problems, failed...)
		list = slices.Grow(list, len(read))
		for i := range read {
			if read[i].Dir != "" && filter.matches(&read[i]) {
				list = append(list, read[i])
			}
		}
		slices.SortFunc(list, newerFirst)
	}
	if filter.Limit > 0 && len(list) > filter.Limit {
		list = list[:filter.Limit]
	}
	return list, problems, nil
}

// full reports whether the list is complete: no run with this time in its ID, or an
// earlier one, can be newer than those in the list.
func (f *Filter) full(list []Run, next time.Time) bool {
	return f.Limit > 0 && len(list) >= f.Limit && next.Add(idSlack).Before(list[f.Limit-1].StartTime)
}

func newerFirst(a, b Run) int {
	return cmp.Or(b.StartTime.Compare(a.StartTime), strings.Compare(b.RunID, a.RunID), strings.Compare(a.Dir, b.Dir))
}

// A candidate is a folder that may have the record of a run.
type candidate struct {
	task string // folder of the task
	id   string // name of the folder
	at   time.Time
}

func (c *candidate) dir() string { return filepath.Join(c.task, runsName, c.id) }

// farFuture is the time of names without one, so that their records are always read.
var farFuture = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// candidates returns the folders of runs that a filter may select, by their names, newest
// first, and an error for each folder that cannot be read.
func (s *Records) candidates(ctx context.Context, filter *Filter) (all []candidate, problems []error, err error) {
	var budget listBudget
	tasks, problems, err := s.taskFolders(filter, &budget)
	if err != nil {
		return nil, nil, err
	}
	of := make([][]candidate, len(tasks))
	errs := make([]error, len(tasks))
	err = inParallel(ctx, len(tasks), func(i int) { of[i], errs[i] = runFolders(tasks[i], filter, &budget) })
	all = slices.Concat(of...)
	slices.SortFunc(all, func(a, b candidate) int {
		return cmp.Or(b.at.Compare(a.at), strings.Compare(b.id, a.id), strings.Compare(a.task, b.task))
	})
	return all, append(problems, present(errs)...), err
}

// present returns the errors that are not nil.
func present(errs []error) []error {
	return slices.DeleteFunc(errs, func(err error) bool { return err == nil })
}

// taskFolders returns the folders of tasks.
func (s *Records) taskFolders(filter *Filter, budget *listBudget) (tasks []string, problems []error, err error) {
	root, err := filepath.EvalSymlinks(s.Root) // the root alone may be a link
	if err != nil {
		return nil, nil, ignoreMissing(err)
	}
	if stat, err := os.Lstat(root); err == nil && !stat.IsDir() {
		return nil, nil, &fs.PathError{Op: "open", Path: s.Root, Err: syscall.ENOTDIR}
	}
	projects, err := folders(root, filter.Project, budget)
	if errors.Is(err, errTooMany) {
		problems = append(problems, err)
	} else if err != nil {
		return nil, nil, err
	}
	for _, project := range projects {
		of, err := folders(filepath.Join(s.Root, project), filter.Task, budget)
		if err != nil {
			problems = append(problems, err)
		}
		for _, task := range of {
			tasks = append(tasks, filepath.Join(s.Root, project, task))
		}
	}
	return tasks, problems, nil
}

// A listBudget bounds the folder entries that a list reads.
type listBudget struct{ read atomic.Int64 }

// The limits of the entries that are read from one folder, and from all.
const maxEntries, maxListed = 100_000, 1_000_000

var errTooMany = errors.New("it has too many entries; those beyond are not read")

// folders returns the names of the folders in dir, or only, if that is not empty and
// exists. It ignores links. A dir that does not exist has none. With errTooMany it
// returns those that were read.
func folders(dir, only string, budget *listBudget) ([]string, error) {
	if only != "" {
		if !isFolderName(only) {
			return nil, nil
		}
		stat, err := os.Lstat(filepath.Join(dir, only))
		if err != nil || !stat.IsDir() {
			return nil, ignoreMissing(err)
		}
		return []string{only}, nil
	}
	f, err := openFolder(dir)
	if err != nil {
		return nil, ignoreMissing(err)
	}
	defer f.Close()
	return foldersOf(f, budget)
}

// openFolder opens a folder for reading. It does not follow a link.
func openFolder(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_DIRECTORY, 0)
	if errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		err = fmt.Errorf("%s is not a folder; runs in it are not listed", path)
	}
	return f, err
}

func foldersOf(f *os.File, budget *listBudget) (names []string, err error) {
	for n := 0; err == nil; {
		if n >= maxEntries || budget.read.Load() >= maxListed {
			return names, &fs.PathError{Op: "read", Path: f.Name(), Err: errTooMany}
		}
		var entries []fs.DirEntry
		entries, err = f.ReadDir(1024)
		n += len(entries)
		budget.read.Add(int64(len(entries)))
		for _, entry := range entries {
			if entry.IsDir() && isFolderName(entry.Name()) {
				names = append(names, entry.Name())
			}
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return names, ignoreMissing(err)
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// runFolders returns the folders of the runs of a task that a filter may select.
func runFolders(task string, filter *Filter, budget *listBudget) ([]candidate, error) {
	f, err := openFolder(filepath.Join(task, runsName))
	if err != nil {
		return nil, ignoreMissing(err)
	}
	defer f.Close()
	names, err := foldersOf(f, budget)
	var list []candidate
	for _, name := range names {
		at, ok := timeOf(name)
		if !ok {
			at = farFuture
		}
		if !ok || filter.mayMatch(at) {
			list = append(list, candidate{task: task, id: name, at: at})
		}
	}
	return list, err
}

// readAll reads the runs of candidates. A run that cannot be read has no Dir.
func readAll(ctx context.Context, candidates []candidate) (list []Run, problems []error, err error) {
	list = make([]Run, len(candidates))
	errs := make([]error, len(candidates))
	err = inParallel(ctx, len(candidates), func(i int) { list[i], errs[i] = candidates[i].read() })
	return list, present(errs), err
}

// freshFolder is how long a folder may be without a record: other writers make the folder
// first.
const freshFolder = time.Minute

// read reads the run of a candidate. A folder without a record is an error only if its
// name is a run ID and it is not fresh.
func (c *candidate) read() (Run, error) {
	dir := c.dir()
	run, err := ReadRun(dir)
	if err == nil {
		return run, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return Run{}, &damagedRun{*c, err}
	}
	stat, missing := os.Lstat(dir)
	if missing != nil || c.at.Equal(farFuture) || time.Since(stat.ModTime()) < freshFolder {
		return Run{}, nil
	}
	return Run{}, &damagedRun{*c, fmt.Errorf("%s: there is no %s", dir, infoName)}
}

// damagedRun is the error of a record that cannot be read.
type damagedRun struct {
	candidate
	err error
}

func (d *damagedRun) Error() string { return d.err.Error() }
func (d *damagedRun) Unwrap() error { return d.err }

// inParallel calls do for 0 to n-1, until ctx is done. The calls mostly wait for the
// system.
func inParallel(ctx context.Context, n int, do func(i int)) error {
	var next atomic.Int64
	var working sync.WaitGroup
	for range min(n, 2*runtime.GOMAXPROCS(0)) {
		working.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				do(i)
			}
		})
	}
	working.Wait()
	return ctx.Err()
}
