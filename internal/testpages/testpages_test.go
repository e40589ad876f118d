package testpages_test

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/internal/testpages"
)

// The commands of every page of the project are run by tests.
func TestEveryPageIsRun(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	var shown []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		name, _ := filepath.Rel(root, path)
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && strings.HasPrefix(entry.Name(), "."):
			return fs.SkipDir
		case entry.IsDir() || filepath.Ext(path) != ".md" || name == "docs/runtimes/rest.md":
			return nil
		}
		commands, err := testpages.Commands(path)
		if len(commands) > 0 {
			shown = append(shown, filepath.ToSlash(name))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	run := testpages.Pages()
	slices.Sort(run)
	slices.Sort(shown)
	if !slices.Equal(shown, run) {
		t.Errorf("these pages show commands: %q; tests run those of %q", shown, run)
	}
}
