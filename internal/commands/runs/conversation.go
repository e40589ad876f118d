package runs

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/busdk/bus-agent/formatters"
	"github.com/busdk/bus-agent/internal/commands/cmdline"
	"github.com/busdk/bus-agent/runs"
)

// printConversation passes the events of a run to a printer, or those in the agent's output
// if the record has no events. With follow it continues until the run ends. end is
// released when everything that existed at first is read; it may be nil.
func printConversation(ctx context.Context, prog *cmdline.Program, run *runs.Run, follow bool, end *lastLines, printer conversationPrinter) error {
	name := runs.FileEvents
	if _, err := os.Lstat(filepath.Join(run.Dir, name)); errors.Is(err, fs.ErrNotExist) && run.EventsPath == "" {
		name = runs.FileStdout
	}
	file, err := openFile(ctx, run, name, follow)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = errors.New("the record has neither events nor output")
		}
		return cmdline.CanceledBy(ctx, &cmdline.Failure{Text: "cannot show the run " + idOf(run), Err: cmdline.Cause(err)})
	}
	defer file.Close()
	var from io.Reader = file
	if end != nil && follow {
		from = &caughtUp{from: file, left: sizeOf(file), then: end.release}
	}
	if name == runs.FileEvents {
		err = run.ReadEvents(from, decoderOf(prog, run), printer.entry)
	} else {
		err = decode(prog, run, from, printer)
	}
	err = errors.Join(err, printer.end())
	if end != nil {
		err = errors.Join(err, end.release())
	}
	if errors.Is(err, runs.ErrDamaged) {
		return &cmdline.Failure{Text: "not all events of the run " + idOf(run) + " were shown", Err: err}
	}
	return cmdline.CanceledBy(ctx, err)
}

func openFile(ctx context.Context, run *runs.Run, name string, follow bool) (io.ReadCloser, error) {
	if follow {
		return run.Follow(ctx, name)
	}
	return run.Open(name)
}

func sizeOf(file io.Reader) int64 {
	if f, ok := file.(interface{ Stat() (fs.FileInfo, error) }); ok {
		if stat, err := f.Stat(); err == nil {
			return stat.Size()
		}
	}
	return 0
}

// decode passes the events in an agent's output to a printer.
func decode(prog *cmdline.Program, run *runs.Run, from io.Reader, printer conversationPrinter) error {
	stream := formatters.NewStream(decoderOf(prog, run), printer.Event)
	_, err := io.Copy(stream, from)
	return errors.Join(err, stream.Close())
}

// decoderOf returns the decoder of the runtime of a run.
func decoderOf(prog *cmdline.Program, run *runs.Run) formatters.Decoder {
	if rt, ok := prog.RuntimeOf(run.Agent); ok {
		return rt.NewDecoder()
	}
	return formatters.Generic()
}

// readablePrinter prints readable text.
type readablePrinter struct {
	*cmdline.Conversation
}

func readable(prog *cmdline.Program, run *runs.Run, to io.Writer) readablePrinter {
	return readablePrinter{prog.NewConversation(to, run.Agent)}
}

func (p readablePrinter) entry(e *runs.Event) error {
	if e.Kind == runs.KindMessage {
		return p.Line("> " + strings.ReplaceAll(strings.TrimRight(e.Text, "\n"), "\n", "\n> "))
	}
	return p.Event(&e.Event)
}

func (p readablePrinter) end() error { return p.EndLine() }

// caughtUp calls then once left bytes are read and handled.
type caughtUp struct {
	from io.Reader
	left int64
	then func() error
}

func (c *caughtUp) Read(p []byte) (int, error) {
	if c.left <= 0 && c.then != nil {
		then := c.then
		c.then = nil
		if err := then(); err != nil {
			return 0, err
		}
	}
	n, err := c.from.Read(p)
	c.left -= int64(n)
	return n, err
}

// lastLines keeps the last lines of what is written and drops what was before them, until
// it is released.
type lastLines struct {
	to       io.Writer
	most     int
	held     []byte
	full     int // of held, when it is trimmed
	released bool
}

func (l *lastLines) Write(b []byte) (int, error) {
	if l.released {
		return l.to.Write(b)
	}
	const enough = 128 << 10
	l.held = append(l.held, b...)
	if len(l.held) >= max(enough, l.full) {
		l.trim()
		l.full = 2 * len(l.held) // so that not every line is trimmed
	}
	return len(b), nil
}

// trim drops what is before the last lines, counting one that has not ended.
func (l *lastLines) trim() {
	if l.most == 0 {
		if i := bytes.LastIndexByte(l.held, '\n'); i >= 0 {
			l.held = append(l.held[:0], l.held[i+1:]...)
		}
		return
	}
	from := len(bytes.TrimSuffix(l.held, []byte("\n")))
	for range l.most {
		if from = bytes.LastIndexByte(l.held[:from], '\n'); from < 0 {
			return
		}
	}
	l.held = append(l.held[:0], l.held[from+1:]...)
}

// release writes what was kept, and from then on everything.
func (l *lastLines) release() error {
	if l.released {
		return nil
	}
	l.trim()
	l.released = true
	if len(l.held) == 0 {
		return nil
	}
	_, err := l.to.Write(l.held)
	l.held = nil
	return err
}
