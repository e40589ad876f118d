package worktree

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// A folders knows which folders below root have no link in their path.
type folders struct {
	root  string
	known map[string]bool
}

func foldersOf(root string) *folders { return &folders{root, make(map[string]bool)} }

// real reports whether the folder name exists and is reached without a link.
func (f *folders) real(name string) bool {
	if name == "." {
		return true
	}
	known, ok := f.known[name]
	if !ok {
		if known = f.real(path.Dir(name)); known {
			info, err := os.Lstat(filepath.Join(f.root, name))
			known = err == nil && info.IsDir()
		}
		f.known[name] = known
	}
	return known
}

// settle makes the files of the primary that a promotion changes those of its old or its new
// commit, and no others. The index of p, which is that of the primary, is the old one; to
// complete, settle makes it the new one.
//
// Files that are not those of either commit, nor the beginning of one as a killed checkout
// leaves it, are the user's: they stay as they are and are returned. To complete, nothing
// is changed then.
func (r *Repository) settle(ctx context.Context, p *private, j journal, complete bool) (*names, error) {
	users := &names{}
	touched := make(map[string]bool) // differ from the index
	err := p.each(ctx, in(r.primary), func(name string) error {
		touched[name] = true
		return nil
	}, "diff-files", "-z", "--name-only", "--no-renames", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all", "--")
	if err != nil {
		return users, err
	}
	root, err := os.OpenRoot(r.primary)
	if err != nil {
		return users, problem(ErrGit, "primary checkout: %w", err)
	}
	defer root.Close()
	s := &settling{private: p, root: root, folders: foldersOf(r.primary), users: users}
	var remove, write []string
	var differ []difference
	if err := p.differences(ctx, j.Old, j.New, func(d difference) error {
		differ = append(differ, d)
		return nil
	}); err != nil {
		return users, err
	}
	for _, d := range differ {
		if d.Status == 'A' || touched[d.Path] {
			if ours, err := s.ours(ctx, d); err != nil {
				return users, err
			} else if !ours {
				users.add(d.Path)
				continue
			}
		}
		mode := d.oldMode
		if complete {
			mode = d.Mode
		}
		switch {
		case mode == modeNone:
			remove = append(remove, d.Path)
		case mode != modeModule: // git leaves what is in a submodule alone too
			write = append(write, d.Path)
		}
	}
	if complete {
		if users.total > 0 {
			return users, nil
		}
		if _, err := p.git(ctx, call{}, "read-tree", "-i", "-m", j.Old, j.New); err != nil {
			return users, err
		}
	}
	s.remove(remove)
	write = slices.DeleteFunc(write, func(name string) bool {
		if s.inWay(name) {
			users.add(name)
			return true
		}
		return false
	})
	if complete && users.total > 0 || len(write) == 0 {
		return users, nil
	}
	c := in(r.primary)
	c.hold, c.stdin = p.held, strings.NewReader(strings.Join(write, "\x00")+"\x00")
	args := []string{"checkout-index", "--force", "-z", "--stdin"}
	if complete {
		args = append(args, "--index") // with the times of the files
	}
	_, err = p.git(ctx, c, args...)
	return users, err
}

// A settling is a call of settle.
type settling struct {
	*private
	root    *os.Root
	folders *folders
	users   *names
}

// ours reports whether what is at a path of a promotion may be replaced. An empty folder may
// be, and what a link in the path leads to is not at that path.
func (s *settling) ours(ctx context.Context, d difference) (bool, error) {
	if !s.folders.real(path.Dir(d.Path)) {
		return true, nil
	}
	info, err := s.root.Lstat(d.Path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.IsDir() {
		return true, nil
	}
	if err != nil {
		return false, problem(ErrGit, "primary checkout: %w", err)
	}
	for _, side := range []struct{ mode, object string }{{d.oldMode, d.old}, {d.Mode, d.new}} {
		if side.mode == modeNone || side.mode == modeModule {
			continue
		}
		same, err := s.begins(ctx, d.Path, info, side.object)
		if err != nil || same {
			return same, err
		}
	}
	return false, nil
}

// begins reports whether a file or link is the beginning, or all, of a blob.
func (s *settling) begins(ctx context.Context, name string, info fs.FileInfo, object string) (bool, error) {
	compared := &prefixWriter{}
	switch info.Mode().Type() {
	case 0:
		f, err := s.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
		if err != nil {
			return false, nil
		}
		defer f.Close()
		compared.file = f
	case fs.ModeSymlink:
		target, err := s.root.Readlink(name)
		if err != nil {
			return false, nil
		}
		compared.file = strings.NewReader(target)
	default:
		return false, nil
	}
	// With the conversions of attributes, as in the checkout.
	c := in(s.repo.primary)
	c.stdout = compared
	if _, err := s.git(ctx, c, "cat-file", "--filters", "--path="+name, object); err != nil {
		return false, err
	}
	return compared.isPrefix(), nil
}

// remove removes files, and folders that are empty without them.
func (s *settling) remove(files []string) {
	for _, name := range files {
		if !s.folders.real(path.Dir(name)) {
			continue
		}
		err := s.root.Remove(name)
		for dir := path.Dir(name); err == nil && dir != "."; dir = path.Dir(dir) {
			err = s.root.Remove(dir) // not one that has other files
		}
	}
	s.folders = foldersOf(s.folders.root)
}

// inWay reports whether something of a user is where a file or one of its folders must be.
// It removes an empty folder. Git would remove whatever there is.
func (s *settling) inWay(name string) bool {
	for dir := path.Dir(name); !s.folders.real(dir); dir = path.Dir(dir) {
		if _, err := s.root.Lstat(dir); err == nil && s.folders.real(path.Dir(dir)) {
			return true
		}
	}
	info, err := s.root.Lstat(name)
	return err == nil && info.IsDir() && s.root.Remove(name) != nil
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
