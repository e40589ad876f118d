package instructions

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

const (
	maxLinks = 40   // as Linux follows in one name
	maxName  = 255  // bytes of one component
	maxPath  = 4096 // bytes of a name
)

// Contains reports whether name, with every link followed, is dir or inside it, as
// defined by [Within]. False can also mean that it is unknown: use Contains to permit,
// and [Touches] to refuse.
func Contains(dir, name string) bool { return len(Within(dir, name)) > 0 }

// Touches reports whether a program that can write to dir can change what name is:
// name is dir or inside it, or its path leads through dir, by a link in either
// direction, or that is unknown. Names are read as in [Within].
func Touches(dir, name string) bool {
	base, spellings := spell(dir, name)
	if base == nil {
		return true
	}
	touches := false
	for _, spelling := range spellings {
		_, _, ok := follow(spelling, func(info fs.FileInfo) { touches = touches || os.SameFile(info, base) })
		if !ok || touches {
			return true
		}
	}
	return false
}

// Within returns where name leads: slash-separated paths below dir without links; "."
// is dir. It returns nil if name does not lead to dir or into it, or if that is
// unknown.
//
// A relative name is relative to dir. Every link is followed, also one whose target
// does not exist: it leads to where the target would be created. Missing elements keep
// their names. ".." is resolved both as the kernel does and as [filepath.Clean] does,
// since programs do either; if the two differ, both must be inside and both are
// returned. Directories are compared by identity, so another spelling of dir and a
// case-insensitive file system do not matter.
//
// The result is also nil if dir is not absolute or not a directory, for an empty or
// too long name or one with a NUL, for too many links, for elements that may not be
// read, and for a link of /proc such as /dev/fd/3, which differs by process.
//
// Nothing is opened, so a FIFO does not block. A link that is replaced later leads
// elsewhere.
func Within(dir, name string) []string {
	base, spellings := spell(dir, name)
	var places []string
	for _, spelling := range spellings {
		place, ok := placeOf(base, spelling)
		if !ok {
			return nil
		}
		places = append(places, place)
	}
	return slices.Compact(places)
}

// spell returns dir and name made absolute, name as it is and cleaned. It returns nil
// if they cannot be used.
func spell(dir, name string) (base fs.FileInfo, spellings []string) {
	if !filepath.IsAbs(dir) || name == "" || len(name) > maxPath || strings.ContainsRune(name, 0) {
		return nil, nil
	}
	base, err := os.Stat(dir)
	if err != nil || !base.IsDir() {
		return nil, nil
	}
	if !filepath.IsAbs(name) {
		physical, err := filepath.EvalSymlinks(dir)
		if err != nil {
			return nil, nil
		}
		name = physical + string(filepath.Separator) + name
	}
	return base, slices.Compact([]string{name, filepath.Clean(name)})
}

// placeOf returns the path of name, which is absolute, below base.
func placeOf(base fs.FileInfo, name string) (string, bool) {
	at, rest, ok := follow(name, func(fs.FileInfo) {})
	if !ok {
		return "", false
	}
	below := path.Join(append([]string{"."}, rest...)...)
	for {
		info, err := os.Lstat(at)
		if err != nil {
			return "", false
		}
		if os.SameFile(info, base) {
			return below, true
		}
		parent := filepath.Dir(at)
		if parent == at {
			return "", false
		}
		below = path.Join(filepath.Base(at), below)
		at = parent
	}
}

// follow resolves name, which is absolute, as the kernel does. It returns the part
// that exists, without links, and the components that do not exist. It calls step
// for everything on the way.
func follow(name string, step func(fs.FileInfo)) (at string, rest []string, ok bool) {
	const separator = string(filepath.Separator)
	at = separator
	if info, err := os.Lstat(at); err == nil {
		step(info)
	}
	todo := strings.Split(name, separator)
	for links := 0; len(todo) > 0; {
		next := todo[0]
		todo = todo[1:]
		switch {
		case next == "" || next == ".":
			continue
		case next == ".." && len(rest) > 0:
			rest = rest[:len(rest)-1]
			continue
		case next == "..":
			at = filepath.Dir(at)
			continue
		case len(next) > maxName:
			return "", nil, false
		case len(rest) > 0:
			rest = append(rest, next)
			continue
		}
		file := filepath.Join(at, next)
		info, err := os.Lstat(file)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			rest = append(rest, next)
			continue
		case err != nil:
			return "", nil, false
		}
		step(info)
		if info.Mode()&fs.ModeSymlink == 0 {
			at = file
			continue
		}
		target, err := os.Readlink(file)
		if links++; err != nil || target == "" || links > maxLinks || isMagic(file) {
			return "", nil, false
		}
		if filepath.IsAbs(target) {
			at = separator
		}
		todo = append(strings.Split(target, separator), todo...)
	}
	return at, rest, true
}
