package runs

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/unix"
)

// maxInfo bounds run-info.yaml, in bytes. A record has a command line and a few error
// texts.
const maxInfo = 4 << 20

// ReadInfo reads the run-info.yaml at path, written by this or another implementation of
// the Agent Protocol. It ignores unknown keys. An error names the file.
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

// infoBuffers are for files of the usual size.
var infoBuffers = sync.Pool{New: func() any { b := make([]byte, 8<<10); return &b }}

// openSafely follows no link and waits for no pipe.
const openSafely = unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC

var errNotRegular = errors.New("not a regular file")

// openRegular opens a regular file for reading. It follows no link and waits for no
// writer of a pipe. A list opens a file for each run, and package os takes twice as
// long.
func openRegular(path string) (descriptor int, size int64, err error) {
	var stat unix.Stat_t
	for {
		descriptor, err = unix.Open(path, unix.O_RDONLY|openSafely, 0)
		if err != unix.EINTR {
			break
		}
	}
	if err == nil {
		if err = unix.Fstat(descriptor, &stat); err == nil && stat.Mode&unix.S_IFMT != unix.S_IFREG {
			err = errNotRegular
		}
		if err != nil {
			_ = unix.Close(descriptor)
		}
	}
	if err != nil {
		return -1, 0, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return descriptor, stat.Size, nil
}

// readInfoFile returns the content of a file, in buffer if that is large enough.
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

// parseInfo parses and checks the text of an Info.
func parseInfo(text []byte) (Info, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return Info{}, errors.New("empty")
	}
	info, ok := parsePlain(string(text))
	if !ok {
		info = Info{}
		if err := loadYAML(text, &info); err != nil {
			return info, fmt.Errorf("not a record of a run: %s", strings.Join(strings.Fields(err.Error()), " "))
		}
	}
	if info.Version == 0 {
		info.Version = 1
	}
	switch {
	case info.Version != 1:
		return info, fmt.Errorf("version %d of records; this program reads version 1", info.Version)
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
			return info, fmt.Errorf("a time is in the year %d", year)
		}
	}
	info.translate()
	return info, nil
}

// The words of older writers for the states of runs.
const (
	olderCompleted Status = "success"
	olderTimedOut  Status = summaryTimeout
)

// translate replaces the words of older writers, and adds the kind of a failure that
// the writer only summarized.
func (i *Info) translate() {
	switch i.Status {
	case olderCompleted:
		i.Status = StatusCompleted
	case olderTimedOut:
		i.Status, i.ErrorSummary = StatusFailed, cmp.Or(i.ErrorSummary, summaryTimeout)
	}
	if i.Status != StatusFailed || i.ErrorKind != "" {
		return
	}
	kind := agent.ErrAgent
	switch i.ErrorSummary {
	case summaryTimeout:
		kind = agent.ErrTimeout
	case summaryCanceled:
		kind = agent.ErrCanceled
	}
	i.ErrorKind = agent.KindOf(kind)
}
