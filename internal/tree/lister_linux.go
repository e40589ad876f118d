package tree

import (
	"bytes"
	"encoding/binary"
	"io/fs"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A lister lists folders, one at a time. The zero value is ready.
type lister struct{ buf []byte }

// list calls add with the entries of a folder until it returns false. The name is
// valid during the call.
func (l *lister) list(dir string, add func(name []byte, kind fs.FileMode) bool) error {
	fd, err := openAt(unix.AT_FDCWD, dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if l.buf == nil {
		l.buf = make([]byte, 32<<10)
	}
	for {
		n, err := unix.Getdents(fd, l.buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			return err
		}
		for rest := l.buf[:n]; len(rest) > nameOffset; {
			size := int(binary.NativeEndian.Uint16(rest[sizeOffset:]))
			if size <= nameOffset || size > len(rest) {
				return unix.EIO
			}
			record := rest[:size]
			rest = rest[size:]
			name := record[nameOffset:]
			if end := bytes.IndexByte(name, 0); end >= 0 {
				name = name[:end]
			}
			if string(name) == "." || string(name) == ".." {
				continue
			}
			kind, ok := typeOf(fd, name, record[typeOffset])
			if ok && !add(name, kind) {
				return nil
			}
		}
	}
}

const (
	sizeOffset = unsafe.Offsetof(unix.Dirent{}.Reclen)
	typeOffset = unsafe.Offsetof(unix.Dirent{}.Type)
	nameOffset = int(unsafe.Offsetof(unix.Dirent{}.Name))
)

// typeOf returns the type of an entry, which not all file systems list. It is false
// for an entry that is gone.
func typeOf(fd int, name []byte, listed byte) (fs.FileMode, bool) {
	switch listed {
	case unix.DT_REG:
		return 0, true
	case unix.DT_DIR:
		return fs.ModeDir, true
	case unix.DT_LNK:
		return fs.ModeSymlink, true
	case unix.DT_FIFO:
		return fs.ModeNamedPipe, true
	case unix.DT_CHR, unix.DT_BLK:
		return fs.ModeDevice, true
	case unix.DT_SOCK:
		return fs.ModeSocket, true
	case unix.DT_UNKNOWN:
		var st unix.Stat_t
		if unix.Fstatat(fd, string(name), &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
			return 0, false
		}
		if kind := byte(st.Mode & unix.S_IFMT >> 12); kind != unix.DT_UNKNOWN {
			return typeOf(fd, name, kind)
		}
	}
	return fs.ModeIrregular, true
}
