package instructions

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/busdk/bus-agent/agent"
)

// gitFiles are files of a repository's .git that CLIs read by themselves and pass on,
// such as the name of the branch. They must be inside, like those of a Read.
var gitFiles = Reads(Upward, "HEAD", "commondir", "refs/**/*")

// gitState are the files that only git reads there. Checkouts that share a repository
// link to them; they must only not block git.
var gitState = Reads(Upward, "config", "config.worktree", "index", "sharedindex.*", "packed-refs", "shallow", "*_HEAD", "logs/HEAD", "objects/pack/*",
	"info/*", "objects/info/*", "rebase-apply/*", "rebase-merge/*", "sequencer/*")

// maxGitFile bounds the .git or commondir file that is read, in bytes.
const maxGitFile = 1 << 16

// git checks the .git of dir, which need not exist, and its repository: that of a
// worktree or a submodule may be anywhere.
func (k *check) git(dir string) error {
	git := filepath.Join(dir, ".git")
	if err := k.file(git, reading{}); err != nil {
		return err
	}
	switch target, isFile := strings.CutPrefix(line(dir, ".git"), "gitdir:"); {
	case isFile:
		git = absolute(dir, strings.TrimSpace(target))
	case isDir(git) && !k.trusted && !Contains(k.root, git):
		return k.leadsOut(git, reading{})
	}
	if !isDir(git) {
		return nil
	}
	if err := k.gitFolder(dir, git); err != nil {
		return err
	}
	if common := line(git, "commondir"); common != "" {
		return k.gitFolder(dir, absolute(git, common))
	}
	return nil
}

func isDir(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// gitFolder checks a folder with the files of the repository of worktree. One outside
// the checked repository is a separate boundary.
func (k *check) gitFolder(worktree, dir string) error {
	physical, err := filepath.EvalSymlinks(dir)
	if err != nil || !isDir(physical) {
		return nil
	}
	if err := k.configs(worktree, physical); err != nil || k.repositories[physical] {
		return err
	}
	k.repositories[physical] = true
	inner := check{ctx: k.ctx, top: k.top, root: k.root, trusted: k.trusted, limit: k.limit, entries: k.gitEntries}
	defer func() { k.gitEntries = inner.entries }()
	if !Contains(k.root, dir) {
		inner.root = physical
	}
	for _, r := range gitFiles {
		if err := inner.expand(physical, strings.Split(r.Name, "/"), r, 0); err != nil {
			return err
		}
	}
	inner.trusted = true
	for _, r := range gitState {
		if err := inner.expand(physical, strings.Split(r.Name, "/"), r, 0); err != nil {
			return err
		}
	}
	return nil
}

// configs checks the files that the configuration of the repository of worktree names.
func (k *check) configs(worktree, dir string) error {
	for _, name := range []string{"config", "config.worktree"} {
		if err := k.named(worktree, dir, name); err != nil {
			return err
		}
	}
	return nil
}

// named refuses a FIFO or a device that a git configuration names, such as an ignore
// file or another configuration: git would block on it.
func (k *check) named(worktree, dir, config string) error {
	if k.gitEntries > k.limit {
		return k.uncheckable(filepath.Join(dir, config), "and the files before it have too many values")
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil
	}
	defer root.Close()
	text, err := readFile(root, config, maxImporter)
	if err != nil {
		return nil // absent, or shared, or git refuses it
	}
	for line := range strings.Lines(string(text)) {
		_, value, _ := strings.Cut(line, "=")
		value = strings.Trim(strings.TrimSpace(value), `"`)
		if value == "" || value == os.DevNull || len(value) > maxPath || strings.ContainsRune(value, 0) {
			continue
		}
		if err := context.Cause(k.ctx); err != nil {
			return err
		}
		k.gitEntries++
		for _, from := range []string{worktree, dir} {
			file := absolute(from, value)
			if info, err := os.Stat(file); err == nil && info.Mode()&(fs.ModeNamedPipe|fs.ModeDevice) != 0 {
				return agent.Usagef("%s, which %s names, is not a regular file, and reading it could block; remove it", k.name(file), k.name(filepath.Join(dir, config)))
			}
		}
	}
	return nil
}

// line returns the trimmed text of a short regular file; "" if it cannot be read.
func line(dir, name string) string {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return ""
	}
	defer root.Close()
	text, err := readFile(root, name, maxGitFile)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

func absolute(dir, name string) string {
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(dir, name)
}
