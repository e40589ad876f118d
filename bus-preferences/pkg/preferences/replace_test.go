package preferences

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

func TestCreatedFilesArePrivate(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no file modes")
	}
	s := store{path: filepath.Join(t.TempDir(), "new", "bus", fileName)}
	check(t, s.setString(t.Context(), "a", "x"))
	for path, want := range map[string]os.FileMode{
		s.path:                             0o600,
		s.path + ".lock":                   0o600,
		filepath.Dir(s.path):               0o700,
		filepath.Dir(filepath.Dir(s.path)): 0o700,
	} {
		info, err := os.Stat(path)
		check(t, err)
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %o, want %o", path, got, want)
		}
	}
}

func TestModeIsKept(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no file modes")
	}
	s := newStore(t)
	writeFile(t, s.path, "{}")
	check(t, os.Chmod(s.path, 0o664))
	check(t, s.setString(t.Context(), "a", "x"))
	info, err := os.Stat(s.path)
	check(t, err)
	if got := info.Mode().Perm(); got != 0o664 {
		t.Errorf("mode = %o, want 664", got)
	}
}

func TestLinksAreFollowed(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		target string // of the link
		file   string // the target, relative to the root
		exists bool
	}{
		{"absolute", "", "dotfiles/prefs.json", true},
		{"relative", "../dotfiles/prefs.json", "dotfiles/prefs.json", true},
		{"to a missing file", "../dotfiles/prefs.json", "dotfiles/prefs.json", false},
		{"to another link", "../links/other", "dotfiles/prefs.json", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			ctx, root := t.Context(), t.TempDir()
			for _, dir := range []string{"real/bus", "dotfiles", "real/links", "real/dotfiles"} {
				check(t, os.MkdirAll(filepath.Join(root, dir), 0o700))
			}
			// The parent of the link is a link too, so ".." is relative to its target.
			check(t, os.Symlink("real/bus", filepath.Join(root, "bus")))
			check(t, os.Remove(filepath.Join(root, "real/dotfiles")))
			check(t, os.Symlink("../dotfiles", filepath.Join(root, "real/dotfiles")))
			check(t, os.Symlink("../../dotfiles/prefs.json", filepath.Join(root, "real/links/other")))
			file := filepath.Join(root, test.file)
			if test.exists {
				writeFile(t, file, `{"values":{"old":1}}`)
			}
			s := store{path: filepath.Join(root, "bus", fileName)}
			target := test.target
			if target == "" {
				target = file
			}
			check(t, os.Symlink(target, s.path))

			check(t, s.setString(ctx, "a", "x"))
			if got, err := os.Readlink(s.path); got != target || err != nil {
				t.Errorf("the link points to %q, %v, want %q", got, err, target)
			}
			if info, err := os.Lstat(file); err != nil || !info.Mode().IsRegular() {
				t.Errorf("the target is %v, %v", info, err)
			}
			direct := store{path: file}
			if got, _, err := direct.getString(ctx, "a"); got != "x" || err != nil {
				t.Errorf("the target holds %q, %v", got, err)
			}
			if _, ok, err := s.get(ctx, "old"); ok != test.exists || err != nil {
				t.Errorf("old = %v, %v", ok, err)
			}
		})
	}
}

func TestLinkCycleFails(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	check(t, os.MkdirAll(filepath.Dir(s.path), 0o700))
	check(t, os.Symlink(fileName, s.path))
	if err := s.setString(t.Context(), "a", "x"); err == nil {
		t.Error("setString succeeded")
	}
	if _, _, err := s.get(t.Context(), "a"); err == nil {
		t.Error("get succeeded")
	}
}

func TestOnlyRegularFileIsReplaced(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	check(t, os.MkdirAll(s.path, 0o700))
	if err := s.setString(t.Context(), "a", "x"); err == nil {
		t.Error("setString succeeded on a directory")
	}
	if _, _, err := s.get(t.Context(), "a"); err == nil {
		t.Error("get succeeded on a directory")
	}

	device := store{path: os.DevNull}
	if _, ok, err := device.get(t.Context(), "a"); ok || err != nil {
		t.Errorf("get of the null device = %v, %v, want nothing", ok, err)
	}
	link := store{path: filepath.Join(t.TempDir(), fileName)}
	check(t, os.Symlink(s.path, link.path))
	if err := link.setString(t.Context(), "a", "x"); err == nil {
		t.Error("setString succeeded on a link to a directory")
	}
	if got := files(t, filepath.Dir(s.path)); got != fileName {
		t.Errorf("files = %s", got)
	}
}

func TestStaleTemporaryFileIsReplaced(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	writeFile(t, s.path, "{}")
	victim := filepath.Join(t.TempDir(), "victim")
	writeFile(t, victim, "kept")
	check(t, os.Symlink(victim, tempName(s.path)))
	check(t, s.setString(t.Context(), "a", "x"))
	if got := content(t, victim); got != "kept" {
		t.Errorf("the target of a link was written: %q", got)
	}
	if got := files(t, filepath.Dir(s.path)); got != "preferences.json preferences.json.lock" {
		t.Errorf("files = %s", got)
	}
}

func TestUnchangedFileIsNotWritten(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), newStore(t)
	check(t, s.setString(ctx, "a", "x"))
	past := time.Unix(1e9, 0)
	check(t, os.Chtimes(s.path, past, past))
	check(t, s.setString(ctx, "a", "x"))
	check(t, s.unset(ctx, "b"))
	info, err := os.Stat(s.path)
	check(t, err)
	if !info.ModTime().Equal(past) {
		t.Error("the file was written")
	}
}

// Reading creates no files, which also holds for the superuser.
func TestReadingFromReadOnlyDirectory(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), newStore(t)
	writeFile(t, s.path, `{"values":{"a":"x"}}`)
	dir := filepath.Dir(s.path)
	check(t, os.Chmod(dir, 0o500))
	t.Cleanup(func() { os.Chmod(dir, 0o700) })
	if got, _, err := s.getString(ctx, "a"); got != "x" || err != nil {
		t.Errorf("getString = %q, %v", got, err)
	}
	if _, err := s.list(ctx, ""); err != nil {
		t.Error(err)
	}
	check(t, s.unset(ctx, "b"))
	if got := files(t, dir); got != fileName {
		t.Errorf("files = %s", got)
	}
	if os.Geteuid() > 0 {
		if err := s.setString(ctx, "a", "y"); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("setString = %v, want a permission error", err)
		}
	}
}
