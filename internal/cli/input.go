package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/runner"
)

// maxInput bounds what is read whole, in bytes: far more than any runtime takes,
// and little enough for an endless stream to be noticed.
const maxInput = 64 << 20

// readInput returns what the file that flag names holds; "-" is standard
// input. A file of the repository must be inside it; see runner.CheckInput.
func (inv *invocation) readInput(ctx context.Context, flag, name string) (string, error) {
	switch name {
	case "":
		return "", agent.Usagef("%s needs the name of a file", flag)
	case "-":
		return inv.readStdin(ctx, flag+" -")
	}
	path := inv.env.abs(name)
	for _, dir := range append(inv.workdirs, inv.env.Dir) {
		if dir == "" {
			continue
		}
		if err := runner.CheckInput(dir, path, inv.env.Environ); err != nil {
			return "", agent.Usagef("%s %q: %w", flag, name, err)
		}
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
		return "", agent.Usagef("%s %q: %w", flag, name, cause(err))
	}
	return text, err
}

// readStdin reads standard input to its end; what is what it is read for.
func (inv *invocation) readStdin(ctx context.Context, what string) (string, error) {
	text, err := interruptible(ctx, func() (string, error) { return readBounded(inv.env.Stdin) })
	switch {
	case errors.Is(err, errTooLong):
		return "", agent.Usagef("%s: %w", what, err)
	case err != nil && !errors.Is(err, agent.ErrCanceled):
		return "", inputError(err)
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
		return "", stoppedBy(ctx)
	}
}

func inputError(err error) error {
	return &failure{text: "cannot read standard input", err: cause(err)}
}

// stoppedBy is the error of a command that ctx ended.
func stoppedBy(ctx context.Context) error {
	return &agent.Error{Kind: agent.ErrCanceled, Err: fmt.Errorf("stopped: %w", context.Cause(ctx))}
}
