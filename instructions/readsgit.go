package instructions

import (
	"os"
	"path/filepath"
	"strings"
)

// gitFiles are files of a repository's .git that CLIs read by themselves and pass on,
// such as the name of the branch. They must be inside, like those of a Read. Package
// gitenv checks those that only git reads.
var gitFiles = Reads(Upward, "HEAD", "commondir", "refs/**/*")

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
	if err := k.gitFolder(git); err != nil {
		return err
	}
	if common := line(git, "commondir"); common != "" {
		return k.gitFolder(absolute(git, common))
	}
	return nil
}

func isDir(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// gitFolder checks a folder with the files of a repository. One outside the checked
// repository is a separate boundary.
func (k *check) gitFolder(dir string) error {
	physical, err := filepath.EvalSymlinks(dir)
	if err != nil || !isDir(physical) {
		return nil
	}
	if k.repositories[physical] {
		return nil
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
