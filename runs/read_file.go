package runs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/statefile"
)

// The files of a run; see the package.
const (
	FilePrompt = promptName
	FileStdout = stdoutName
	FileStderr = stderrName
	FileOutput = outputName
	FileEvents = eventsName
)

// olderNames are the names of files in the first version of the Agent Protocol.
var olderNames = map[string]string{FileStdout: "stdout", FileStderr: "stderr"}

// Open opens a file of the run, also if an older writer named it otherwise. The error
// is fs.ErrNotExist if there is none. A link, anything but a regular file, a sparse file of
// more than 64 MiB, and events of a version that this program does not know are errors.
func (r *Run) Open(name string) (io.ReadCloser, error) {
	f, err := r.openFile(name)
	if err != nil {
		return nil, err // not a nil file in an interface
	}
	return f, nil
}

func (r *Run) openFile(name string) (*os.File, error) {
	if name == FileEvents && r.EventsVersion > agent.EventsVersion {
		return nil, fmt.Errorf("version %d of events; this program reads version %d", r.EventsVersion, agent.EventsVersion)
	}
	return openIn(r.Dir, name)
}

func openIn(dir, name string) (*os.File, error) {
	f, err := statefile.Open(filepath.Join(dir, name))
	if older := olderNames[name]; older != "" && errors.Is(err, fs.ErrNotExist) {
		if f, olderErr := statefile.Open(filepath.Join(dir, older)); !errors.Is(olderErr, fs.ErrNotExist) {
			return f, olderErr
		}
	}
	return f, err
}

// Follow opens a file of the run whose reader waits at the end of the file for more
// until the run is over. A run of [StatusUnknown] is followed until its record has an
// end. The end of ctx ends reading with its error.
func (r *Run) Follow(ctx context.Context, name string) (io.ReadCloser, error) {
	f := &follower{ctx: ctx, dir: r.Dir, tick: time.NewTicker(followPeriod)}
	for {
		file, err := r.openFile(name)
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
	over bool // the file does not grow any more
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

// wait waits for followPeriod, or sets over if the run is over. The reader then reads
// the rest.
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
