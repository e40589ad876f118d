package instructions

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/busdk/bus-agent/internal/process"
)

// Places are where runs have folders of their own.
type Places struct {
	Workdir string
	Owned   []Owned
	// TempDirs are where folders for temporary files are made.
	TempDirs []string
}

// A Folder is what a run has left whose process was killed.
type Folder struct {
	Path  string // absolute
	What  string // for people, for example "private home"
	Owner int    // PID that the process had
	Err   error  // why it could not be removed
}

// Abandoned lists the private homes and the folders for temporary files that
// processes of this user have left that are dead; with an owner other than 0
// those of the process that had this PID. It changes nothing. Whatever is, or may
// be, in use is not among them: by another process, in another container, on
// another machine. A place that cannot be read has nothing.
func (p Places) Abandoned(owner int) []Folder { return p.abandoned(owner, false) }

// RemoveAbandoned removes what Abandoned lists. Kept sessions stay, and what homes
// say of themselves with [Home.Salvage] is added to them.
func (p Places) RemoveAbandoned(owner int) []Folder { return p.abandoned(owner, true) }

func (p Places) abandoned(owner int, remove bool) (all []Folder) {
	seen := map[string]bool{}
	for _, o := range p.Owned {
		if o.Home != "" && checkName(o.Home) == nil && !seen[o.Home] {
			seen[o.Home] = true
			all = append(all, abandonedHomes(p.Workdir, o.Home, owner, remove)...)
		}
	}
	for _, dir := range p.TempDirs {
		if !seen[dir] {
			seen[dir] = true
			all = append(all, abandonedTemps(dir, owner, remove)...)
		}
	}
	return all
}

// abandonedHomes looks at the homes below a parent in dir.
func abandonedHomes(dir, parent string, owner int, remove bool) (found []Folder) {
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
	if remove {
		defer lockWorkdir(top)()
	}
	eachAbandoned(base, isHomeName, owner, func(name string, pid int) {
		f := Folder{Path: filepath.Join(dir, filepath.FromSlash(parent), name), What: "private home", Owner: pid}
		if remove {
			f.Err = removeHome(base, name)
		}
		found = append(found, f)
	})
	if remove && len(found) > 0 {
		removeBase(top, base, parent)
	}
	return found
}

// abandonedTemps looks at the folders of runs in a directory for temporary files,
// which are folders for temporary files or parents of homes.
func abandonedTemps(dir string, owner int, remove bool) (found []Folder) {
	base, err := os.OpenRoot(dir)
	if err != nil {
		return nil
	}
	defer base.Close()
	isTemp := func(name string) bool { return strings.HasPrefix(name, process.TempPrefix) }
	eachAbandoned(base, isTemp, owner, func(name string, pid int) {
		f := Folder{Path: filepath.Join(dir, name), What: "temporary files", Owner: pid}
		if remove {
			f.Err = removeTree(base, name, nil)
		}
		found = append(found, f)
	})
	entries, err := fs.ReadDir(base.FS(), ".")
	if err != nil {
		return found
	}
	for _, entry := range entries {
		if name := entry.Name(); entry.IsDir() && isTemp(name) && isHomeName(strings.TrimPrefix(name, process.TempPrefix)) {
			found = append(found, abandonedHomes(dir, name, owner, remove)...)
		}
	}
	return found
}

// eachAbandoned calls found with each folder of base that is abandoned, and whose
// name is accepted, while it is sure to stay so. The owner is as in
// [Places.Abandoned].
func eachAbandoned(base *os.Root, accepted func(name string) bool, owner int, found func(name string, owner int)) {
	entries, err := fs.ReadDir(base.FS(), ".")
	if err != nil {
		return
	}
	for _, entry := range entries {
		if !entry.IsDir() || !accepted(entry.Name()) {
			continue
		}
		folder, err := base.OpenRoot(entry.Name())
		if err != nil {
			continue
		}
		if pid, release, ok := process.Abandoned(folder); ok {
			if owner == 0 || owner == pid {
				found(entry.Name(), pid)
			}
			release()
		}
		folder.Close()
	}
}

// removeAbandoned removes the homes below base that are abandoned. What cannot be
// removed stays, for somebody who asks.
func removeAbandoned(base *os.Root) {
	eachAbandoned(base, isHomeName, 0, func(name string, _ int) { _ = removeHome(base, name) })
}
