package runs

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// maxInfo bounds run-info.yaml, in bytes. A record holds a command line and some
// texts of errors; what is larger is none.
const maxInfo = 4 << 20

// ReadInfo reads a file as Info says, of this or another writer of the Agent
// Protocol. Keys it does not know are ignored. An error says what is wrong with the
// file and names it.
func ReadInfo(path string) (Info, error) {
	buffer := infoBuffers.Get().(*[]byte)
	defer infoBuffers.Put(buffer)
	text, err := readInfoFile(path, *buffer)
	var info Info
	if err == nil {
		info, err = parseInfo(text)
	}
	if err == nil {
		return info, nil
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	return Info{}, fmt.Errorf("%s: %w", path, err)
}

// infoBuffers hold files of the usual size.
var infoBuffers = sync.Pool{New: func() any { b := make([]byte, 8<<10); return &b }}

// openSafely has a link not followed, and a pipe not waited for.
const openSafely = unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC

var errNotRegular = errors.New("not a regular file")

// openRegular opens a file for reading, if it is one: nothing is followed, and
// nothing waits for a writer. A list opens a file for each run, and package os does
// twice as much for it.
func openRegular(path string) (descriptor int, size int64, err error) {
	descriptor, err = open(path, openSafely)
	if err != nil {
		return -1, 0, err
	}
	var stat unix.Stat_t
	err = unix.Fstat(descriptor, &stat)
	if err == nil && stat.Mode&unix.S_IFMT != unix.S_IFREG {
		err = errNotRegular
	}
	if err != nil {
		_ = unix.Close(descriptor)
		return -1, 0, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return descriptor, stat.Size, nil
}

func open(path string, flags int) (int, error) {
	for {
		descriptor, err := unix.Open(path, unix.O_RDONLY|flags, 0)
		switch err {
		case nil:
			return descriptor, nil
		case unix.EINTR:
			continue
		}
		return -1, &fs.PathError{Op: "open", Path: path, Err: err}
	}
}

// openFolder opens a folder for reading, nil where there is none. It follows no
// link.
func openFolder(path string) (*os.File, error) {
	descriptor, err := open(path, unix.O_NOFOLLOW|unix.O_DIRECTORY|unix.O_CLOEXEC)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(descriptor), path), nil
}

// readInfoFile returns the content of a file, in buffer if it is large enough.
func readInfoFile(path string, buffer []byte) ([]byte, error) {
	f, size, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer unix.Close(f)
	if size > maxInfo {
		return nil, fmt.Errorf("larger than %d MiB", maxInfo>>20)
	}
	if size > int64(len(buffer)) {
		buffer = make([]byte, size)
	}
	text := buffer[:size]
	for n := 0; n < len(text); {
		k, err := unix.Read(f, text[n:])
		switch {
		case err == unix.EINTR:
		case err != nil:
			return nil, err
		case k == 0: // it became shorter
			return text[:n], nil
		default:
			n += k
		}
	}
	return text, nil
}

// parseInfo reads the text of an Info and reports what it lacks.
func parseInfo(text []byte) (Info, error) {
	info, ok := parsePlain(string(text))
	if !ok {
		info = Info{}
		if err := loadYAML(text, &info); err != nil {
			return info, fmt.Errorf("not a record of a run: %w", err)
		}
	}
	if info.Version == 0 {
		info.Version = 1
	}
	switch {
	case info.Version != 1:
		return info, fmt.Errorf("version %d of records; this program reads version 1", info.Version)
	case len(text) == 0:
		return info, errors.New("empty")
	case text[len(text)-1] != '\n':
		return info, errors.New("cut off: the last line has no end")
	case info.RunID == "" || info.Status == "" || info.StartTime.IsZero():
		return info, errors.New("not a whole record: run_id, status or start_time is missing")
	}
	if u := info.Usage; u != nil && u.CostUSD != nil && (math.IsNaN(*u.CostUSD) || math.IsInf(*u.CostUSD, 0)) {
		return info, errors.New("cost_usd is not a number")
	}
	for _, at := range []*time.Time{&info.StartTime, &info.EndTime} {
		*at = at.UTC()
		if year := at.Year(); year < 0 || year > 9999 { // JSON has no such times
			return info, fmt.Errorf("no time of a run is in the year %d", year)
		}
	}
	return info, nil
}
