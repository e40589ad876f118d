package instructions

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/busdk/bus-agent/internal/process"
	"github.com/busdk/bus-agent/internal/tree"
)

// Remove removes the home with its content, except the files or directories named;
// symlinks are removed, never followed. If no other home and no kept file is left, it
// also removes what [Workspace.RunHome] made above it. A home with exceptions stays
// until [Clean].
//
// The Home cannot be used afterwards, also after an error, which names what is left.
// What exceeds the budget of [Workspace.Bound] stays for a sweep. A second Remove does
// nothing.
func (h *Home) Remove(except ...string) error {
	for _, name := range except {
		if err := checkName(name); err != nil {
			return err
		}
	}
	if !h.open {
		return nil
	}
	defer h.closeAll()
	bounds := h.w.bounds()
	if err := removeTree(bounds, h.base, h.name, except); err != nil {
		if errors.Is(err, tree.ErrOver) && bounds.Leave(h.path, err) {
			return nil
		}
		return fmt.Errorf("the private home %s is left behind: %w", path.Join(h.parent, h.name), err)
	}
	defer lockWorkdir(h.w.bounds(), h.top)()
	removeBase(h.top, h.base, h.parent)
	return nil
}

// removeTree removes the directory name of root, except the entries named relative to
// it. The file with its claim is removed last.
func removeTree(b *tree.Budget, root *os.Root, name string, except []string) error {
	err := tree.Remove(b, root, name, process.ClaimName, except...)
	if err == nil || errors.Is(err, tree.ErrOver) {
		return err
	}
	// A process that is just ending may have added a file.
	return tree.Remove(b, root, name, process.ClaimName, except...)
}

// The .gitignore of a parent names the directories that were made for it, so that the
// last run, or Clean, removes exactly those.
const (
	ignoreName = ".gitignore"
	ignoreHead = "# bus-agent keeps private files of agent runs here and removes them.\n"
	ignoreMade = "# made for it: "
	ignoreTail = "*\n"
)

func ignoreText(made []string) string {
	text := ignoreHead
	for _, dir := range made {
		text += ignoreMade + dir + "\n"
	}
	return text + ignoreTail
}

// parseIgnore returns the directories that our .gitignore names, and whether it is
// ours and unchanged.
func parseIgnore(text string) (made []string, ours bool) {
	for line := range strings.Lines(text) {
		if dir, ok := strings.CutPrefix(line, ignoreMade); ok {
			made = append(made, strings.TrimSuffix(dir, "\n"))
		}
	}
	return made, ignoreText(made) == text
}

// ignoreAll writes the .gitignore of a parent, or adds made to an existing one of
// ours. It reports whether the parent is hidden from git now: any other .gitignore is
// not changed. all are the directories that it names. The workdir is locked.
//
// An error leaves the file as it was, also on a full disk.
func ignoreAll(base *os.Root, made []string) (hidden bool, all []string, err error) {
	info, _ := base.Lstat(ignoreName)
	old, err := readFile(base, ignoreName, 1<<16)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !isLink(base, ignoreName):
		err = writeNew(base, ignoreName, []byte(ignoreText(made)), 0o644)
		if errors.Is(err, fs.ErrExist) {
			return false, nil, nil // it was replaced
		}
		return err == nil, made, err
	case err != nil:
		return false, nil, nil // something else has its name
	default:
		before, ours := parseIgnore(string(old))
		if !ours {
			return false, nil, nil
		}
		if len(made) == 0 {
			return true, before, nil
		}
		made = append(before, made...)
		slices.Sort(made) // a parent sorts before its children
		made = slices.Compact(made)
	}
	return true, made, replace(base, ignoreName, info, []byte(ignoreText(made)))
}

// ignoreDir hides one directory from git unless it has a .gitignore.
func ignoreDir(root *os.Root, dir string) error {
	err := writeNew(root, path.Join(dir, ignoreName), []byte(ignoreTail), 0o644)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// removeBase removes the parent of homes, and the directories that were made for it,
// if only files of a home are left. The workdir is locked.
func removeBase(top, base *os.Root, parent string) {
	if !holdsOnly(base, ignoreName, keptDir) {
		return
	}
	removeDirs(base, []string{keptDir}) // if empty
	if !holdsOnly(base, ignoreName) {
		return
	}
	text, err := readFile(base, ignoreName, 1<<16)
	if err != nil {
		return
	}
	made, ours := parseIgnore(string(text))
	if !ours {
		return
	}
	if base.Remove(ignoreName) == nil {
		removeDirs(top, leadingTo(parent, made))
	}
}

// holdsOnly reports whether a directory has entries of the given names only.
func holdsOnly(dir *os.Root, names ...string) bool {
	f, err := dir.Open(".")
	if err != nil {
		return false
	}
	defer f.Close()
	found, err := f.Readdirnames(len(names) + 1)
	return (err == nil || errors.Is(err, io.EOF)) && !slices.ContainsFunc(found, func(name string) bool { return !slices.Contains(names, name) })
}

// leadingTo returns those of dirs that are parent or contain it. The names come from a
// file, which anyone can write.
func leadingTo(parent string, dirs []string) []string {
	return slices.DeleteFunc(slices.Clone(dirs), func(dir string) bool {
		return dir != parent && !strings.HasPrefix(parent, dir+"/")
	})
}
