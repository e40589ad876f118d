package tree

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func surveyed(t testing.TB, files ...string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	for _, name := range files {
		name, target, isLink := strings.Cut(name, "->")
		file := filepath.Join(dir, name)
		err = errors.Join(err, os.MkdirAll(filepath.Dir(file), 0o755))
		switch {
		case isLink:
			err = errors.Join(err, os.Symlink(target, file))
		case strings.HasSuffix(name, "/"):
			err = errors.Join(err, os.MkdirAll(file, 0o755))
		case strings.HasSuffix(name, "|"):
			err = errors.Join(err, unix.Mkfifo(strings.TrimSuffix(file, "|"), 0o600))
		default:
			err = errors.Join(err, os.WriteFile(file, nil, 0o600))
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestSurveySelectsByName(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("n", 255)
	dir := surveyed(t, "a/AGENTS.md", "b/agents.MD/", "c/sKill.md|", "d/agents.md->/etc/passwd", "e/SKILL.md", "f/other", "f/"+long, "g/x.mdc", "g/x.MDC", "link->a", "h/agent.md", "h/\xff\xfe", "i/"+long+"/AGENTS.md", "j/s\u212aill.md")
	s, err := NewSurvey(t.Context(), SurveyEntries, []string{"AGENTS.md", "SKILL.md", "*.mdc"}, dir, filepath.Join(dir, "none"))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]fs.FileMode{}
	for _, f := range s.Folders(dir) {
		for _, e := range f.Entries {
			rel, _ := filepath.Rel(dir, f.Path)
			got[rel+"/"+e.Name] = e.Type
		}
	}
	want := map[string]fs.FileMode{"a/AGENTS.md": 0, "b/agents.MD": fs.ModeDir, "c/sKill.md": fs.ModeIrregular, "d/agents.md": fs.ModeSymlink,
		"e/SKILL.md": 0, "g/x.mdc": 0, "i/" + long + "/AGENTS.md": 0, "j/s\u212aill.md": 0}
	for name, kind := range got {
		if kind&(fs.ModeNamedPipe|fs.ModeIrregular) != 0 {
			got[name] = fs.ModeIrregular
		}
	}
	if !reflect.DeepEqual(got, want) || len(s.Left("/")) > 0 {
		t.Errorf("got %v, want %v", got, want)
	}
}

// In the folders of repositories, under whatever name, everything is kept that is neither
// a regular file nor a folder.
func TestSurveyKeepsWhatIsSpecialInRepositories(t *testing.T) {
	t.Parallel()
	dir := surveyed(t, "x|", "l->x", "a/.git/b/x|", "a/.git/b/c", "a/.GIT/l->x", "bare/HEAD->x", "bare/refs/heads/x|", "bare/objects/", "tree/HEAD", "tree/commondir", "tree/x|", "no/HEAD", "no/refs/", "no/x|", "objects/p/x|")
	s, err := NewSurvey(t.Context(), SurveyEntries, nil, dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.More(t.Context(), filepath.Join(dir, "objects"), true); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range s.Folders(dir) {
		for _, e := range f.Entries {
			rel, _ := filepath.Rel(dir, filepath.Join(f.Path, e.Name))
			got = append(got, rel)
			if !f.Git {
				t.Errorf("%s is not marked", rel)
			}
		}
	}
	slices.Sort(got)
	if want := []string{"a/.GIT/l", "a/.git/b/x", "bare/HEAD", "bare/refs/heads/x", "objects/p/x", "tree/x"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Whatever the order of the roots, each folder is listed once, and all surveys agree.
func TestSurveyListsEachFolderOnce(t *testing.T) {
	t.Parallel()
	var files []string
	for i := range 200 {
		files = append(files, "a/"+strconv.Itoa(i)+"/b/HEAD")
	}
	dir := surveyed(t, files...)
	for _, limit := range []int{SurveyEntries, 450, 100, 0} {
		var first *Survey
		for range 5 {
			s, err := NewSurvey(t.Context(), limit, []string{"HEAD"}, filepath.Join(dir, "a", "7"), dir, filepath.Join(dir, "a"), dir)
			if err != nil {
				t.Fatal(err)
			}
			s.listers = [2]lister{}
			if first == nil {
				first = s
			}
			if !reflect.DeepEqual(s, first) {
				t.Fatalf("limit %d: two surveys differ", limit)
			}
		}
		if limit == SurveyEntries && first.Listed() != 402 {
			t.Errorf("%d folders were listed, want 402", first.Listed())
		}
		if isWhole := limit == SurveyEntries; (len(first.Left(dir)) == 0) != isWhole {
			t.Errorf("limit %d: %d folders are left", limit, len(first.Left(dir)))
		}
		if over := first.entries - limit; over > 201 {
			t.Errorf("limit %d: %d entries more", limit, over)
		}
	}
}

func TestSurveyIsCarried(t *testing.T) {
	t.Parallel()
	dir := surveyed(t, "a/HEAD", "b/.git/HEAD")
	s, err := NewSurvey(t.Context(), SurveyEntries, []string{"HEAD", ".git"}, dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx := WithSurvey(t.Context(), s)
	for _, c := range []struct {
		names, roots []string
		same         bool
	}{
		{[]string{"HEAD"}, []string{dir}, true},
		{nil, nil, true},
		{[]string{"HEAD", "x"}, []string{dir}, false},
		{[]string{"HEAD"}, []string{dir, filepath.Join(dir, "a")}, true},
		{[]string{"HEAD"}, []string{dir, filepath.Dir(dir)}, false},
	} {
		if got, err := SurveyOf(ctx, c.names, c.roots...); (got == s) != c.same || err != nil {
			t.Errorf("%q of %q: the same %t, %v", c.names, c.roots, got == s, err)
		}
	}
	more, err := s.More(t.Context(), surveyed(t, "x/HEAD"), false)
	if err != nil || len(more) != 1 || len(s.Folders(dir)) != 3 {
		t.Errorf("more: %v, %v; all: %v", more, err, s.Folders(dir))
	}
}

func TestSurveyEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("gone")
	cancel(gone)
	if _, err := NewSurvey(ctx, SurveyEntries, nil, surveyed(t, "a/b")); !errors.Is(err, gone) {
		t.Error(err)
	}
}

func BenchmarkSurvey(b *testing.B) {
	var files []string
	for i := range 100 {
		for n := range 100 {
			files = append(files, strconv.Itoa(i%10)+"/"+strconv.Itoa(i)+"/"+strconv.Itoa(n))
		}
	}
	dir := surveyed(b, files...)
	names := []string{".git", "HEAD", "AGENTS.md", ".gitignore"}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := NewSurvey(b.Context(), SurveyEntries, names, dir); err != nil {
			b.Fatal(err)
		}
	}
}
