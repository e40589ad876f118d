package cmdline

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/busdk/bus-agent/jsonline"
)

// Results is where results go: standard output, the file of --output, or nowhere with
// --quiet. The first write opens the file, or Open does; a usage error leaves it alone.
type Results struct {
	prog *Program
	file *os.File
	to   io.Writer // the file, through a terminalWriter where it is a terminal
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
	f, err := r.prog.outlets.open(func() (*os.File, error) { return createOutput(path) })
	if err != nil {
		return OutputError(Quote(g.Output), err)
	}
	r.file, r.to = f, ToTerminal(r.prog.outlets.writer(f), IsTerminal(f))
	return nil
}

// errLink is the error of a file of --output that is a link, which an agent can have
// put there.
var errLink = errors.New("it is a symbolic link; name the file it leads to")

// linksAllowed reports whether path is of the system: /dev/stdout is a link.
func linksAllowed(path string) bool {
	return strings.HasPrefix(path, "/dev/") || strings.HasPrefix(path, "/proc/")
}

// checkOutput fails where the file of --output cannot be written because of what is
// there now, before anything has started.
func checkOutput(path string) error {
	if linksAllowed(path) {
		return nil
	}
	switch info, err := os.Lstat(path); {
	case err != nil:
		dir, err := os.Stat(filepath.Dir(path))
		if err == nil && !dir.IsDir() {
			err = errNotDirectory
		}
		if err != nil {
			return fmt.Errorf("its directory: %w", Cause(err))
		}
	case info.Mode()&os.ModeSymlink != 0:
		return errLink
	case info.IsDir():
		return errors.New("it is a directory; name a file")
	}
	return nil
}

// createOutput opens the file of --output. It follows no link in the place of the
// file.
func createOutput(path string) (*os.File, error) {
	flags := os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	if !linksAllowed(path) {
		flags |= syscall.O_NOFOLLOW
	}
	f, err := os.OpenFile(path, flags, 0o666)
	if errors.Is(err, syscall.ELOOP) {
		err = errLink
	}
	return f, err
}

// Write passes b on in one write, so that readers see it at once.
func (r *Results) Write(b []byte) (int, error) {
	if r.prog.Global.Quiet {
		return len(b), nil
	}
	if err := r.Open(); err != nil {
		return 0, err
	}
	r.prog.Screen.Clear()
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

// Report prints v as JSON with --format json, and text otherwise.
func (r *Results) Report(v any, text string) error {
	if r.prog.Global.JSON() {
		return r.PrintJSON(v)
	}
	return r.Print(text)
}

// close ends the results. A command that succeeds without results leaves an
// empty file.
func (r *Results) close(ok bool) error {
	if ok {
		if err := r.Open(); err != nil {
			return err
		}
	}
	if r.file == nil {
		return nil
	}
	if err := r.file.Close(); err != nil {
		return OutputError(Quote(r.prog.Global.Output), err)
	}
	return nil
}
