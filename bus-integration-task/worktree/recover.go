package worktree

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Files in the git directory of the primary checkout.
const (
	journalName = "bus-task-promotion.json"
	reserveName = "bus-task-reserve"
)

// A journal says what a promotion that may have been killed was doing.
type journal struct {
	Branch string `json:"branch"`
	Old    string `json:"old"`
	New    string `json:"new"`
}

func (r *Repository) writeJournal(j journal) error {
	data, err := json.Marshal(j)
	if err != nil {
		return err
	}
	return writeData(filepath.Join(r.gitDir, journalName), data)
}

func (r *Repository) removeJournal() {
	os.Remove(filepath.Join(r.gitDir, reserveName))
	os.Remove(filepath.Join(r.gitDir, journalName))
}

// reserve writes files whose space [Repository.undo] gets when the disk is full.
func (r *Repository) reserve(p *private) error {
	info, err := os.Stat(filepath.Join(p.dir, "index"))
	if err != nil {
		return err
	}
	space := make([]byte, 64<<10+2*info.Size())
	return errors.Join(writeData(filepath.Join(p.dir, reserveName), space), writeData(filepath.Join(r.gitDir, reserveName), space))
}

// release makes the reserved space free.
func (r *Repository) release(p *private) {
	os.Remove(filepath.Join(p.dir, reserveName))
	os.Remove(filepath.Join(r.gitDir, reserveName))
}

// recover completes or forgets a promotion whose process was killed. The lock is held, so
// no other one is running.
func (r *Repository) recover(ctx context.Context, p *private) error {
	data, err := readData(filepath.Join(r.gitDir, journalName))
	if errors.Is(err, fs.ErrNotExist) {
		return r.removeIndexLock()
	}
	var j journal
	if err == nil {
		err = json.Unmarshal(data, &j)
	}
	if err != nil || CheckBranch(j.Branch) != nil || !isHash(j.Old) || !isHash(j.New) {
		return problem(ErrDirty, "%s: the journal of a promotion is damaged; compare the primary checkout with its branch, then remove the file", filepath.Join(r.gitDir, journalName))
	}
	tip, err := p.resolve(ctx, "refs/heads/"+j.Branch)
	if err != nil {
		return err
	}
	if current, err := r.Branch(); err != nil || current != j.Branch || tip != j.New {
		// The branch was never moved, or has moved on since.
		r.removeJournal()
		return r.removeIndexLock()
	}
	if !exists(r.indexLock()) {
		if err := r.lockIndex(); err != nil {
			return err
		}
	} else if !r.ownsIndexLock() {
		return problem(ErrDirty, "primary checkout %s: a promotion was killed, and index.lock is of another git process; wait, or remove it", r.primary)
	}
	return r.complete(ctx, p, j)
}

// complete makes index and files those of a promotion whose branch has moved.
func (r *Repository) complete(ctx context.Context, p *private, j journal) error {
	if err := r.copyIndex(ctx, p); err != nil {
		return err
	}
	staged := &names{}
	if err := p.each(ctx, in(r.primary), staged.add, "diff-index", "-z", "--cached", "--name-only", "--no-renames", "--no-ext-diff", "--no-textconv", "--ignore-submodules=none", j.New, "--"); err != nil {
		return err
	}
	if staged.total == 0 { // the index was the last step
		r.removeJournal()
		return r.removeIndexLock()
	}
	lost := &names{}
	err := p.each(ctx, in(r.primary), func(name string) error {
		same, err := p.isUnfinished(ctx, r.primary, name, j)
		if err != nil || same {
			return err
		}
		return lost.add(name)
	}, "diff-files", "-z", "--name-only", "--no-renames", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all", "--")
	if err != nil {
		return err
	}
	err = p.compare(ctx, j.Old, j.New, func(f File) error {
		if f.Status != 'A' {
			return nil
		}
		same, err := p.isUnfinished(ctx, r.primary, f.Path, j)
		if err != nil || same {
			return err
		}
		return lost.add(f.Path)
	})
	if err != nil {
		return err
	}
	if lost.total > 0 {
		return problem(ErrDirty, "primary checkout %s: a promotion was killed, and %d of its files have changed since (%s); restore them with git checkout", r.primary, lost.total, lost)
	}
	if err := r.finish(ctx, p, "--reset", j.New); err != nil {
		return problem(ErrGit, "primary checkout %s: the branch has moved to %s, but its files have not all followed (%w); repair the cause, the next promotion completes it", r.primary, j.New, err)
	}
	return nil
}

// isUnfinished reports whether a file of the primary has the old content, or the new one
// or the beginning of it, as a killed checkout leaves it.
func (p *private) isUnfinished(ctx context.Context, primary, name string, j journal) (bool, error) {
	full := filepath.Join(primary, name)
	info, err := os.Lstat(full)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil || info.IsDir() {
		return err == nil, nil
	}
	entry, err := p.text(ctx, call{}, "ls-tree", "-z", j.New, "--", name)
	if err != nil {
		return false, err
	}
	fields := strings.Fields(strings.SplitN(entry, "\t", 2)[0])
	if len(fields) != 3 || fields[1] != "blob" {
		return false, nil
	}
	compared := &prefixWriter{}
	if info.Mode().IsRegular() {
		f, err := os.Open(full)
		if err != nil {
			return false, nil
		}
		defer f.Close()
		compared.file = f
	} else if target, err := os.Readlink(full); err == nil {
		compared.file = strings.NewReader(target)
	} else {
		return false, nil
	}
	// With the conversions of attributes, as in the checkout.
	if _, err := p.git(ctx, call{dir: primary, env: []string{"GIT_WORK_TREE=" + primary}, stdout: compared}, "cat-file", "--filters", "--path="+name, fields[2]); err != nil {
		return false, err
	}
	return compared.isPrefix(), nil
}

// A prefixWriter compares what is written with a file.
type prefixWriter struct {
	file   io.Reader
	ended  bool // the file is shorter than what was written
	differ bool
}

func (w *prefixWriter) Write(data []byte) (int, error) {
	buffer := make([]byte, 32<<10)
	for rest := data; len(rest) > 0 && !w.ended && !w.differ; {
		n, err := io.ReadFull(w.file, buffer[:min(len(buffer), len(rest))])
		w.differ = !bytes.Equal(buffer[:n], rest[:n])
		w.ended = err != nil
		rest = rest[n:]
	}
	return len(data), nil
}

// isPrefix reports whether the file is the beginning, or all, of what was written.
func (w *prefixWriter) isPrefix() bool {
	if w.differ {
		return false
	}
	n, err := io.ReadFull(w.file, make([]byte, 1))
	return w.ended || n == 0 && errors.Is(err, io.EOF)
}
