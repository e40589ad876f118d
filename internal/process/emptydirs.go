package process

import (
	"fmt"
	"io/fs"
	"strings"
	"sync"

	"github.com/busdk/bus-agent/internal/unix"
)

// emptyDirs removes empty directories that a process left in a directory.
type emptyDirs struct {
	place place
	yard  *yard // nil when there is nothing to do
}

// A place identifies a directory, whatever its path.
type place struct {
	device, inode uint64
}

// A yard is a directory with runs that use it.
type yard struct {
	fd     int
	runs   int
	absent map[string]bool // by name, from the first run that looked
}

// yards are the directories of all runs: what is absent at the start of one run
// may be in use by another, which then has to remove it.
var yards = struct {
	sync.Mutex
	at map[place]*yard
}{at: make(map[place]*yard)}

// watchEmptyDirs notes which of the names are absent in dir.
func watchEmptyDirs(dir string, names []string) (emptyDirs, error) {
	if len(names) == 0 {
		return emptyDirs{}, nil
	}
	for _, name := range names {
		if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
			return emptyDirs{}, fmt.Errorf("%q in EmptyDirs is not the name of a directory", name)
		}
	}
	fd, err := open(dir)
	if err != nil {
		return emptyDirs{}, &fs.PathError{Op: "open", Path: dir, Err: err}
	}
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		unix.Close(fd)
		return emptyDirs{}, &fs.PathError{Op: "stat", Path: dir, Err: err}
	}
	l := emptyDirs{place: place{uint64(stat.Dev), stat.Ino}}

	yards.Lock()
	defer yards.Unlock()
	l.yard = yards.at[l.place]
	if l.yard == nil {
		l.yard = &yard{fd: fd, absent: make(map[string]bool)}
		yards.at[l.place] = l.yard
	} else {
		unix.Close(fd)
	}
	l.yard.runs++
	for _, name := range names {
		if _, seen := l.yard.absent[name]; !seen {
			l.yard.absent[name] = unix.Fstatat(l.yard.fd, name, &stat, unix.AT_SYMLINK_NOFOLLOW) == unix.ENOENT
		}
	}
	return l, nil
}

func open(dir string) (int, error) {
	for {
		fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

// remove removes what was absent, if no other run is in the directory. It can
// remove nothing but empty directories and follows no link.
func (l emptyDirs) remove() {
	if l.yard == nil {
		return
	}
	yards.Lock()
	defer yards.Unlock()
	if l.yard.runs--; l.yard.runs > 0 {
		return
	}
	delete(yards.at, l.place)
	for name, absent := range l.yard.absent {
		if absent {
			unix.Unlinkat(l.yard.fd, name, unix.AT_REMOVEDIR)
		}
	}
	unix.Close(l.yard.fd)
}
