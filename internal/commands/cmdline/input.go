package cmdline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/runner"
)

// maxInput bounds what is read whole, in bytes: far more than any runtime takes,
// and little enough for an endless stream to be noticed.
const maxInput = 64 << 20

// ReadInput returns the content of the file that a flag names; "-" is standard input. A
// file of the repository must be inside it; see runner.CheckInput.
func (prog *Program) ReadInput(ctx context.Context, flag, name string) (string, error) {
	if name == "-" {
		return prog.ReadStdin(ctx, flag+" -")
	}
	path, err := prog.inputPath(flag, name)
	if err != nil {
		return "", err
	}
	text, err := interruptible(ctx, func() (string, error) {
		f, err := os.Open(path)
		if err != nil {
			return "", err
		}
		defer f.Close()
		return readBounded(f)
	})
	if err != nil && !errors.Is(err, agent.ErrCanceled) {
		return "", agent.Usagef("%s %q: %w", flag, name, Cause(err))
	}
	return text, err
}

// inputPath returns the absolute path of a file that a flag names, or why it is refused.
func (prog *Program) inputPath(flag, name string) (string, error) {
	path := prog.Env.Abs(name)
	for _, dir := range append(prog.workdirs, prog.Env.Dir) {
		if err := runner.CheckInput(dir, path, prog.Env.Environ); err != nil {
			return "", agent.Usagef("%s %q: %w", flag, name, err)
		}
	}
	return path, nil
}

const attachFlag = "attach"

// AttachFlag declares --attach, whose values are for [Program.ReadAttachments].
func AttachFlag(names *[]string) *Flag {
	return Strings(attachFlag, "give the model `FILE` with the prompt: an image, a PDF or text", names).Complete(AnyFile)
}

// ReadAttachments reads the files that --attach names, which must be regular. A link is
// followed, but as in [Program.ReadInput] not out of the repository that it is in.
func (prog *Program) ReadAttachments(names []string) ([]agent.Attachment, error) {
	const flag = "--" + attachFlag
	if len(names) > agent.MaxAttachments {
		return nil, Misusef("%s is given %d times; the limit is %d", flag, len(names), agent.MaxAttachments)
	}
	var list []agent.Attachment
	for _, name := range names {
		path, err := prog.inputPath(flag, name)
		if err != nil {
			return nil, err
		}
		data, err := registry.ReadFile(path, agent.MaxAttachmentBytes)
		if err != nil {
			return nil, agent.Usagef("%s %q: %w", flag, name, Cause(err))
		}
		list = append(list, agent.Attachment{Name: filepath.Base(path), Data: data})
		if err := agent.CheckAttachments(list, nil, nil); err != nil {
			return nil, agent.Usagef("%s %q: %w", flag, name, err)
		}
	}
	return list, nil
}

// ReadStdin reads standard input to its end, for what.
func (prog *Program) ReadStdin(ctx context.Context, what string) (string, error) {
	text, err := interruptible(ctx, func() (string, error) { return readBounded(prog.Env.Stdin) })
	switch {
	case errors.Is(err, errTooLong):
		return "", agent.Usagef("%s: %w", what, err)
	case err != nil && !errors.Is(err, agent.ErrCanceled):
		return "", InputError(err)
	}
	return text, err
}

var errTooLong = fmt.Errorf("it is longer than %d MiB", maxInput>>20)

// readBounded reads r to its end; it is errTooLong when that is too far.
func readBounded(r io.Reader) (string, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxInput+1))
	switch {
	case err != nil:
		return "", err
	case len(b) > maxInput:
		return "", errTooLong
	}
	return string(b), nil
}

// interruptible returns what read returns, or why ctx ended before: opening or
// reading a terminal or a pipe cannot be interrupted, so it is left behind.
func interruptible(ctx context.Context, read func() (string, error)) (string, error) {
	type result struct {
		text string
		err  error
	}
	done := make(chan result, 1)
	go func() {
		text, err := read()
		done <- result{text, err}
	}()
	select {
	case got := <-done:
		return got.text, got.err
	case <-ctx.Done():
		return "", StoppedBy(ctx)
	}
}

func InputError(err error) error {
	return &Failure{Text: "cannot read standard input", Err: Cause(err)}
}
