package control

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// File returns a sink that appends a line of JSON for each event to a file, which
// it makes for the user alone where there is none. Several sinks and processes
// may have the same file: each line is one write. It opens the file for each
// event; a symbolic link is an error. Where an agent can write, use [OpenFile].
func File(path string) Sink { return file(path) }

type file string

func (f file) String() string { return string(f) }

func (f file) Deliver(ctx context.Context, p Payload) error {
	out, err := openHookFile(string(f))
	if err != nil {
		return err
	}
	return errors.Join(deliverLine(ctx, out, p), out.Close())
}

// OpenFile returns a sink like [File] for a regular file, which is opened at once
// and never again: whatever takes its place later gets nothing. [Hooks.Close]
// closes it.
func OpenFile(path string) (Sink, error) {
	out, err := openHookFile(path)
	if err != nil {
		return nil, err
	}
	info, err := out.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file", path)
	}
	if err != nil {
		out.Close()
		return nil, err
	}
	return openedFile{out}, nil
}

type openedFile struct{ file *os.File }

func (f openedFile) String() string { return f.file.Name() }

func (f openedFile) Deliver(ctx context.Context, p Payload) error { return deliverLine(ctx, f.file, p) }

func (f openedFile) Close() error { return f.file.Close() }

// openHookFile opens a file for appending. A named pipe without a reader is an
// error, not a wait.
func openHookFile(path string) (*os.File, error) {
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if errors.Is(err, syscall.ELOOP) {
		return nil, fmt.Errorf("%s is a symbolic link, which hooks do not follow", path)
	}
	if err != nil {
		return nil, err
	}
	info, err := out.Stat()
	if err == nil {
		if stat, ok := info.Sys().(*syscall.Stat_t); ok && info.Mode().IsRegular() && stat.Nlink > 1 {
			err = fmt.Errorf("%s has another name too, a hard link; remove it", path)
		}
	}
	if err != nil {
		out.Close()
		return nil, err
	}
	return out, nil
}

// deliverLine writes an event. A named pipe that nobody reads is an error too; a
// regular file knows no deadlines, nor waits.
func deliverLine(ctx context.Context, out *os.File, p Payload) error {
	line, err := p.JSON()
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = out.SetWriteDeadline(time.Now()) })()
	_, err = out.Write(append(line, '\n'))
	return err
}
