package backendtest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/busdk/bus-agent/internal/unix"
)

// spoilers leave in a directory what must not hold up or mislead a run that
// removes or reads it. file is where the CLI keeps a session; it is in dir, and
// "" where it keeps none.
var spoilers = []struct {
	kind string
	do   func(dir, file, outside string) error
}{
	{"a FIFO", func(dir, file, _ string) error {
		return at(dir, file, func(name string) error { return unix.Mkfifo(name, 0o600) })
	}},
	{"a socket", func(dir, file, _ string) error { return at(dir, file, socket) }},
	{"a link to a file", func(dir, file, outside string) error {
		return at(dir, file, func(name string) error { return os.Symlink(filepath.Join(outside, "file"), name) })
	}},
	{"a link to a folder", func(dir, file, outside string) error {
		target := filepath.Join(outside, "folder")
		first, _, _ := strings.Cut(strings.TrimPrefix(file, dir+"/"), "/")
		return at(dir, "", func(name string) error {
			if file == "" {
				return os.Symlink(target, name)
			}
			top := filepath.Join(dir, first)
			return errors.Join(os.RemoveAll(top), os.Symlink(target, top), os.Symlink(target, name))
		})
	}},
	{"a file of 8 TiB", func(dir, file, _ string) error {
		return at(dir, file, func(name string) error {
			f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
			if err != nil {
				return err
			}
			defer f.Close()
			size := int64(8) << 40
			for size > 1<<30 && f.Truncate(size) != nil {
				size /= 2 // file systems have limits, too
			}
			return nil
		})
	}},
	{"folders 1500 deep", func(dir, _, _ string) error { return deepen(dir, 1500) }},
	{"2000 files", func(dir, _, _ string) error {
		for i := range 2000 {
			if err := unix.Mknod(filepath.Join(dir, fmt.Sprint("file-", i)), unix.S_IFREG|0o600); err != nil {
				return err
			}
		}
		return nil
	}},
	{"a closed folder", func(dir, _, _ string) error {
		closed := filepath.Join(dir, "closed", "inner")
		return errors.Join(os.MkdirAll(closed, 0o700), os.WriteFile(filepath.Join(closed, "file"), nil, 0o400),
			os.Chmod(closed, 0), os.Chmod(filepath.Dir(closed), 0))
	}},
	{"strange names", func(dir, _, _ string) error {
		var all error
		for _, name := range []string{"a\nb", "\x1b[2J", "\xff\xfe", "-rf", "*", strings.Repeat("n", 255)} {
			all = errors.Join(all, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
		}
		return all
	}},
}

// spoilKinds returns the kinds of what can be left.
func spoilKinds() (kinds []string) {
	for _, s := range spoilers {
		kinds = append(kinds, s.kind)
	}
	return kinds
}

// spoil leaves s.Text in every directory the agent was given.
func (s Step) spoil() error {
	session := os.ExpandEnv(s.Steps[0].Text)
	for _, spoiler := range spoilers {
		if spoiler.kind != s.Text {
			continue
		}
		for _, dir := range givenDirs() {
			file := ""
			if strings.HasPrefix(session, dir+"/") {
				file = session
			}
			if err := spoiler.do(dir, file, s.More); err != nil {
				return err
			}
		}
		return nil
	}
	return errors.New("no such kind")
}

// replace puts links to s.More in the place of the directories that the agent was
// given, s.N levels up.
func (s Step) replace() error {
	work, err := os.Getwd()
	if err != nil {
		return err
	}
	for _, dir := range givenDirs() {
		for range s.N {
			dir = filepath.Dir(dir)
		}
		// A folder of the repository, or the private one for temporary files.
		if !strings.HasPrefix(dir, work+"/") && s.N > 0 {
			continue
		}
		aside := dir + ".aside"
		err := os.Rename(dir, aside)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := errors.Join(err, os.Symlink(s.More, dir)); err != nil {
			return err
		}
	}
	return nil
}

// givenDirs returns the directories that the agent was given for itself: those
// below its workdir that its environment names, and its TMPDIR.
func givenDirs() (dirs []string) {
	work, err := os.Getwd()
	if err != nil {
		return nil
	}
	for _, entry := range os.Environ() {
		name, value, _ := strings.Cut(entry, "=")
		info, err := os.Stat(value)
		if err != nil || !info.IsDir() || name == "PWD" || name == "HOME" {
			continue
		}
		// A TMPDIR that is the caller's is not the agent's.
		if strings.HasPrefix(value, work+"/") || name == "TMPDIR" && filepath.Base(value) != "tmp" {
			dirs = append(dirs, value)
		}
	}
	return dirs
}

// at makes something in dir, and where the CLI keeps a session.
func at(dir, file string, make func(name string) error) error {
	names := []string{filepath.Join(dir, "hostile")}
	if file != "" {
		names = append(names, file)
	}
	for _, name := range names {
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.RemoveAll(name), make(name)); err != nil {
			return err
		}
	}
	return nil
}

// socket makes a socket; its address would be too long for most names.
func socket(name string) error {
	return unix.Mknod(name, unix.S_IFSOCK|0o600)
}

// deepen makes folders in folders. Their path is longer than any call takes.
func deepen(dir string, levels int) error {
	back, err := os.Getwd()
	if err != nil {
		return err
	}
	if err := os.Chdir(dir); err != nil {
		return err
	}
	for range levels {
		if err := errors.Join(os.Mkdir("deep", 0o700), os.Chdir("deep")); err != nil {
			return err
		}
	}
	return os.Chdir(back)
}
