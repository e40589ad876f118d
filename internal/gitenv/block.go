package gitenv

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/busdk/bus-agent/internal/statefile"
	"github.com/busdk/bus-agent/internal/tree"
)

// ErrBlocks means that git would wait for a file, possibly forever.
var ErrBlocks = errors.New("is not a regular file, and reading it could block; remove it")

// ErrUnknown means that it cannot be found out which file git would read.
var ErrUnknown = errors.New("names a file that cannot be found out")

// worktreeFiles are files that git reads in any folder of a worktree.
var worktreeFiles = []string{".gitignore", ".gitattributes", ".gitmodules", ".mailmap"}

func isWorktreeFile(name string) bool {
	for _, file := range worktreeFiles {
		if strings.EqualFold(name, file) {
			return true
		}
	}
	return false
}

// mayBlock reports whether opening a file of this type can wait. A socket cannot be
// opened.
func mayBlock(kind fs.FileMode) bool {
	return kind&(fs.ModeNamedPipe|fs.ModeDevice|fs.ModeIrregular) != 0
}

// blocks reports whether a file, of which the links were followed, makes git wait. The
// null device does not.
func blocks(info fs.FileInfo) bool {
	if !mayBlock(info.Mode()) {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}

// entry refuses an entry of a folder for which git would wait. In the folder of a
// repository it searches behind links, since checkouts that share a repository have some.
func (f *finder) entry(dir string, e tree.File, git bool) error {
	if e.Type&fs.ModeSymlink == 0 && !mayBlock(e.Type) {
		return nil
	}
	name := filepath.Join(dir, e.Name)
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return nil
	case info.IsDir() && git:
		if real, err := filepath.EvalSymlinks(name); err == nil {
			f.enqueue(real, true)
		}
	case blocks(info):
		return fmt.Errorf("%s %w", name, ErrBlocks)
	}
	return nil
}

// maxAlternates is how deep alternates of alternates are followed, as by git.
const maxAlternates = 5

// alternates adds the folders of objects that a repository borrows from, each once. It
// reads them level by level: what is found first is least deep.
func (f *finder) alternates(objects string) error {
	level, seen := []string{objects}, map[string]bool{objects: true}
	for depth := 0; depth <= maxAlternates && len(level) > 0; depth++ {
		var next []string
		for _, dir := range level {
			more, err := f.alternatesOf(dir, seen)
			if err != nil {
				return err
			}
			next = append(next, more...)
		}
		level = next
	}
	return nil
}

// alternatesOf adds those that one folder of objects names, and returns the ones that are
// not in seen.
func (f *finder) alternatesOf(objects string, seen map[string]bool) (more []string, err error) {
	name := filepath.Join(objects, "info/alternates")
	text, err := readFile(name)
	switch {
	case errors.Is(err, statefile.ErrTooLarge):
		return nil, f.refusal(name, "%v", cause(err))
	case err != nil:
		return nil, nil // absent, or git cannot read it either
	case f.tooMuch(text):
		return nil, f.refusal(name, "more than %d files or %d bytes of git configuration", maxFiles, maxBytes)
	}
	lines := map[string]bool{}
	for line := range strings.Lines(untilNUL(string(text))) {
		line = strings.TrimRight(line, "\n")
		if line == "" || line[0] == '#' || lines[line] {
			continue
		}
		lines[line] = true
		if err := context.Cause(f.ctx); err != nil {
			return nil, err
		}
		if f.values++; f.values > tree.SurveyEntries {
			return nil, f.refusal(name, "more than %d values of git configuration", tree.SurveyEntries)
		}
		if quoted, err := strconv.Unquote(line); err == nil && line[0] == '"' {
			line = untilNUL(quoted)
		}
		if real, err := filepath.EvalSymlinks(join(objects, line)); err == nil && !seen[real] {
			seen[real] = true
			f.enqueue(real, true)
			more = append(more, real)
		}
	}
	return more, nil
}

// value refuses a value of a configuration file that names a file for which git would
// wait. Any value can be a name. Git reads relative ones from one of the folders.
func (f *finder) value(file string, e entry, folders []string) error {
	name := strings.TrimPrefix(e.value, ":(optional)")
	if err := context.Cause(f.ctx); err != nil {
		return err
	}
	// Beyond the two folders that every repository has, each counts as a value.
	if f.values += max(1, len(folders)-1); f.values > tree.SurveyEntries {
		return f.refusal(file, "more than %d values of git configuration", tree.SurveyEntries)
	}
	if e.bare || name == "" || isBool(name) || len(name) > maxName || strings.ContainsRune(name, 0) {
		return nil
	}
	switch rest, isHome := strings.CutPrefix(name, "~/"); {
	case isHome && f.home != "":
		folders, name = []string{f.home}, rest
	case strings.HasPrefix(name, "%(prefix)") || strings.HasPrefix(name, "~") && namesFile(e.key):
		if f.trusted {
			return nil
		}
		return fmt.Errorf("%s: %s %w", file, e.key, ErrUnknown)
	}
	for _, dir := range folders {
		target := join(dir, name)
		if info, err := os.Stat(target); err == nil && blocks(info) {
			return fmt.Errorf("%s, which %s names, %w", filepath.Clean(target), file, ErrBlocks)
		}
	}
	return nil
}

// maxName is how many bytes the name of a file can have.
const maxName = 4096

// namesFile reports whether git expands "~" in the value of a variable.
func namesFile(key string) bool {
	_, _, name := split(key)
	for _, end := range []string{"file", "path", "template", "list", "dir"} {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	return false
}

// execLines reports whether the list of an unfinished rebase has commands, which git runs
// when it continues.
func execLines(list string) bool {
	text, err := readFile(list)
	if err != nil {
		return typeOf(list) != 0
	}
	for line := range strings.Lines(string(text)) {
		if word := strings.Fields(line); len(word) > 1 && (word[0] == "x" || word[0] == "exec") {
			return true
		}
	}
	return false
}
