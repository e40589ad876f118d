//go:build linux || darwin

package preferences

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// hostile are functions that create files which are not preferences files.
var hostile = map[string]func(path, foreign string) error{
	"link":        func(path, foreign string) error { return os.Symlink(foreign, path) },
	"named pipe":  func(path, _ string) error { return syscall.Mkfifo(path, 0o600) },
	"directory":   func(path, _ string) error { return os.MkdirAll(filepath.Join(path, "full"), 0o700) },
	"device link": func(path, _ string) error { return os.Symlink("/dev/zero", path) },
	"sparse": func(path, _ string) error {
		return errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, 8<<40))
	},
	"keys": func(path, _ string) error {
		var b strings.Builder
		for i := range 40_000 {
			fmt.Fprintf(&b, `,"k%d":1`, i)
		}
		return os.WriteFile(path, []byte("{"+b.String()[1:]+"}"), 0o600)
	},
	"deep": func(path, _ string) error {
		return os.WriteFile(path, []byte(strings.Repeat("[", 100_000)), 0o600)
	},
}

// The package must not block on such a file, and the error must name it. It follows a
// link only in place of the preferences file.
func TestHostileFilesDoNotBlock(t *testing.T) {
	t.Parallel()
	for _, suffix := range []string{"", ".lock", ".tmp"} {
		for name, plant := range hostile {
			t.Run(name+suffix, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				s := store{path: filepath.Join(dir, "preferences.json")}
				foreign := filepath.Join(dir, "foreign")
				check(t, os.WriteFile(foreign, []byte(`{}`), 0o600))
				if err := plant(s.path+suffix, foreign); err != nil {
					if runtime.GOOS == "linux" {
						t.Fatal(err)
					}
					t.Skip(err) // not supported by the file system
				}
				done := make(chan error, 1)
				go func() {
					_, _, err := s.getString(t.Context(), "bus-agent.runtime")
					done <- errors.Join(err, s.setString(t.Context(), "bus-agent.runtime", "one"))
				}()
				select {
				case err := <-done:
					irregular := name == "named pipe" || name == "directory" || name == "device link" && suffix != ".tmp" || name == "link" && suffix == ".lock"
					if suffix == ".tmp" {
						irregular = name == "directory" // the others are replaced
					}
					if irregular && (err == nil || !strings.Contains(err.Error(), filepath.Base(s.path+suffix))) {
						t.Errorf("error %v", err)
					}
				case <-time.After(time.Minute):
					t.Fatal("blocked")
				}
				if text, err := os.ReadFile(foreign); err != nil || string(text) != `{}` && !(suffix == "" && name == "link") {
					t.Errorf("the foreign file is %q, %v", text, err)
				}
			})
		}
	}
}

func TestWaitForLockIsBounded(t *testing.T) {
	t.Parallel()
	s := store{path: filepath.Join(t.TempDir(), "preferences.json")}
	unlock, err := lock(t.Context(), s.path)
	check(t, err)
	defer unlock()
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		err := s.setString(t.Context(), "bus-agent.runtime", "one")
		if err == nil || !strings.Contains(err.Error(), s.path+".lock") || !strings.Contains(err.Error(), "end it and try again") || time.Since(begun) > 2*lockWait {
			t.Errorf("after %v: %v", time.Since(begun), err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.setString(ctx, "bus-agent.runtime", "one"); !errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "try again") {
			t.Errorf("with a context: %v", err)
		}
	})
}
