package worktree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/busdk/bus-agent/instructions"
	"github.com/busdk/bus-integration-task/internal/unix"
)

const (
	maxText   = 1 << 20 // bytes of an answer that is read whole
	maxStderr = 4 << 10
	grace     = 2 * time.Second // from SIGTERM, at which git removes its lock files, to SIGKILL
)

// findGit returns the first git on path whose folder is absolute and outside the folders
// of repositories.
func findGit(path string, outside ...string) (string, error) {
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			continue
		}
		name, err := filepath.EvalSymlinks(filepath.Join(dir, "git"))
		if err != nil {
			continue
		}
		info, err := os.Stat(name)
		if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0 {
			continue
		}
		inside := false
		for _, folder := range outside {
			inside = inside || instructions.Touches(folder, filepath.Join(dir, "git"))
		}
		if !inside {
			return filepath.Join(dir, "git"), nil
		}
	}
	return "", problem(ErrGit, "git: no executable on an absolute PATH entry outside the workspace and the state folder; install git or correct PATH")
}

// A call is one run of git.
type call struct {
	dir    string    // current folder; the private folder by default
	env    []string  // in addition to those of every call
	stdin  io.Reader // none by default
	stdout io.Writer // discarded by default
	hold   *os.File  // kept open by git, so that a lock lasts until git has exited too
	ok     []int     // exit codes besides 0 that are not a failure
}

// git runs git with the arguments. It starts no shell, and nothing but the executable
// that [Open] has found. The error matches ErrGit, or is that of the context.
func (p *private) git(ctx context.Context, c call, args ...string) (code int, err error) {
	if err := context.Cause(ctx); err != nil {
		return -1, err
	}
	ctx, stop := context.WithTimeoutCause(ctx, p.repo.config.Timeout, errTimeout)
	defer stop()
	cmd := exec.CommandContext(ctx, p.repo.program, args...)
	cmd.Dir = c.dir
	if cmd.Dir == "" {
		cmd.Dir = p.dir
	}
	cmd.Env = append(p.environ(), c.env...)
	cmd.Stdin, cmd.Stdout = c.stdin, c.stdout
	stderr := &headWriter{limit: maxStderr}
	cmd.Stderr = stderr
	if c.hold != nil {
		cmd.ExtraFiles = []*os.File{c.hold}
	}
	unix.OwnGroup(cmd)
	cmd.WaitDelay = grace + time.Second
	var kill *time.Timer
	cmd.Cancel = func() error {
		kill = time.AfterFunc(grace, func() { unix.SignalGroup(cmd, syscall.SIGKILL) })
		return unix.SignalGroup(cmd, syscall.SIGTERM)
	}
	err = cmd.Run()
	if kill != nil {
		kill.Stop()
		// The number of the group is not given to another process while the group has a
		// member. Where it has none, this has to hit a reused number in the same instant.
		unix.SignalGroup(cmd, syscall.SIGKILL)
	}
	if cause := context.Cause(ctx); cause != nil && err != nil {
		if errors.Is(cause, errTimeout) {
			return -1, problem(ErrGit, "git %s: not finished after %v; raise the limit or look at the repository", args[0], p.repo.config.Timeout)
		}
		return -1, cause
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		for _, code := range c.ok {
			if exit.ExitCode() == code {
				return code, nil
			}
		}
		return exit.ExitCode(), problem(ErrGit, "git %s: %s%s", args[0], message(stderr.head, exit), full(cmd.Dir, p.dir, p.repo.common))
	}
	if err != nil {
		return -1, problem(ErrGit, "git %s: %w", args[0], err)
	}
	return 0, nil
}

var errTimeout = errors.New("time limit of git")

// message returns the first line of git's messages, without its prefix.
func message(stderr []byte, exit *exec.ExitError) string {
	for line := range bytes.Lines(stderr) {
		text := strings.TrimSpace(string(line))
		text = strings.TrimPrefix(strings.TrimPrefix(text, "fatal: "), "error: ")
		if text != "" && !strings.HasPrefix(text, "warning: ") && !strings.HasPrefix(text, "hint:") {
			return oneLine(text, 500)
		}
	}
	return exit.Error()
}

// full says which disk is nearly full, as git often does not; "" for none.
func full(dirs ...string) string {
	const nearly = 16 << 20
	for _, dir := range dirs {
		if free, err := unix.FreeSpace(dir); err == nil && free < nearly {
			return fmt.Sprintf(" (no space left: %d KiB on the disk of %s)", free>>10, dir)
		}
	}
	return ""
}

// text runs git and returns what it prints, without the last line ending.
func (p *private) text(ctx context.Context, c call, args ...string) (string, error) {
	out := &headWriter{limit: maxText}
	c.stdout = out
	if _, err := p.git(ctx, c, args...); err != nil {
		return "", err
	}
	if out.total > maxText {
		return "", problem(ErrTooLarge, "git %s: it prints more than %d bytes", args[0], maxText)
	}
	return strings.TrimSuffix(string(out.head), "\n"), nil
}

// headWriter keeps the first limit bytes of what is written, and counts all.
type headWriter struct {
	head  []byte
	limit int
	total int64
}

func (w *headWriter) Write(data []byte) (int, error) {
	w.total += int64(len(data))
	w.head = append(w.head, data[:min(len(data), max(0, w.limit-len(w.head)))]...)
	return len(data), nil
}

// records calls each for every record, ended by a null byte, that git prints. Memory is
// bounded by the longest one.
type records struct {
	each func(string) error
	rest []byte
}

const maxRecord = 64 << 10

func (w *records) Write(data []byte) (int, error) {
	n := len(data)
	for {
		record, after, found := bytes.Cut(data, []byte{0})
		if len(w.rest)+len(record) > maxRecord {
			return 0, fmt.Errorf("an entry of more than %d bytes", maxRecord)
		}
		w.rest = append(w.rest, record...)
		if !found {
			return n, nil
		}
		if err := w.each(string(w.rest)); err != nil {
			return 0, err
		}
		w.rest, data = w.rest[:0], after
	}
}

// each runs git and calls f for every record that it prints.
func (p *private) each(ctx context.Context, c call, f func(string) error, args ...string) error {
	var failed error
	c.stdout = &records{each: func(record string) error {
		failed = f(record)
		return failed
	}}
	_, err := p.git(ctx, c, args...)
	if failed != nil {
		return failed
	}
	return err
}

// within reports whether name is folder or below it. Both are absolute and clean.
func within(folder, name string) bool {
	rel, err := filepath.Rel(folder, name)
	return err == nil && filepath.IsLocal(rel)
}
