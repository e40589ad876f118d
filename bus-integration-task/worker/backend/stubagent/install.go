package stubagent

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// markSuffix ends the name of the file that marks an executable as a stub.
const markSuffix = ".stub"

// Install makes dir and in it the executable name, for example codex. Its environment
// should have GORACE=atexit_sleep_ms=0: without it the race detector keeps each process
// for a second.
func Install(dir, name string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	path := filepath.Join(dir, name)
	if err := os.Symlink(self, path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return os.WriteFile(path+markSuffix, nil, 0o600)
}

// Play does not return if the program was started as a stub that [Install] made: it
// serves and exits. Otherwise it does nothing.
func Play() {
	if _, err := os.Stat(os.Args[0] + markSuffix); err != nil || !filepath.IsAbs(os.Args[0]) {
		return
	}
	if len(os.Args) > 1 && os.Args[1] == "--version" {
		_, _ = os.Stdout.WriteString("codex-cli 0.0.0-stub\n")
		os.Exit(0)
	}
	os.Exit(serve(os.Stdin, os.Stdout))
}
