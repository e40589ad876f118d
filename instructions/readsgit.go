package instructions

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/tree"
)

// gitFiles are files of a repository's .git that CLIs read by themselves and pass on,
// such as the name of the branch. They must be inside, like those of a Read.
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
	return inner.blocking(physical)
}

// blocking refuses a FIFO or a device, or a link to one, anywhere in a folder of git, which
// would wait for it. Checkouts that share a repository have links there.
func (k *check) blocking(dir string) error {
	names := []string{"*"}
	if strings.Contains(dir+"/", "/.git/") { // where a survey has links and special files
		names = nil
	}
	s, err := tree.SurveyOf(k.ctx, names, dir)
	if err != nil {
		return err
	}
	for _, folder := range s.Folders(dir) {
		for _, entry := range folder.Entries {
			if err := k.waits(filepath.Join(folder.Path, entry.Name), entry.Type); err != nil {
				return err
			}
		}
	}
	const most = 16
	alternates, objects := 0, filepath.Join(dir, "objects")
	for name := range strings.Lines(line(objects, "info/alternates")) {
		if alternates++; alternates > most {
			break // git has a limit too
		}
		if other := absolute(objects, strings.TrimSpace(name)); isDir(other) && !k.seen(other) {
			if err := k.blocking(other); err != nil {
				return err
			}
		}
	}
	return nil
}

// seen reports whether a folder was checked before, and marks it.
func (k *check) seen(dir string) bool {
	if physical, err := filepath.EvalSymlinks(dir); err == nil {
		dir = physical
	}
	if k.repositories == nil {
		k.repositories = map[string]bool{}
	}
	was := k.repositories[dir]
	k.repositories[dir] = true
	return was
}

// waits refuses a file that git reads if it is a FIFO or a device, or a link to one.
func (k *check) waits(file string, kind fs.FileMode) error {
	if kind&fs.ModeSymlink != 0 {
		info, err := os.Stat(file)
		if err != nil {
			return nil
		}
		if null, err := os.Stat(os.DevNull); err == nil && os.SameFile(info, null) {
			return nil
		}
		kind = info.Mode()
	}
	if kind&(fs.ModeNamedPipe|fs.ModeDevice) == 0 {
		return nil
	}
	return agent.Usagef("%s is not a regular file, and reading it could block; remove it", k.name(file))
}

// around refuses what would block git in the folders of the repository outside the
// workdir: git looks at the whole repository, wherever it is called.
func (k *check) around(workdir string) error {
	s, err := tree.SurveyOf(k.ctx, nil)
	if err != nil {
		return err
	}
	for _, folder := range s.Folders("/") {
		if Contains(workdir, folder.Path) {
			continue
		}
		if err := k.over(); err != nil {
			return err
		}
		for _, entry := range folder.Entries {
			file := filepath.Join(folder.Path, entry.Name)
			switch entry.Name {
			case ".gitignore", ".gitattributes", ".git":
				err = k.waits(file, entry.Type)
			}
			if err == nil && entry.Name == ".git" && entry.Type.IsDir() && !k.seen(file) {
				err = k.blocking(file)
			}
			if err != nil {
				return err
			}
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
	for line := range strings.Lines(strings.ReplaceAll(string(text), "\\\n", "")) {
		key, value, _ := strings.Cut(line, "=")
		value = gitValue(value)
		if value == "" || value == os.DevNull || len(value) > maxPath || strings.ContainsRune(value, 0) {
			continue
		}
		if strings.Contains(value, "%(prefix)") && !k.trusted { // where git is installed
			return agent.Usagef("%s names %s, which cannot be checked; remove it or use --trust-workspace", k.name(filepath.Join(dir, config)), display(value))
		}
		if err := context.Cause(k.ctx); err != nil {
			return err
		}
		k.gitEntries++
		for _, from := range []string{worktree, dir, filepath.Dir(filepath.Join(dir, config))} {
			file := absolute(from, value)
			info, err := os.Stat(file)
			switch {
			case err != nil:
			case info.Mode()&(fs.ModeNamedPipe|fs.ModeDevice) != 0:
				return agent.Usagef("%s, which %s names, is not a regular file, and reading it could block; remove it", k.name(file), k.name(filepath.Join(dir, config)))
			case info.Mode().IsRegular() && strings.EqualFold(strings.TrimSpace(key), "path") && !k.seen(file): // an include
				if err := k.named(worktree, filepath.Dir(file), filepath.Base(file)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// gitValue returns the value of a variable of git's configuration, without quotes, escapes
// and the comment after it.
func gitValue(text string) string {
	var b strings.Builder
	quoted := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			quoted = !quoted
		case c == '\\' && i+1 < len(text):
			i++
			b.WriteByte(text[i])
		case (c == ';' || c == '#') && !quoted:
			return strings.TrimSpace(b.String())
		default:
			b.WriteByte(c)
		}
	}
	return strings.TrimSpace(b.String())
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
