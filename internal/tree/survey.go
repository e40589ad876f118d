package tree

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/busdk/bus-agent/internal/unix"
)

// SurveyEntries is how many files and folders a survey looks at: more than large
// repositories have.
const SurveyEntries = 500_000

// A Survey lists the folders below some roots, each once, breadth first and one
// root after the other. It keeps what the names select and, at and below the folders of
// git repositories, everything but regular files and folders. It follows no link, opens
// no file and waits for none. Two surveys of the same tree are equal. Its methods must
// not be called concurrently.
type Survey struct {
	names   names
	limit   int
	entries int
	listed  int
	roots   map[string]bool // without links
	folders []Folder
	left    []string
	listers [2]lister
}

// A Folder is a folder that has entries which are kept, or that cannot be listed.
type Folder struct {
	Path    string
	Entries []File // in the order of the file system
	Err     error  // why it cannot be listed, which ends with its Entries
	Git     bool   // it is the folder of a git repository, or below one
}

// A File is an entry of a folder.
type File struct {
	Name string
	Type fs.FileMode // as of fs.DirEntry
}

// NewSurvey lists the roots and the folders below them until it has seen more than
// limit entries. The names are patterns of path.Match; those without special
// characters select names in any case. A root inside another is listed on its own,
// in its place. A root that does not exist is empty. The error is context.Cause's
// when ctx is over.
func NewSurvey(ctx context.Context, limit int, names []string, roots ...string) (*Survey, error) {
	s := &Survey{names: newNames(names), limit: limit, roots: map[string]bool{}}
	var queue []string
	for _, root := range roots {
		if real := physical(root); !s.roots[real] {
			s.roots[real] = true
			queue = append(queue, real)
		}
	}
	for _, root := range queue {
		if err := s.walk(ctx, toList{root, inGit(root)}); err != nil {
			return nil, err
		}
	}
	return s, context.Cause(ctx)
}

// physical returns a folder without links. One that does not exist stays as it is.
func physical(dir string) string {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		return real
	}
	return filepath.Clean(dir)
}

type surveyKey struct{}

// WithSurvey returns a context that carries s for SurveyOf.
func WithSurvey(ctx context.Context, s *Survey) context.Context {
	return context.WithValue(ctx, surveyKey{}, s)
}

// SurveyOf returns the survey that ctx carries where it has all these names and has
// listed the folders. Otherwise it makes one.
func SurveyOf(ctx context.Context, names []string, roots ...string) (*Survey, error) {
	s, ok := ctx.Value(surveyKey{}).(*Survey)
	if ok && s.names.have(names) && !slices.ContainsFunc(roots, func(root string) bool { return !Within(s.roots, physical(root)) }) {
		return s, context.Cause(ctx)
	}
	return NewSurvey(ctx, SurveyEntries, names, roots...)
}

// Folders returns the folders at and below the roots.
func (s *Survey) Folders(roots ...string) []Folder {
	in := set(roots)
	var found []Folder
	for _, f := range s.folders {
		if Within(in, f.Path) {
			found = append(found, f)
		}
	}
	return found
}

// More lists a further folder, which must not be a link, and those below it, and returns
// what Folders would. The entries count toward the limit of the survey. If git is set, it
// is the folder of a repository.
func (s *Survey) More(ctx context.Context, dir string, git bool) ([]Folder, error) {
	n := len(s.folders)
	err := s.walk(ctx, toList{dir, git || inGit(dir)})
	return s.folders[n:], err
}

// Left returns the folders at and below the roots that were not listed completely
// because of the limit.
func (s *Survey) Left(roots ...string) []string {
	in := set(roots)
	var left []string
	for _, dir := range s.left {
		if Within(in, dir) {
			left = append(left, dir)
		}
	}
	return left
}

// Listed returns how many folders were listed.
func (s *Survey) Listed() int { return s.listed }

func set(roots []string) map[string]bool {
	in := make(map[string]bool, len(roots))
	for _, root := range roots {
		in[physical(root)] = true
	}
	return in
}

// Within reports whether dir or a folder that it is in is in the set.
func Within(in map[string]bool, dir string) bool {
	for len(in) > 0 {
		if in[dir] {
			return true
		}
		up := filepath.Dir(dir)
		if up == dir {
			break
		}
		dir = up
	}
	return false
}

// A toList is a folder that is listed next.
type toList struct {
	path string
	git  bool // it is the folder of a git repository, or below one
}

// inGit reports whether a path leads through a folder named .git.
func inGit(dir string) bool {
	for name := range strings.SplitSeq(dir, "/") {
		if isGit(name) {
			return true
		}
	}
	return false
}

func isGit[T string | []byte](name T) bool {
	return len(name) == len(".git") && strings.EqualFold(string(name), ".git")
}

// walk lists a folder and those below it, level by level.
func (s *Survey) walk(ctx context.Context, root toList) error {
	for level := []toList{root}; len(level) > 0; {
		listings := s.list(ctx, level)
		if err := context.Cause(ctx); err != nil {
			return err
		}
		var next []toList
		for i, l := range listings {
			if s.entries <= s.limit {
				s.entries += l.entries
				s.listed++
				next = append(next, l.folders...)
				if len(l.found) > 0 || l.err != nil {
					s.folders = append(s.folders, Folder{level[i].path, l.found, l.err, l.git})
				}
			}
			if s.entries > s.limit {
				for _, left := range slices.Concat(level[i:], next) {
					s.left = append(s.left, left.path)
				}
				return nil
			}
		}
		level = next
	}
	return nil
}

// A listing is what a folder has.
type listing struct {
	entries int
	folders []toList
	found   []File
	git     bool
	err     error
}

// list lists folders, on two cores where there are enough of them. It stops after
// those that are over the limit, always with the same ones listed before.
func (s *Survey) list(ctx context.Context, level []toList) []listing {
	room := int64(s.limit - s.entries)
	listings := make([]listing, len(level))
	var next, entries atomic.Int64
	work := func(l *lister) {
		for ctx.Err() == nil && entries.Load() <= room {
			i := next.Add(1) - 1
			if i >= int64(len(level)) {
				return
			}
			listings[i] = s.listOne(ctx, l, level[i], room)
			entries.Add(int64(listings[i].entries))
		}
	}
	const worth = 16 // folders
	if len(level) < worth || runtime.GOMAXPROCS(0) < 2 {
		work(&s.listers[0])
		return listings
	}
	var wg sync.WaitGroup
	wg.Go(func() { work(&s.listers[1]) })
	work(&s.listers[0])
	wg.Wait()
	return listings
}

// listOne lists a folder until it has more than room entries.
func (s *Survey) listOne(ctx context.Context, l *lister, folder toList, room int64) listing {
	into, dir := listing{git: folder.git}, strings.TrimSuffix(folder.path, "/")+"/"
	var marks repositoryMarks
	err := l.list(folder.path, func(name []byte, kind fs.FileMode) bool {
		into.entries++
		marks.note(name)
		if s.names.match(name) || into.git && kind&^fs.ModeDir != 0 {
			into.found = append(into.found, File{string(name), kind})
		}
		if kind.IsDir() {
			if path := dir + string(name); !s.roots[path] {
				into.folders = append(into.folders, toList{path, into.git || isGit(name)})
			}
		}
		return int64(into.entries) <= room && (into.entries%1024 != 0 || ctx.Err() == nil)
	})
	if !into.git && marks.all() { // known only now
		folder.git = true
		return s.listOne(ctx, l, folder, room)
	}
	if !isAbsent(err) {
		into.err = err
	}
	return into
}

// repositoryMarks notes the entries by which git knows the folder of a repository, which
// can have any name.
type repositoryMarks struct{ head, refs, objects, common bool }

func (m *repositoryMarks) note(name []byte) {
	switch len(name) {
	case 4:
		m.head = m.head || bytes.EqualFold(name, []byte("HEAD"))
		m.refs = m.refs || bytes.EqualFold(name, []byte("refs"))
	case 7:
		m.objects = m.objects || bytes.EqualFold(name, []byte("objects"))
	case 9:
		m.common = m.common || bytes.EqualFold(name, []byte("commondir"))
	}
}

func (m *repositoryMarks) all() bool { return m.head && (m.common || m.refs && m.objects) }

// isAbsent reports whether a program that opens a folder by its name would find
// none.
func isAbsent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENAMETOOLONG)
}

// special are the characters of path.Match.
const special = `*?[\`

// isPattern reports whether a name is a pattern.
func isPattern(name string) bool { return strings.ContainsAny(name, special) }
