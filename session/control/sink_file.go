package control

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/busdk/bus-agent/internal/unix"
)

// OpenFile returns a sink that appends a line of JSON for each event to a regular
// file, created readable by the user alone if it does not exist. Several sinks and
// processes may use the same file: each line is one write. The file is opened only
// once: a file that replaces it later gets nothing. A symbolic link is an error.
// [Hooks.Close] closes it.
func OpenFile(path string) (Sink, error) {
	// Without a wait for the reader of a named pipe.
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if errors.Is(err, syscall.ELOOP) {
		return nil, fmt.Errorf("%s is a symbolic link, which hooks do not follow", path)
	}
	if err != nil {
		return nil, err
	}
	info, err := out.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", path)
	} else if err == nil && info.Sys().(*unix.SysStat).Nlink > 1 {
		err = fmt.Errorf("%s has another name too, a hard link; remove it", path)
	}
	if err != nil {
		out.Close()
		return nil, err
	}
	return fileSink{out}, nil
}

type fileSink struct{ file *os.File }

func (f fileSink) String() string { return f.file.Name() }

func (f fileSink) Close() error { return f.file.Close() }

func (f fileSink) Deliver(_ context.Context, p Payload) error {
	line, err := p.JSON()
	if err != nil {
		return err
	}
	_, err = f.file.Write(append(line, '\n'))
	return err
}
