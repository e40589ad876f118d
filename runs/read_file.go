package runs

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/busdk/bus-agent/internal/statefile"
)

// The files of a run that are read most; see the package.
const (
	FilePrompt = promptName
	FileStdout = stdoutName
	FileStderr = stderrName
	FileOutput = outputName
	FileEvents = eventsName
)

// Open opens a file of the run. The error is fs.ErrNotExist where there is none. A
// link, anything but a regular file, and a file of more than 64 MiB that is nearly
// all holes is an error.
func (r *Run) Open(name string) (io.ReadCloser, error) {
	f, err := statefile.Open(filepath.Join(r.Dir, name))
	if err != nil {
		return nil, err // not a nil file in an interface
	}
	return f, nil
}

// Follow opens a file of the run, of which reading waits at the end for what is
// added until the run is over, and then returns all of it. A run of which nobody
// can say whether it goes on is followed until its record says that it is over.
// Reading ends with the error of ctx when that is done.
func (r *Run) Follow(ctx context.Context, name string) (io.ReadCloser, error) {
	f := &follower{ctx: ctx, dir: r.Dir, tick: time.NewTicker(followPeriod)}
	for {
		file, err := statefile.Open(filepath.Join(r.Dir, name))
		switch {
		case err == nil:
			f.File = file
			return f, nil
		case !errors.Is(err, fs.ErrNotExist) || f.over:
			f.tick.Stop()
			return nil, err
		}
		if err := f.wait(); err != nil {
			f.tick.Stop()
			return nil, err
		}
	}
}

// followPeriod is how often a follower looks for more.
const followPeriod = 100 * time.Millisecond

type follower struct {
	*os.File
	ctx  context.Context
	dir  string
	tick *time.Ticker
	over bool // nothing is added any more
}

func (f *follower) Read(p []byte) (int, error) {
	for {
		n, err := f.File.Read(p)
		if n > 0 || !errors.Is(err, io.EOF) || f.over {
			return n, err
		}
		if err := f.wait(); err != nil {
			return 0, err
		}
	}
}

// WriteTo keeps io.Copy from reading the file by other means.
func (f *follower) WriteTo(w io.Writer) (int64, error) {
	return io.Copy(w, struct{ io.Reader }{f})
}

// wait waits for a while, or finds that the run is over. What was written until
// then is read after that.
func (f *follower) wait() error {
	run, err := ReadRun(f.dir)
	if err != nil {
		return err
	}
	if run.Status != StatusRunning && run.Status != StatusUnknown {
		f.over = true
		return nil
	}
	select {
	case <-f.ctx.Done():
		return f.ctx.Err()
	case <-f.tick.C:
		return nil
	}
}

func (f *follower) Close() error {
	f.tick.Stop()
	return f.File.Close()
}
