package runs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"go.yaml.in/yaml/v4"
)

// maxInfo bounds run-info.yaml, in bytes. A record holds a command line and some
// texts of errors; what is larger is none.
const maxInfo = 4 << 20

// ReadInfo reads a file as Info says, of this or another writer of the Agent
// Protocol. Keys it does not know are ignored. An error says what is wrong with the
// file and names it.
func ReadInfo(path string) (Info, error) {
	text, err := readInfoFile(path)
	var info Info
	if err == nil {
		info, err = parseInfo(text)
	}
	if err == nil {
		return info, nil
	}
	if e, ok := errors.AsType[*os.PathError](err); ok {
		err = e.Err
	}
	return Info{}, fmt.Errorf("%s: %w", path, err)
}

// openRegular opens a file for reading, if it is one: nothing is followed, and
// nothing waits for a writer.
func openRegular(path string) (*os.File, os.FileInfo, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	stat, err := f.Stat()
	if err == nil && !stat.Mode().IsRegular() {
		err = &os.PathError{Op: "read", Path: path, Err: errors.New("not a regular file")}
	}
	if err != nil {
		_ = f.Close()
		return nil, nil, err
	}
	return f, stat, nil
}

// openFolder opens a folder for reading, nil where there is none. It follows no
// link.
func openFolder(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_DIRECTORY, 0)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP) {
		return nil, nil
	}
	return f, err
}

func readInfoFile(path string) ([]byte, error) {
	f, stat, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if stat.Size() > maxInfo {
		return nil, fmt.Errorf("larger than %d MiB", maxInfo>>20)
	}
	text := make([]byte, stat.Size())
	n, err := io.ReadFull(f, text)
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		err = nil // it became shorter
	}
	return text[:n], err
}

// parseInfo reads the text of an Info and reports what it lacks.
func parseInfo(text []byte) (Info, error) {
	info, ok := parsePlain(string(text))
	if !ok {
		info = Info{}
		if err := yaml.Load(text, &info, yaml.WithV3Defaults()); err != nil {
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
	return info, nil
}
