package statefile

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// FromRoot holds the directory of a root.
func FromRoot(root *os.Root) (*Dir, error) {
	f, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	d := &Dir{file: f, named: root.Name()}
	if d.stat, err = f.Stat(); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// ErrTooMany says that a directory holds more than is removed at once.
var ErrTooMany = errors.New("too many entries to remove at once; remove it again for the rest")

// Empty removes what is in the directory, but for the entry keep, at most limit
// entries of the whole tree. Its time grows with their number only: directories
// below are moved up before they are emptied, so neither depth nor long paths
// matter. Links are removed, not followed. Where it ends early, with ErrTooMany or
// the error of ctx, the next call continues.
func (d *Dir) Empty(ctx context.Context, keep string, limit int) error {
	var random [6]byte
	_, _ = rand.Read(random[:]) // it never fails
	t := &tree{top: d, ctx: ctx, left: limit, keep: keep, prefix: ".removing-" + hex.EncodeToString(random[:]) + "-"}
	if err := t.empty(d); err != nil {
		return err
	}
	for len(t.moved) > 0 {
		name := t.moved[len(t.moved)-1]
		t.moved = t.moved[:len(t.moved)-1]
		below, err := d.Dir(name)
		if err == nil {
			err = t.empty(below)
			below.Close()
		}
		if err == nil {
			err = d.Remove(name)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

type tree struct {
	top    *Dir
	ctx    context.Context
	left   int
	keep   string   // an entry of top
	prefix string   // of directories that were moved up
	moved  []string // of them, those that remain
	count  int
}

// empty removes the entries of a directory, and moves up directories with entries.
func (t *tree) empty(d *Dir) error {
	list, err := hold(d.fd(), ".", d.Path(), 0)
	if err != nil {
		return err
	}
	defer list.Close()
	for {
		names, err := list.file.Readdirnames(1024)
		for _, name := range names {
			if d == t.top && (name == t.keep || strings.HasPrefix(name, t.prefix)) {
				continue
			}
			if t.ctx.Err() != nil {
				return context.Cause(t.ctx)
			}
			if t.left--; t.left < 0 {
				return &fs.PathError{Op: "remove", Path: t.top.Path(), Err: ErrTooMany}
			}
			if err := t.remove(d, name); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		if err == io.EOF || err == nil && len(names) == 0 {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// remove removes an entry, or moves a directory with entries to the top.
func (t *tree) remove(d *Dir, name string) error {
	err := d.Remove(name)
	if !errors.Is(err, fs.ErrExist) { // the system's error for a directory with entries
		return err
	}
	t.count++
	moved := t.prefix + strconv.Itoa(t.count)
	err = unix.Renameat(d.fd(), name, t.top.fd(), moved)
	if err != nil {
		return &fs.PathError{Op: "remove", Path: d.path(name), Err: err}
	}
	t.moved = append(t.moved, moved)
	return nil
}
