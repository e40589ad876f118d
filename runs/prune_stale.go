package runs

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/busdk/bus-agent/internal/tree"
)

// The hidden folders of a task: of a run that is being removed, followed by its ID, and
// of one that is being made, followed by digits. Other readers list all folders among
// the runs, where earlier versions had these.
const (
	removedPrefix = ".removed-"
	newPrefix     = ".new-"
)

// RemoveStale removes the stale folders in the tasks that a filter selects by project and
// task: those that [Records.Remove] began to remove, and those of runs that did not
// begin because the recording program died. It keeps the runs that [Records.Remove]
// refuses; force is that of Remove.
func (s *Records) RemoveStale(ctx context.Context, filter Filter, force bool) error {
	tasks, _, err := s.taskFolders(&filter, new(listBudget)) // List reports the problems
	failures := []error{err}
	for _, task := range tasks {
		if ctx.Err() != nil {
			return errors.Join(append(failures, context.Cause(ctx))...)
		}
		names := []string{filepath.Base(filepath.Dir(task)), filepath.Base(task)}
		for _, names := range [][]string{names, append(names, runsName)} {
			failures = append(failures, s.removeStaleIn(ctx, names, force))
		}
	}
	return errors.Join(failures...)
}

// removeStaleIn removes the stale folders in a folder below the root.
func (s *Records) removeStaleIn(ctx context.Context, names []string, force bool) error {
	root, err := s.openBelow(names...)
	if err != nil {
		return ignoreMissing(err)
	}
	defer root.Close()
	dir := filepath.Join(append([]string{s.Root}, names...)...)
	var failures []error
	err = tree.Each(tree.Of(ctx), root, func(entry fs.DirEntry) error {
		if entry.IsDir() {
			failures = append(failures, removeIfStale(ctx, root, entry.Name(), filepath.Join(dir, entry.Name()), force))
		}
		return nil
	})
	return errors.Join(append(failures, err)...)
}

// removeIfStale removes a folder if it is stale.
func removeIfStale(ctx context.Context, root *os.Root, name, dir string, force bool) error {
	id, removed := strings.CutPrefix(name, removedPrefix)
	digits, begun := strings.CutPrefix(name, newPrefix)
	switch {
	case removed && isFolderName(id):
	case begun && allDigits(digits):
	default:
		return nil
	}
	run, err := ReadRun(dir)
	switch {
	case err == nil && removed:
		if run.checkOver(true) != nil {
			return nil
		}
		return removeRecord(ctx, root, name, maxRemoved)
	case err == nil:
		if run.checkOver(force) != nil {
			return nil
		}
		return removeBegun(ctx, root, name)
	case !errors.Is(err, fs.ErrNotExist):
		return nil // unknown
	case removed: // it had a record, if it is empty
		return ignoreNotEmpty(ignoreMissing(root.Remove(name)))
	}
	if stat, err := root.Lstat(name); err != nil || time.Since(stat.ModTime()) < freshFolder {
		return ignoreMissing(err)
	}
	return removeBegun(ctx, root, name)
}

// removeBegun removes a folder that has only files of a run that is being made.
func removeBegun(ctx context.Context, root *os.Root, name string) error {
	folder, err := root.OpenRoot(name)
	if err != nil {
		return ignoreMissing(err)
	}
	defer folder.Close()
	err = tree.Each(tree.Of(ctx), folder, func(entry fs.DirEntry) error {
		own := entry.Name() == promptName || entry.Name() == infoName || isTransient(entry.Name())
		if !own || !entry.Type().IsRegular() {
			return errNotOurs
		}
		return nil
	})
	if err != nil {
		return ignoreNotOurs(err)
	}
	return removeRecord(ctx, root, name, maxRemoved)
}
