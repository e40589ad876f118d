package instructions

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/busdk/bus-agent/internal/process"
	"github.com/busdk/bus-agent/internal/tree"
)

// Locations are the places of the folders of runs.
type Locations struct {
	Workdir string
	Owned   []Owned
	// TempDirs are the directories of the folders for temporary files.
	TempDirs []string
}

// A StaleFolder is a folder of a run whose process was killed.
type StaleFolder struct {
	Path  string // absolute
	What  string // description, for example "private home"
	Owner int    // PID that the process had
	Err   error  // why it could not be removed
}

// Stale lists the stale private homes and folders for temporary files: those of dead
// processes of this user; with an owner other than 0, those of the process that had
// this PID. It changes nothing. Folders that may be in use, by another process, in
// another container or on another machine, are not stale. A location that cannot be
// read has none. When ctx ends, Stale returns what it has found.
func (p Locations) Stale(ctx context.Context, owner int) []StaleFolder {
	return p.stale(tree.NewBudget(ctx, sweeping), owner, false)
}

// sweeping is the budget of a sweep, which ends only with its context.
var sweeping = tree.Limits{Bytes: tree.Default.Bytes, Depth: tree.Default.Depth}

// RemoveStale removes what Stale lists, until ctx ends; a further call continues. Kept
// sessions stay, and the files set by [Home.KeepIfStale] are added to them.
func (p Locations) RemoveStale(ctx context.Context, owner int) []StaleFolder {
	return p.stale(tree.NewBudget(ctx, sweeping), owner, true)
}

func (p Locations) stale(b *tree.Budget, owner int, remove bool) (all []StaleFolder) {
	seen := map[string]bool{}
	for _, o := range p.Owned {
		if o.Home != "" && checkName(o.Home) == nil && !seen[o.Home] {
			seen[o.Home] = true
			all = append(all, staleHomes(b, p.Workdir, o.Home, owner, remove)...)
		}
	}
	for _, dir := range p.TempDirs {
		if !seen[dir] {
			seen[dir] = true
			all = append(all, staleTemps(b, dir, owner, remove)...)
		}
	}
	return all
}

// staleHomes returns the stale homes below a parent in dir, and removes them if remove
// is set.
func staleHomes(b *tree.Budget, dir, parent string, owner int, remove bool) (found []StaleFolder) {
	top, err := os.OpenRoot(dir)
	if err != nil {
		return nil
	}
	defer top.Close()
	base, err := top.OpenRoot(parent)
	if err != nil {
		return nil
	}
	defer base.Close()
	eachStale(b, base, isHomeName, owner, func(name string, pid int) {
		f := StaleFolder{Path: filepath.Join(dir, filepath.FromSlash(parent), name), What: "private home", Owner: pid}
		if remove {
			unlock := lockWorkdir(b, top)
			f.Err = keepOfStale(b, base, name)
			unlock()
			if f.Err == nil {
				f.Err = removeTree(b, base, name, nil)
			}
		}
		found = append(found, f)
	})
	if remove && len(found) > 0 {
		defer lockWorkdir(b, top)()
		removeBase(top, base, parent)
	}
	return found
}

// staleTemps does so for the folders of runs in a directory for temporary files, which
// are folders for temporary files or parents of homes.
func staleTemps(b *tree.Budget, dir string, owner int, remove bool) (found []StaleFolder) {
	base, err := os.OpenRoot(dir)
	if err != nil {
		return nil
	}
	defer base.Close()
	isTemp := func(name string) bool { return strings.HasPrefix(name, process.TempPrefix) }
	eachStale(b, base, isTemp, owner, func(name string, pid int) {
		f := StaleFolder{Path: filepath.Join(dir, name), What: "temporary files", Owner: pid}
		if remove {
			f.Err = removeTree(b, base, name, nil)
		}
		found = append(found, f)
	})
	var parents []string
	_ = tree.Each(b, base, func(entry fs.DirEntry) error { // an unreadable folder has none
		if name := entry.Name(); entry.IsDir() && isTemp(name) && isHomeName(strings.TrimPrefix(name, process.TempPrefix)) {
			parents = append(parents, name)
		}
		return nil
	})
	slices.Sort(parents)
	for _, name := range parents {
		found = append(found, staleHomes(b, dir, name, owner, remove)...)
	}
	return found
}

// eachStale calls found with each stale folder of base whose name is accepted, while
// no other process can claim it. The owner is as in [Locations.Stale].
func eachStale(b *tree.Budget, base *os.Root, accepted func(name string) bool, owner int, found func(name string, owner int)) {
	var names []string
	_ = tree.Each(b, base, func(entry fs.DirEntry) error { // an unreadable folder has none
		if entry.IsDir() && accepted(entry.Name()) {
			names = append(names, entry.Name())
		}
		return nil
	})
	slices.Sort(names)
	for _, name := range names {
		if b.Spent() != nil {
			return
		}
		folder, err := base.OpenRoot(name)
		if err != nil {
			continue
		}
		if pid, release, ok := process.StaleClaim(folder); ok {
			if owner == 0 || owner == pid {
				found(name, pid)
			}
			release()
		}
		folder.Close()
	}
}

// The budget of a run for removing stale homes of others.
const staleTime = time.Second

var staleLimits = tree.Limits{Entries: 1 << 16, Bytes: tree.Default.Bytes, Depth: tree.Default.Depth}

// removeStaleHomes removes the stale homes below base within that budget. The others
// stay for the next run, or for a sweep.
func removeStaleHomes(b *tree.Budget, base *os.Root) {
	ctx, cancel := context.WithTimeout(context.Background(), staleTime)
	defer cancel()
	part, release := b.Part(ctx, staleLimits)
	defer release()
	eachStale(part, base, isHomeName, 0, func(name string, _ int) { _ = removeHome(part, base, name) })
}
