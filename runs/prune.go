package runs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/busdk/bus-agent/internal/tree"
)

// Remove removes the record of a run: its folder with all files. A run of another root,
// or one that is running or may be, is an error; force removes a run of
// [StatusUnknown]. Remove follows no link. The run leaves the lists at once, even if
// ctx ends Remove early. A record of more than 500,000 entries is removed in steps: the
// error reports it, and [Records.RemoveStale] continues.
func (s *Records) Remove(ctx context.Context, run *Run, force bool) error {
	parts, err := s.locate(run.Dir)
	if err != nil {
		return err
	}
	now, err := ReadRun(run.Dir)
	if err == nil {
		err = now.checkOver(force)
	}
	if err != nil {
		return err
	}
	root, err := s.openBelow(parts.project, parts.task, runsName)
	if err != nil {
		return err
	}
	root.Close() // it is a folder
	task, err := s.openBelow(parts.project, parts.task)
	if err != nil {
		return err
	}
	defer task.Close()
	removed := removedPrefix + parts.run
	if err := task.Rename(filepath.Join(runsName, parts.run), removed); err != nil {
		return err
	}
	return removeRecord(ctx, task, removed, maxRemoved)
}

// checkOver returns an error if a run must not be removed.
func (r *Run) checkOver(force bool) error {
	switch {
	case r.Status == StatusRunning:
		return fmt.Errorf("%s is running", r.Dir)
	case r.Status == StatusUnknown && !force:
		return fmt.Errorf("%s may be running on another machine", r.Dir)
	}
	return nil
}

// maxRemoved bounds the entries of a record that are removed at once.
const maxRemoved = 500_000

// removeRecord removes a folder with its content, at most limit entries, infoName last:
// the rest of an interrupted removal can still be recognised.
func removeRecord(ctx context.Context, in *os.Root, name string, limit int64) error {
	b := tree.NewBudget(ctx, tree.Limits{Entries: limit})
	err := tree.Remove(b, in, name, infoName)
	if errors.Is(err, tree.ErrOver) {
		return fmt.Errorf("%s: %w; remove it again for the rest", filepath.Join(in.Name(), name), err)
	}
	return err
}

// location names a run below a root.
type location struct{ project, task, run string }

// locate returns the location of the run in dir.
func (s *Records) locate(dir string) (at location, err error) {
	below, err := filepath.Rel(s.Root, dir)
	parts := strings.Split(below, "/")
	if err != nil || len(parts) != 4 || parts[2] != runsName || !isFolderName(parts[0]) || !isFolderName(parts[1]) || !isFolderName(parts[3]) {
		return at, fmt.Errorf("%s is not a run of %s", dir, s.Root)
	}
	return location{project: parts[0], task: parts[1], run: parts[3]}, nil
}

// openBelow opens a folder below the root, following no link.
func (s *Records) openBelow(names ...string) (*os.Root, error) {
	root, err := os.OpenRoot(s.Root)
	for _, name := range names {
		if err != nil {
			return nil, err
		}
		stat, statErr := root.Lstat(name)
		above := root
		switch {
		case statErr != nil:
			err = statErr
		case !stat.IsDir():
			err = fmt.Errorf("%s: not a folder", filepath.Join(above.Name(), name))
		default:
			root, err = above.OpenRoot(name)
		}
		_ = above.Close()
	}
	return root, err
}

// RemoveTask removes the folder of a run's task if the task has no runs and no files but
// its prompt and messages. It reports whether it did.
func (s *Records) RemoveTask(run *Run) (bool, error) {
	at, err := s.locate(run.Dir)
	if err != nil {
		return false, err
	}
	task, err := s.openBelow(at.project, at.task)
	if err != nil {
		return false, ignoreMissing(err)
	}
	defer task.Close()
	own := []string{runsName, taskName, busName}
	err = tree.Each(tree.Of(context.Background()), task, func(entry fs.DirEntry) error { // ends at the first other one
		name := entry.Name()
		if entry.IsDir() != (name == runsName) || !entry.IsDir() && !entry.Type().IsRegular() {
			return errNotOurs
		}
		switch {
		case slices.Contains(own, name):
		case isTransient(name): // of a program that was killed
			own = append(own, name)
		default:
			return errNotOurs
		}
		return nil
	})
	if err != nil {
		return false, ignoreNotOurs(err)
	}
	// Only empty folders are removed, so a run that begins now stays.
	for _, name := range own {
		if err := task.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, ignoreNotEmpty(err)
		}
	}
	project, err := s.openBelow(at.project)
	if err != nil {
		return false, err
	}
	defer project.Close()
	err = project.Remove(at.task)
	return err == nil, ignoreNotEmpty(err)
}

// errNotOurs means that a folder has files that are not of a run.
var errNotOurs = errors.New("a file of another program")

func ignoreNotOurs(err error) error {
	if err == errNotOurs {
		return nil
	}
	return err
}

func ignoreNotEmpty(err error) error {
	if errors.Is(err, fs.ErrExist) { // the folder is not empty
		return nil
	}
	return err
}
