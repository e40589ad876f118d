package instructions

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/busdk/bus-agent/internal/tree"
)

// A JSONList is one string in a list in a JSON settings file, for example
// "AGENTS.md" in context.fileName. The file may have comments and trailing
// commas.
type JSONList struct {
	Path     string   // relative to the workdir, slash-separated
	Keys     []string // from the outermost object in, for example context, fileName
	Value    string
	Defaults []string // what the list means while it is absent; these are written before Value
}

// AddToJSON adds a string to a list of strings in a JSON settings file, which it
// creates if there is none. Existing bytes stay, including comments, order and white
// space. A single string in place of the list becomes its first element. A list that
// has the string is not changed.
//
// The top-level key "busAgentOwned" records the addition, so that it can be removed
// again.
//
// A file that does not parse, or has something else in place of the list, is
// [ErrUnparsable], a symlink or anything else but a regular file [ErrNotRegular]. Both
// leave the file as it is.
func (w *Workspace) AddToJSON(j JSONList) error {
	if err := j.check(); err != nil {
		return err
	}
	changed, err := edit(w.bounds(), w.root, j.Path, func(old []byte, newDirs int) ([]byte, error) {
		return j.add(old, w.newDirs(j.Path, newDirs))
	}, w.dryRun)
	if err != nil {
		return fmt.Errorf("adding %q to %s: %w", j.Value, j.Path, err)
	}
	if changed {
		w.note(j.Path, "%q added to %s", j.Value, strings.Join(j.Keys, "."))
		w.added(func() error { return w.removeFromJSON(j) })
	}
	return nil
}

// removeFromJSON removes exactly what AddToJSON added: the file is as it was before,
// byte for byte, and a file that AddToJSON created is removed with the directories
// that were made for it. Later changes of the file stay. Without our addition it does
// nothing.
func (w *Workspace) removeFromJSON(j JSONList) error {
	if err := j.check(); err != nil {
		return err
	}
	if _, err := removeFromJSON(w.bounds(), w.root, j, w.dryRun, never); err != nil {
		return fmt.Errorf("removing %q from %s: %w", j.Value, j.Path, err)
	}
	return nil
}

func removeFromJSON(budget *tree.Budget, root *os.Root, j JSONList, dryRun bool, inUse func() bool) (removed bool, err error) {
	dirs := 0
	removed, err = edit(budget, root, j.Path, func(old []byte, _ int) (data []byte, err error) {
		if inUse() {
			return old, nil
		}
		data, dirs, err = j.remove(old)
		return data, err
	}, dryRun)
	if removed && !dryRun {
		removeMade(root, j.Path, dirs)
	}
	return removed, err
}

// check returns mistakes of the runtime's author.
func (j JSONList) check() error {
	if len(j.Keys) == 0 || j.Value == "" {
		return errors.New("a list entry needs keys and a value")
	}
	for _, text := range slices.Concat(j.Keys, j.Defaults, []string{j.Value}) {
		if !utf8.ValidString(text) {
			return fmt.Errorf("%q is not UTF-8", text)
		}
	}
	if j.Keys[0] == ownedKey {
		return fmt.Errorf("the key %s is taken", ownedKey)
	}
	return nil
}

// newFile is the content of a missing file.
const newFile = "{\n}\n"

func (j JSONList) add(old []byte, newDirs int) ([]byte, error) {
	made := 0
	if old == nil {
		old, made = []byte(newFile), newDirs+1
	}
	t, err := parseSettings(old)
	if err != nil {
		return nil, err
	}
	mark, err := t.mark()
	if err != nil {
		return nil, err
	}
	if has, err := t.has(j.Keys, j.Value); err != nil || has {
		return old, err
	}
	if mark != nil {
		// Removing everything first restores the bytes from before the first
		// addition.
		old = t.takeBack(mark)
		made = mark.Made
	} else {
		mark = &ownedMark{}
	}
	entries := slices.DeleteFunc(mark.Lists, j.same)
	return addAll(old, append(entries, entry{Keys: j.Keys, Value: j.Value, Defaults: j.Defaults}), made)
}

func (j JSONList) same(e entry) bool { return e.Value == j.Value && slices.Equal(e.Keys, j.Keys) }

// remove returns the content without the addition, nil to remove the file, and the
// number of directories that were made for it.
func (j JSONList) remove(old []byte) (data []byte, dirs int, err error) {
	if old == nil {
		return nil, 0, nil
	}
	t, err := parseSettings(old)
	if err != nil {
		return nil, 0, err
	}
	mark, err := t.mark()
	if err != nil || mark == nil || !slices.ContainsFunc(mark.Lists, j.same) {
		return old, 0, err
	}
	data = t.takeBack(mark)
	if rest := slices.DeleteFunc(mark.Lists, j.same); len(rest) > 0 {
		data, err = addAll(data, rest, mark.Made)
		return data, 0, err
	}
	if mark.Made > 0 && isEmpty(data) {
		return nil, mark.Made - 1, nil
	}
	return data, 0, nil
}

// owned reports whether our addition is in data.
func (j JSONList) owned(data []byte) (bool, error) {
	t, err := parseSettings(data)
	if err != nil {
		return false, err
	}
	mark, err := t.mark()
	return mark != nil && slices.ContainsFunc(mark.Lists, j.same), err
}
