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

// The hidden folders among the runs of a task: of runs that are being removed, with
// the name of the run behind it, and of those that are being made, with digits.
const (
	removedPrefix = ".removed-"
	newPrefix     = ".new-"
)

// RemoveStale ends what [Records.Remove] began and could not end, and removes what is
// left of runs that were never begun, because the program that was to record them
// is gone. It looks at the tasks that a filter chooses by project and task. What
// only looks stale stays: see [Records.Remove] for which runs do, and for force.
func (s *Records) RemoveStale(ctx context.Context, filter Filter, force bool) error {
	tasks, _, err := s.taskFolders(&filter, new(listBudget)) // a list of the runs reports the problems
	failures := []error{err}
	for _, task := range tasks {
		if ctx.Err() != nil {
			return errors.Join(append(failures, context.Cause(ctx))...)
		}
		root, err := s.openBelow(filepath.Base(filepath.Dir(task)), filepath.Base(task), runsName)
		if err != nil {
			failures = append(failures, ignoreMissing(err))
			continue
		}
		err = tree.Each(tree.Of(ctx), root, func(entry fs.DirEntry) error {
			if entry.IsDir() {
				dir := filepath.Join(task, runsName, entry.Name())
				failures = append(failures, removeIfStale(ctx, root, entry.Name(), dir, force))
			}
			return nil
		})
		failures = append(failures, err, root.Close())
	}
	return errors.Join(failures...)
}

// removeIfStale removes a folder if it is stale.
func removeIfStale(ctx context.Context, root *os.Root, name, dir string, force bool) error {
	id, removed := strings.CutPrefix(name, removedPrefix)
	digits, begun := strings.CutPrefix(name, newPrefix)
	switch {
	case removed && isName(id):
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
		return nil // nothing says what it is
	case removed: // it had a record, if it is empty
		return ignoreNotEmpty(ignoreMissing(root.Remove(name)))
	}
	if stat, err := root.Lstat(name); err != nil || time.Since(stat.ModTime()) < freshFolder {
		return ignoreMissing(err)
	}
	return removeBegun(ctx, root, name)
}

// removeBegun removes a folder that holds nothing but what a run has that is being
// made.
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
