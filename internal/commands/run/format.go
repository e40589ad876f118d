package run

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/busdk/bus-agent/internal/commands/cmdline"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/formatters"
	"github.com/busdk/bus-agent/registry"
)

// FormatCommand is "format".
func FormatCommand(prog *cmdline.Program) *urfave.Command {
	var runtime string
	return &urfave.Command{
		Name:  "format",
		Usage: "make the raw output of an agent readable",
		Description: `Reads the NDJSON output of an agent from standard input and prints it as readable text,
line by line as it arrives. Without --runtime, format recognizes the runtime from the
first 1000 lines; until then, it prints lines unchanged. The runtimes are:
RUNTIMES.`,
		Flags: []urfave.Flag{prog.Runtime("runtime", "read the output of `RUNTIME` (default: recognized from the output)", &runtime)},
		UsageText: cmdline.UsageText(`# an earlier run
bus-agent format < run.ndjson
# raw lines and readable text of one run
bus-agent run --output-format ndjson --text "Hello" | tee run.ndjson | bus-agent format`,
			"all of the input was printed"),
		Action: prog.Action(cmdline.Slow, func(ctx context.Context, _ cmdline.Call) error {
			for _, line := range prog.Stored.Warnings {
				prog.Screen.Warn(line)
			}
			f := &formatter{prog: prog}
			if rt, ok := prog.RuntimeOf(runtime); ok {
				f.use(rt)
			}
			return f.run(ctx)
		}),
	}
}

// formatter turns lines of agent output into text.
type formatter struct {
	prog   *cmdline.Program
	stream io.WriteCloser // nil until the runtime is known
	text   []byte         // not printed yet
	// midLine says that what was printed last is not ended by a line break.
	midLine bool
}

const (
	// maxRecognized is the most bytes of a line that the runtime is recognized from.
	maxRecognized = 1 << 20
	// recognizedLines is the most lines that the runtime is recognized from.
	recognizedLines = 1000
	// flushSize is the most text that is gathered before it is printed. All of it is
	// printed before the command waits for input.
	flushSize = 64 << 10
)

// use reads the rest of the input as output of rt.
func (f *formatter) use(rt registry.Runtime) {
	renderer := rt.NewFormatter()
	if formatters.IsRaw(renderer) {
		f.stream = passThrough{f}
		return
	}
	f.stream = formatters.NewStream(rt.NewDecoder(), func(e *agent.Event) error {
		f.text = renderer.Append(f.text, e)
		return f.flushAt(flushSize)
	})
}

// passThrough is the stream of a runtime whose output is text.
type passThrough struct{ f *formatter }

func (p passThrough) Write(b []byte) (int, error) {
	p.f.text = append(p.f.text, b...)
	return len(b), p.f.flushAt(flushSize)
}

func (p passThrough) Close() error { return nil }

// flushAt prints the gathered text if it is at least size bytes.
func (f *formatter) flushAt(size int) error {
	if len(f.text) == 0 || len(f.text) < size {
		return nil
	}
	f.midLine = f.text[len(f.text)-1] != '\n'
	_, err := f.prog.Out.Write(f.text)
	f.text = f.text[:0]
	return err
}

// run copies until the input or ctx ends.
func (f *formatter) run(ctx context.Context) error {
	done := make(chan error, 1)
	go func() { done <- f.copy(f.prog.Env.Stdin) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return cmdline.StoppedBy(ctx)
	}
}

func (f *formatter) copy(in io.Reader) error {
	r := bufio.NewReaderSize(in, maxRecognized)
	if err := f.recognize(r); err != nil || f.stream == nil {
		return err
	}
	chunk := make([]byte, flushSize)
	for {
		n, err := r.Read(chunk)
		if _, err := f.stream.Write(chunk[:n]); err != nil {
			return err
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return cmdline.InputError(err)
		}
		if err := f.flushAt(0); err != nil {
			return err
		}
	}
	if err := f.stream.Close(); err != nil {
		return err
	}
	if n := len(f.text); n > 0 && f.text[n-1] != '\n' || n == 0 && f.midLine {
		f.text = append(f.text, '\n')
	}
	return f.flushAt(0)
}

// recognize prints lines as they are until the runtime is recognized or the input ends.
func (f *formatter) recognize(r *bufio.Reader) error {
	for lines := 0; f.stream == nil; lines++ {
		line, err := r.ReadSlice('\n')
		if lines < recognizedLines {
			if rt, ok := f.prog.Stored.Registry.Recognize(trimBreak(line)); ok {
				f.use(rt)
			}
		}
		if f.stream == nil {
			f.text = formatters.Sanitize(f.text, line)
		} else if _, err := f.stream.Write(line); err != nil {
			return err
		}
		size := flushSize
		if r.Buffered() == 0 || err == io.EOF {
			size = 0
		}
		if err := f.flushAt(size); err != nil {
			return err
		}
		switch {
		case err == io.EOF:
			return nil
		case err != nil && !errors.Is(err, bufio.ErrBufferFull):
			return cmdline.InputError(err)
		}
	}
	return nil
}

func trimBreak(line []byte) []byte {
	return bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
}
