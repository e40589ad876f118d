package cli

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

// results is where results go: standard output, the file of --output, or
// nowhere when quiet. The file is opened by the first write or by open, so a
// call that is wrong leaves it alone.
type results struct {
	inv    *invocation
	file   *os.File
	to     io.Writer // the file, through a terminalWriter where it is a terminal
	before func()    // called before each write
}

// errReaderGone says that whoever read our output has closed it.
var errReaderGone = errors.New("nobody reads the output")

// outputError returns the error of a write to what has the given name.
func outputError(name string, err error) error {
	if errors.Is(err, syscall.EPIPE) {
		return errReaderGone
	}
	return &failure{text: "cannot write " + name, err: cause(err)}
}

// open opens the file of --output, if there is one to open.
func (r *results) open() error {
	g := &r.inv.global
	if g.quiet || g.output == "" || r.file != nil {
		return nil
	}
	path := r.inv.env.abs(g.output)
	f, err := r.inv.outlets.open(func() (*os.File, error) { return createOutput(path) })
	if err != nil {
		return outputError(quote(g.output), err)
	}
	r.file, r.to = f, toTerminal(r.inv.outlets.writer(f), isTerminal(f))
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
			err = errors.New("not a directory")
		}
		if err != nil {
			return fmt.Errorf("its directory: %w", cause(err))
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
func (r *results) Write(b []byte) (int, error) {
	if r.inv.global.quiet {
		return len(b), nil
	}
	if err := r.open(); err != nil {
		return 0, err
	}
	if r.before != nil {
		r.before()
	}
	if r.file != nil {
		n, err := r.to.Write(b)
		if err != nil {
			err = outputError(quote(r.inv.global.output), err)
		}
		return n, err
	}
	n, err := r.inv.stdout.Write(b)
	if err != nil {
		err = outputError("standard output", err)
	}
	return n, err
}

func (r *results) print(text string) error {
	if text == "" {
		return nil
	}
	_, err := io.WriteString(r, text)
	return err
}

// printJSON prints v as one indented object, safe to print.
func (r *results) printJSON(v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	_, err = r.Write(append(jsonline.EscapeControls(text, 0), '\n'))
	return err
}

// close ends the results. A command that succeeded with nothing to say leaves
// an empty file.
func (r *results) close(ok bool) error {
	if ok {
		if err := r.open(); err != nil {
			return err
		}
	}
	if r.file == nil {
		return nil
	}
	if err := r.file.Close(); err != nil {
		return outputError(quote(r.inv.global.output), err)
	}
	return nil
}
