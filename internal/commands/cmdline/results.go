package cmdline

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/busdk/bus-agent/jsonline"
)

// Results is where results go: standard output, the file of --output, or nowhere with
// --quiet. The first write opens the file, or Open does; a usage error leaves it alone.
type Results struct {
	prog  *Program
	file  *outputFile
	to    io.Writer // the file, through a terminalWriter where it is a terminal
	whole bool      // the results are complete, even if the command fails
}

// errReaderGone is the error of a write to a pipe whose reader has closed it.
var errReaderGone = errors.New("the reader has closed the output")

var errNotDirectory = errors.New("not a directory")

// OutputError returns the error of a write to what has the given name.
func OutputError(name string, err error) error {
	if errors.Is(err, syscall.EPIPE) {
		return errReaderGone
	}
	return &Failure{Text: "cannot write " + name, Err: Cause(err)}
}

// Open opens the file of --output, if there is one to open.
func (r *Results) Open() error {
	g := &r.prog.Global
	if g.Quiet || g.Output == "" || r.file != nil {
		return nil
	}
	path := r.prog.Env.Abs(g.Output)
	o, err := createPartial(path)
	if o == nil && err == nil {
		o = &outputFile{}
		o.File, err = r.prog.outlets.open(func() (*os.File, error) { return openOutput(path) })
	}
	if err != nil {
		return OutputError(Quote(g.Output), err)
	}
	r.file, r.to = o, ToTerminal(r.prog.outlets.writer(o.File), IsTerminal(o.File))
	return nil
}

// Write passes b on in one write, so that readers see it at once.
func (r *Results) Write(b []byte) (int, error) {
	if r.prog.Global.Quiet {
		return len(b), nil
	}
	if err := r.Open(); err != nil {
		return 0, err
	}
	if r.file == nil && r.prog.Env.Terminal.Stdout || r.file != nil && IsTerminal(r.file.File) {
		r.prog.Screen.Clear()
	}
	if r.file != nil {
		n, err := r.to.Write(b)
		if err != nil {
			err = OutputError(Quote(r.prog.Global.Output), err)
		}
		return n, err
	}
	n, err := r.prog.stdout.Write(b)
	if err != nil {
		err = OutputError("standard output", err)
	}
	return n, err
}

func (r *Results) Print(text string) error {
	if text == "" {
		return nil
	}
	_, err := io.WriteString(r, text)
	return err
}

// PrintJSON prints v as one indented object, safe to print.
func (r *Results) PrintJSON(v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	_, err = r.Write(append(jsonline.EscapeControls(text, 0), '\n'))
	return err
}

// Report prints v as JSON with --format json, and text otherwise. They are the whole
// result, also of a command that fails because of what it reports.
func (r *Results) Report(v any, text string) (err error) {
	if r.prog.Global.JSON() {
		err = r.PrintJSON(v)
	} else {
		err = r.Print(text)
	}
	r.whole = err == nil
	return err
}

// close ends the results. A command that succeeds without results leaves an empty file;
// one that fails replaces no file.
func (r *Results) close(ok bool) error {
	if ok {
		if err := r.Open(); err != nil {
			return err
		}
	}
	if r.file == nil {
		return nil
	}
	kept, err := r.file.finish(ok || r.whole)
	if err != nil {
		return OutputError(Quote(r.prog.Global.Output), err)
	}
	if kept != "" {
		r.prog.Screen.Warn(fmt.Sprintf("%s was not replaced, because the command failed; its results are in %s", Quote(r.prog.Global.Output), Quote(kept)))
	}
	return nil
}
