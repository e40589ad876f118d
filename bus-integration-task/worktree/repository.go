package worktree

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Config says where a repository may be and what bounds the work on it.
type Config struct {
	// Workspace is the folder that the primary checkout and its git directory must be
	// in. Absolute.
	Workspace string
	// State is a folder for private files that exist during an operation. Tasks must not
	// be able to write to it while an operation runs, nor other users. Absolute; it is
	// created.
	State string
	// Path is the value of PATH in which git is found, that of the process by default.
	Path string
	// Committer is who commits and who is named in the logs of references.
	Committer Identity
	// Timeout bounds one run of git, 10 minutes by default.
	Timeout time.Duration
	// LockWait bounds the wait for the lock of the repository, one minute by default.
	LockWait time.Duration
	// MaxFiles bounds the files that a commit changes, 100,000 by default.
	MaxFiles int
	// MaxBytes bounds the size of the new content of these files together, 2 GiB by
	// default.
	MaxBytes int64
}

// Identity is the author or the committer of a commit.
type Identity struct {
	Name, Email string
}

func (i Identity) check() error {
	for _, text := range []string{i.Name, i.Email} {
		if strings.Trim(text, " .,:;\"'") == "" || strings.ContainsAny(text, "<>\n\x00") || len(text) > 500 {
			return problem(ErrName, "identity %q <%s>: git cannot write it; give a name and an e-mail address", i.Name, i.Email)
		}
	}
	return nil
}

// A Repository is a primary checkout and its git directory. Methods can be called
// concurrently, also from several processes and for several Repository values of the same
// checkout.
type Repository struct {
	config   Config
	program  string // git
	primary  string // real path of the checkout
	module   string // path of the checkout below the workspace
	gitDir   string // its git directory: HEAD and index
	common   string // the directory with objects and references
	settings string // configuration of private git directories
	waiting  func() // set by tests: called before the lock of an existing worktree is taken
}

// Open returns the repository of the checkout at primary, an absolute path in the
// workspace. Checkout and git directory must be there without links that lead out of it.
// The configuration of the repository is read for the format of its objects and the
// abilities of its file system, never for anything else.
//
// Errors match ErrName, ErrUnsupported or ErrGit.
func Open(ctx context.Context, primary string, config Config) (*Repository, error) {
	r := &Repository{config: config}
	c := &r.config
	if c.Path == "" {
		c.Path = os.Getenv("PATH")
	}
	if c.Committer == (Identity{}) {
		c.Committer = Identity{"bus-integration-task", "bus-integration-task@localhost"}
	}
	if c.Timeout <= 0 {
		c.Timeout = 10 * time.Minute
	}
	if c.LockWait <= 0 {
		c.LockWait = time.Minute
	}
	if c.MaxFiles <= 0 {
		c.MaxFiles = 100_000
	}
	if c.MaxBytes <= 0 {
		c.MaxBytes = 2 << 30
	}
	if err := c.Committer.check(); err != nil {
		return nil, err
	}
	if err := r.locate(primary); err != nil {
		return nil, err
	}
	if !filepath.IsAbs(c.State) {
		return nil, problem(ErrName, "state folder %q: it is not absolute; give an absolute path", c.State)
	}
	if err := os.MkdirAll(c.State, 0o700); err != nil {
		return nil, problem(ErrGit, "state folder: %w", err)
	}
	state, err := filepath.EvalSymlinks(c.State)
	if err != nil {
		return nil, problem(ErrGit, "state folder: %w", err)
	}
	c.State = state
	if err := checkOwn("state folder", state); err != nil {
		return nil, err
	}
	if r.program, err = findGit(c.Path, c.Workspace, c.State); err != nil {
		return nil, err
	}
	return r, r.readSettings(ctx)
}

// locate finds the git directories of primary.
func (r *Repository) locate(primary string) error {
	for _, name := range []string{primary, r.config.Workspace} {
		if !filepath.IsAbs(name) || filepath.Clean(name) != name || strings.ContainsAny(name, "\n\x00") {
			return problem(ErrName, "path %q: it is not absolute and clean; give an absolute path without \"..\"", oneLine(name, 200))
		}
	}
	root, err := filepath.EvalSymlinks(r.config.Workspace)
	if err != nil {
		return problem(ErrName, "workspace root: %w", err)
	}
	real, err := filepath.EvalSymlinks(primary)
	if err != nil {
		return problem(ErrName, "primary checkout: %w", err)
	}
	rel, err := filepath.Rel(r.config.Workspace, primary)
	if err != nil || !filepath.IsLocal(rel) || real != filepath.Join(root, rel) {
		return problem(ErrName, "primary checkout %s: it is not in the workspace %s, or a link leads to it; give a folder of the workspace", primary, r.config.Workspace)
	}
	r.config.Workspace, r.primary, r.module = root, real, rel
	if rel == "." {
		r.module = ""
	}
	git := filepath.Join(real, ".git")
	info, err := os.Lstat(git)
	if errors.Is(err, fs.ErrNotExist) {
		return problem(ErrUnsupported, "primary checkout %s: it has no .git; clone the repository there", real)
	}
	if err != nil {
		return problem(ErrUnsupported, "primary checkout: %w", err)
	}
	if !info.IsDir() {
		text, err := readData(git)
		target, ok := bytes.CutPrefix(text, []byte("gitdir: "))
		if err != nil || !ok {
			return problem(ErrUnsupported, "%s: it is neither a folder nor the file of a submodule or worktree; restore it", git)
		}
		git = absolute(real, strings.TrimRight(string(target), "\r\n"))
	}
	if r.gitDir, err = r.inside(git); err != nil {
		return err
	}
	r.common = r.gitDir
	if text, err := readData(filepath.Join(r.gitDir, "commondir")); err == nil {
		if r.common, err = r.inside(absolute(r.gitDir, strings.TrimRight(string(text), "\r\n"))); err != nil {
			return err
		}
	}
	for _, name := range []string{filepath.Join(r.common, "objects"), filepath.Join(r.common, "refs")} {
		if info, err := os.Lstat(name); err != nil || !info.IsDir() {
			return problem(ErrUnsupported, "%s: it is not a folder; restore the repository", name)
		}
	}
	return nil
}

// inside returns the real path of a git directory.
func (r *Repository) inside(name string) (string, error) {
	real, err := filepath.EvalSymlinks(name)
	if err != nil {
		return "", problem(ErrUnsupported, "git directory: %w", err)
	}
	if !within(r.config.Workspace, real) {
		return "", problem(ErrName, "git directory %s: it is not in the workspace %s; move the repository there", real, r.config.Workspace)
	}
	return real, nil
}

func absolute(dir, name string) string {
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(dir, name)
}

// fixed is the part of the configuration that is the same for all repositories. It
// overrides what newer versions of git may have as default.
const fixed = `	bare = false
	logAllRefUpdates = true
	hooksPath = /dev/null
	attributesFile = /dev/null
	fsmonitor = false
	untrackedCache = false
	commitGraph = false
	multiPackIndex = false
	protectHFS = true
	protectNTFS = true
	bigFileThreshold = 32m
	preferSymlinkRefs = false
	fsync = committed,reference
	fsyncMethod = fsync
[gc]
	auto = 0
[maintenance]
	auto = false
[submodule]
	recurse = false
[protocol]
	allow = never
[commit]
	gpgSign = false
[i18n]
	commitEncoding = UTF-8
[index]
	sparse = false
[merge]
	renameLimit = 1000
	directoryRenames = false
	renormalize = false
`

// carried are the variables that are taken from the repository. Their values are words.
var carried = []string{"core.filemode", "core.symlinks", "core.ignorecase", "core.precomposeunicode", "core.autocrlf", "core.eol", "core.sharedrepository"}

// readSettings makes the configuration of private git directories.
func (r *Repository) readSettings(ctx context.Context) error {
	name := filepath.Join(r.common, "config")
	data, err := readData(name)
	if err != nil {
		return problem(ErrUnsupported, "%w", err)
	}
	r.settings = "[core]\n\trepositoryformatversion = 0\n" + fixed
	p, err := r.private()
	if err != nil {
		return err
	}
	defer p.close()
	values := make(map[string]string)
	err = p.each(ctx, call{stdin: bytes.NewReader(data)}, func(record string) error {
		key, value, _ := strings.Cut(record, "\n")
		values[key] = strings.ToLower(value)
		return nil
	}, "config", "--file", "-", "--no-includes", "--null", "--list")
	if err != nil {
		return err
	}
	version, extensions := "0", ""
	for key, value := range values {
		extension, ok := strings.CutPrefix(key, "extensions.")
		if !ok {
			continue
		}
		switch extension {
		case "objectformat":
			if value == "sha256" {
				version, extensions = "1", "[extensions]\n\tobjectFormat = sha256\n"
			}
		case "noop", "noop-v1", "preciousobjects", "worktreeconfig", "relativeworktrees":
		case "partialclone":
			return problem(ErrUnsupported, "%s: a partial clone fetches what is missing with programs that its configuration names; make a full clone", r.primary)
		default:
			return problem(ErrUnsupported, "%s: extension %q of the repository is not known; use a repository with the files format of references", r.primary, oneLine(extension, 50))
		}
	}
	text := "[core]\n\trepositoryformatversion = " + version + "\n"
	for _, key := range carried {
		if value := values[key]; value != "" && strings.Trim(value, "abcdefghijklmnopqrstuvwxyz0123456789") == "" {
			text += "\t" + strings.TrimPrefix(key, "core.") + " = " + value + "\n"
		}
	}
	r.settings = text + fixed + extensions
	return nil
}

// Primary returns the real path of the checkout.
func (r *Repository) Primary() string { return r.primary }

// Branch returns the branch that the primary is on, "" if its HEAD is detached.
func (r *Repository) Branch() (string, error) { return readHead(r.gitDir) }

// readHead returns the branch that the HEAD of a git directory names.
func readHead(gitDir string) (string, error) {
	data, err := readData(filepath.Join(gitDir, "HEAD"))
	if err != nil {
		return "", problem(ErrUnsupported, "HEAD: %w", err)
	}
	ref, _ := strings.CutPrefix(strings.TrimSpace(string(data)), "ref: ")
	branch, ok := strings.CutPrefix(ref, "refs/heads/")
	if !ok {
		return "", nil
	}
	return branch, CheckBranch(branch)
}

// Contains reports whether commit is on branch, which is the one that the primary is on
// by default. It first completes a promotion that a process began and did not finish, so
// its answer does not change later. Unknown commits are not contained.
//
// With ErrDirty the answer can be true: the branch has the commit, but a user has changed
// files since, and must act before the checkout can follow.
//
// It waits for the lock of the repository as [Repository.Promote] does.
func (r *Repository) Contains(ctx context.Context, branch, commit string) (bool, error) {
	if !isHash(commit) {
		return false, problem(ErrName, "commit %q: it is not the name of an object; give all of its digits", oneLine(commit, 70))
	}
	p, err := r.locked(ctx)
	if err != nil {
		return false, err
	}
	defer p.close()
	unfinished := r.recover(ctx, p)
	if unfinished != nil && !errors.Is(unfinished, ErrDirty) {
		return false, unfinished
	}
	contained, err := r.contains(ctx, p, branch, commit)
	return contained, errors.Join(unfinished, err)
}

func (r *Repository) contains(ctx context.Context, p *private, branch, commit string) (contained bool, err error) {
	if branch == "" {
		if branch, err = r.Branch(); err != nil || branch == "" {
			return false, err
		}
	}
	if err := CheckBranch(branch); err != nil {
		return false, err
	}
	tip, err := p.resolve(ctx, "refs/heads/"+branch)
	if err != nil || tip == "" {
		return false, err
	}
	known, err := p.resolve(ctx, commit)
	if err != nil || known != commit {
		return false, err
	}
	return p.isAncestor(ctx, commit, tip)
}
