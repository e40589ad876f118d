package worktree

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/busdk/bus-integration-task/internal/unix"
)

// A private is a git directory that the bridge makes for one operation and removes after
// it. References and their logs are links into the repository; its objects are read.
// Configuration, hooks, attributes, index and HEAD are the bridge's. So git does not read
// what a task may have left in the configuration of the repository or in the .git of its
// worktree. New objects are removed with it unless [private.keep] is called: git leaves
// parts of objects behind when a disk is full.
type private struct {
	repo *Repository
	dir  string
	lock *os.File
	held *os.File // lock of the repository; nil without it
}

// maxData bounds each file of a repository that the package reads by itself.
const maxData = 1 << 20

// private makes a private git directory.
func (r *Repository) private() (p *private, err error) {
	if err := r.checkAlternates(""); err != nil {
		return nil, err
	}
	p = &private{repo: r}
	if err := p.reserve(); err != nil {
		return nil, problem(ErrGit, "state folder: %w", err)
	}
	if err := p.fill(); err != nil {
		p.close()
		return nil, problem(ErrGit, "state folder: %w", err)
	}
	return p, nil
}

// reserve makes and locks a folder. [Repository.Prune] can remove it in between.
func (p *private) reserve() (err error) {
	for range 10 {
		if p.dir, err = os.MkdirTemp(p.repo.config.State, "git-"); err != nil {
			return err
		}
		name := filepath.Join(p.dir, lockName)
		if p.lock, err = lockFile(name); err == nil && exists(name) {
			return nil
		}
		p.close()
	}
	return fmt.Errorf("%s was removed: %w", p.dir, fs.ErrNotExist)
}

// fill makes the git directory in the folder.
func (p *private) fill() error {
	r, dir := p.repo, p.dir
	for _, name := range []string{"info", "home", "objects", "objects/info"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "objects", "info", "alternates"), []byte(quoteAlternate(filepath.Join(r.common, "objects"))+"\n"), 0o600); err != nil {
		return err
	}
	for _, name := range []string{"refs", "packed-refs", "logs", "shallow"} {
		target := filepath.Join(r.common, name)
		if _, err := os.Lstat(target); err != nil && name != "refs" && name != "packed-refs" {
			continue
		}
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	// Patterns of ignored files are data.
	if exclude, err := readData(filepath.Join(r.common, "info", "exclude")); err == nil {
		if err := os.WriteFile(filepath.Join(dir, "info", "exclude"), exclude, 0o600); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "config"), []byte(r.settings), 0o600); err != nil {
		return err
	}
	return p.setHead("refs/bus-task/none")
}

// setHead makes ref the HEAD of the private directory.
func (p *private) setHead(ref string) error {
	return os.WriteFile(filepath.Join(p.dir, "HEAD"), []byte("ref: "+ref+"\n"), 0o600)
}

func (p *private) close() {
	os.RemoveAll(p.dir)
	if p.lock != nil {
		unix.Unlock(p.lock)
	}
	if p.held != nil {
		unix.Unlock(p.held)
	}
}

// keep stores the new objects in the repository, for good: they survive a loss of power.
func (p *private) keep() error {
	from, to := filepath.Join(p.dir, "objects"), filepath.Join(p.repo.common, "objects")
	folders, err := os.ReadDir(from)
	for _, folder := range folders {
		if err == nil && folder.Name() != "info" {
			err = keepFolder(filepath.Join(from, folder.Name()), filepath.Join(to, folder.Name()))
		}
	}
	if err == nil {
		err = syncFolder(to)
	}
	if err != nil {
		return problem(ErrGit, "objects of the repository: %w", err)
	}
	return nil
}

func keepFolder(from, to string) error {
	files, err := os.ReadDir(from)
	if err != nil || len(files) == 0 {
		return err
	}
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if err = os.Mkdir(to, info.Mode()); err == nil {
		err = os.Chmod(to, info.Mode()) // as git wants it in a shared repository
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	// Git takes a pack for complete once its index exists.
	slices.SortStableFunc(files, func(a, b fs.DirEntry) int {
		return cmp.Compare(filepath.Ext(a.Name()), filepath.Ext(b.Name())) * -1
	})
	for _, file := range files {
		source, target := filepath.Join(from, file.Name()), filepath.Join(to, file.Name())
		err := os.Link(source, target)
		if err != nil && !errors.Is(err, fs.ErrExist) { // on another disk
			err = copyObject(source, target)
		}
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return syncFolder(to)
}

func copyObject(from, to string) error {
	part := to + ".bus-task"
	err := copyFile(from, part)
	if err == nil {
		err = os.Chmod(part, 0o444)
	}
	if err == nil {
		err = os.Rename(part, to)
	}
	if err != nil {
		os.Remove(part)
	}
	return err
}

// syncFolder makes the names in a folder durable.
func syncFolder(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// maxAlternates is how deep git follows alternates.
const maxAlternates = 5

// checkAlternates refuses a repository that borrows objects, also over others, from
// outside the workspace or, unless it is "", from below root: a task can have put them
// there, and what is promoted would be lost with them.
func (r *Repository) checkAlternates(root string) error {
	folders := []string{filepath.Join(r.common, "objects")}
	for depth := 0; len(folders) > 0; depth++ {
		if depth > maxAlternates {
			return problem(ErrUnsupported, "%s: it borrows objects over more than %d repositories; run git repack -a and remove objects/info/alternates", r.common, maxAlternates)
		}
		var next []string
		for _, folder := range folders {
			data, err := readData(filepath.Join(folder, "info", "alternates"))
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return problem(ErrUnsupported, "alternates: %w", err)
			}
			for line := range strings.Lines(string(data)) {
				name := strings.TrimRight(line, "\n")
				if name == "" || name[0] == '#' {
					continue
				}
				real, err := filepath.EvalSymlinks(absolute(folder, name))
				if errors.Is(err, fs.ErrNotExist) && name[0] != '"' {
					continue // git ignores it too
				}
				if err != nil || !within(r.config.Workspace, real) || root != "" && within(root, real) {
					return problem(ErrUnsupported, "%s: it borrows objects from %s, which is not of the workspace; run git repack -a and remove objects/info/alternates", r.common, oneLine(name, 200))
				}
				if next = append(next, real); len(next) > 100 {
					return problem(ErrUnsupported, "%s: it borrows objects from more than 100 folders", r.common)
				}
			}
		}
		folders = next
	}
	return nil
}

// quoteAlternate quotes a path for objects/info/alternates as C does.
func quoteAlternate(name string) string {
	if !strings.ContainsAny(name, "\"\\\n#") {
		return name
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(name) + `"`
}

// environ is the whole environment of git.
func (p *private) environ() []string {
	home := filepath.Join(p.dir, "home")
	committer := p.repo.config.Committer
	return []string{
		"PATH=" + filepath.Dir(p.repo.program) + ":/usr/bin:/bin",
		"HOME=" + home,
		"XDG_CONFIG_HOME=" + home,
		"TMPDIR=" + home,
		"LC_ALL=C",
		"TERM=dumb",
		"GIT_DIR=" + p.dir,
		"GIT_INDEX_FILE=" + filepath.Join(p.dir, "index"),
		"GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_CONFIG_SYSTEM=/dev/null",
		"GIT_CONFIG_NOSYSTEM=1",
		"GIT_ATTR_NOSYSTEM=1",
		"GIT_GRAFT_FILE=" + filepath.Join(p.dir, "absent"), // git has a hint for one that exists
		"GIT_NO_REPLACE_OBJECTS=1",
		"GIT_NO_LAZY_FETCH=1", // known since git 2.44; the configuration names no promisor either
		"GIT_ALLOW_PROTOCOL=none",
		"GIT_TERMINAL_PROMPT=0",
		"GIT_OPTIONAL_LOCKS=0",
		"GIT_LITERAL_PATHSPECS=1",
		"GIT_PAGER=cat",
		"GIT_EDITOR=:",
		"GIT_COMMITTER_NAME=" + committer.Name,
		"GIT_COMMITTER_EMAIL=" + committer.Email,
	}
}

// in returns the environment for work on the files of folder.
func in(folder string, env ...string) call {
	return call{dir: folder, env: append(env, "GIT_WORK_TREE="+folder)}
}

// resolve returns the commit that ref, a full name or an object, names, "" for none.
func (p *private) resolve(ctx context.Context, ref string) (string, error) {
	out := &headWriter{limit: maxText}
	code, err := p.git(ctx, call{stdout: out, ok: []int{1, 128}}, "rev-parse", "--verify", "--quiet", "--end-of-options", ref+"^{commit}")
	hash := strings.TrimSpace(string(out.head))
	if err != nil || code != 0 || !isHash(hash) {
		return "", err
	}
	return hash, nil
}

// isAncestor reports whether a commit is another one or an ancestor of it.
func (p *private) isAncestor(ctx context.Context, old, new string) (bool, error) {
	code, err := p.git(ctx, call{ok: []int{1}}, "merge-base", "--is-ancestor", old, new)
	return code == 0 && err == nil, err
}

// readData reads a regular file of bounded size, and follows no link.
func readData(name string) ([]byte, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|unix.NoFollow, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: not a regular file", name)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxData+1))
	if err == nil && len(data) > maxData {
		err = fmt.Errorf("%s: larger than %d bytes", name, maxData)
	}
	return data, err
}

// writeData replaces a file in one step. It does not follow a link.
func writeData(name string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".bus-task-")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

func exists(name string) bool {
	_, err := os.Lstat(name)
	return !errors.Is(err, fs.ErrNotExist)
}
