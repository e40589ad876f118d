package runs

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/busdk/bus-agent/internal/statefile"
	"github.com/busdk/bus-agent/internal/unix"
)

// Export writes a tar file, compressed by gzip, with the records of runs and the prompts
// and messages of their tasks. Unpacked, it is a folder of records. The same records
// give the same bytes. It contains only folders and regular files with one name, at
// most 10,000 on 16 levels of each record: no file that cannot be read or is sparse, and
// no name with a special meaning on another system. leftOut names everything else.
func (s *Records) Export(ctx context.Context, w io.Writer, list []Run) (leftOut []string, err error) {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b Run) int { return strings.Compare(a.Dir, b.Dir) })
	compressed := gzip.NewWriter(w)
	e := exporter{ctx: ctx, store: s, to: tar.NewWriter(compressed), done: map[string]bool{}}
	for i := range list {
		if err := e.run(&list[i]); err != nil {
			return nil, err
		}
	}
	if err := e.to.Close(); err != nil {
		return nil, err
	}
	return e.leftOut, compressed.Close()
}

type exporter struct {
	ctx     context.Context
	store   *Records
	to      *tar.Writer
	done    map[string]bool // by name
	leftOut []string
}

func (e *exporter) run(run *Run) error {
	at, err := e.store.locate(run.Dir)
	if err != nil {
		return err
	}
	task, err := e.store.openBelow(at.project, at.task)
	if err != nil {
		return err
	}
	defer task.Close()
	for _, name := range []string{taskName, busName} {
		stat, err := task.Lstat(name)
		if ignoreMissing(err) != nil {
			return err
		}
		if err == nil {
			if err := e.entry(task, name, path.Join(at.project, at.task, name), stat); err != nil {
				return err
			}
		}
	}
	root, err := e.store.openBelow(at.project, at.task, runsName, at.run)
	if err != nil {
		return err
	}
	defer root.Close()
	as := path.Join(at.project, at.task, runsName, at.run)
	stat, err := root.Lstat(".")
	if err != nil {
		return err
	}
	left := maxExported
	return e.folder(root, as, stat, maxExportedDepth, &left)
}

// The limits of one record in an export.
const maxExported, maxExportedDepth = 10_000, 16

// folder adds a folder with its content, at most left entries on levels levels.
func (e *exporter) folder(root *os.Root, as string, stat fs.FileInfo, levels int, left *int) error {
	if err := e.entry(root, ".", as, stat); err != nil {
		return err
	}
	names, more, err := namesIn(root, *left)
	if err != nil {
		return err
	}
	if more || levels == 0 && len(names) > 0 {
		e.leftOut = append(e.leftOut, as+"/…")
	}
	if levels == 0 {
		return nil
	}
	*left -= len(names)
	for _, name := range names {
		if isTransient(name) {
			continue
		}
		if !isPortable(name) {
			e.leftOut = append(e.leftOut, path.Join(as, name))
			continue
		}
		stat, err := root.Lstat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err == nil && stat.IsDir():
			var below *os.Root
			if below, err = root.OpenRoot(name); err == nil {
				err = e.folder(below, path.Join(as, name), stat, levels-1, left)
				below.Close()
			}
		case err == nil:
			err = e.entry(root, name, path.Join(as, name), stat)
		}
		if errors.Is(err, fs.ErrPermission) { // an agent can take it away
			e.leftOut = append(e.leftOut, path.Join(as, name))
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// namesIn returns the names in a folder, at most limit, sorted.
func namesIn(root *os.Root, limit int) (names []string, more bool, err error) {
	f, err := root.Open(".")
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	for len(names) <= limit {
		some, err := f.Readdirnames(min(limit+1-len(names), 1024))
		names = append(names, some...)
		if err == io.EOF || err == nil && len(some) == 0 {
			break
		}
		if err != nil {
			return nil, false, err
		}
	}
	more = len(names) > limit
	names = names[:min(limit, len(names))]
	slices.Sort(names)
	return names, more, nil
}

// isTransient reports whether a file exists only while a record is written.
func isTransient(name string) bool {
	return name == infoName+".lock" || strings.HasPrefix(name, "run-info.") && strings.HasSuffix(name, ".yaml.tmp") ||
		statefile.IsTemp(name) && (strings.HasPrefix(name, taskName+".") || strings.HasPrefix(name, infoName+".") || strings.HasPrefix(name, promptName+".") || strings.HasPrefix(name, outputName+"."))
}

// isPortable reports whether a name is one part of a path wherever it is unpacked,
// and can be shown.
func isPortable(name string) bool {
	return utf8.ValidString(name) && !strings.ContainsFunc(name, func(r rune) bool { return r == '\\' || r == ':' || !unicode.IsPrint(r) })
}

// hasOneName reports whether a file has no hard link. One that has can be a file of
// the user from elsewhere.
func hasOneName(stat fs.FileInfo) bool {
	sys, ok := stat.Sys().(*unix.SysStat)
	return ok && sys.Nlink == 1
}

// entry adds a file or a folder.
func (e *exporter) entry(root *os.Root, name, as string, stat fs.FileInfo) error {
	switch {
	case e.ctx.Err() != nil:
		return e.ctx.Err()
	case e.done[as]:
		return nil
	case !stat.IsDir() && (!stat.Mode().IsRegular() || !hasOneName(stat)):
		e.leftOut = append(e.leftOut, as)
		return nil
	}
	e.done[as] = true
	header := tar.Header{Name: as, Mode: 0o600, ModTime: stat.ModTime().Truncate(time.Second).UTC(), Typeflag: tar.TypeReg, Size: stat.Size()}
	if stat.IsDir() {
		header.Name, header.Mode, header.Typeflag, header.Size = as+"/", 0o700, tar.TypeDir, 0
		return e.to.WriteHeader(&header)
	}
	f, err := root.OpenFile(name, os.O_RDONLY|openSafely, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := statefile.CheckOpen(f); err != nil {
		e.leftOut = append(e.leftOut, as)
		return nil
	}
	if err := e.to.WriteHeader(&header); err != nil {
		return err
	}
	// Of a file that grows, only the first size bytes are read.
	if n, err := io.CopyN(e.to, untilDone{e.ctx, f}, header.Size); err != nil {
		return fmt.Errorf("%s: %d of %d bytes could be read: %w", filepath.Join(root.Name(), name), n, header.Size, err)
	}
	return nil
}
