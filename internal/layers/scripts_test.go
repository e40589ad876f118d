package layers

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Scripts that check the files of the repository fail where git lists none.
func TestScriptsFailWithoutFiles(t *testing.T) {
	t.Parallel()
	root := moduleRoot(t)
	for _, script := range []string{"check.sh", "fuzz.sh"} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.CopyFS(filepath.Join(dir, "scripts"), os.DirFS(filepath.Join(root, "scripts"))); err != nil {
				t.Fatal(err)
			}
			c := exec.CommandContext(t.Context(), filepath.Join(dir, "scripts", script), "argument", "another")
			temporary := t.TempDir()
			c.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir), "TMPDIR="+temporary)
			out, err := c.CombinedOutput()
			if _, gone := os.Stat(temporary); gone != nil {
				t.Errorf("removed the folder for temporary files: %v", gone)
			}
			if err == nil || !strings.HasPrefix(string(out), "no files ") || strings.Count(string(out), "\n") != 1 {
				t.Errorf("%v, %q", err, out)
			}
		})
	}
}

// Other lists of files are not checked for being empty.
func TestOnlyOneScriptListsFiles(t *testing.T) {
	t.Parallel()
	root := moduleRoot(t)
	scripts, err := filepath.Glob(filepath.Join(root, "scripts", "*.sh"))
	if err != nil || len(scripts) == 0 {
		t.Fatal("no scripts", err)
	}
	for _, file := range append(scripts, filepath.Join(root, "Makefile"), filepath.Join(root, ".ci", "run")) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, command := range []string{"git ls-files", "git grep", "find . "} {
			if filepath.Base(file) != "files.sh" && strings.Contains(string(text), command) {
				t.Errorf("%s uses %q; use scripts/files.sh", file, command)
			}
		}
	}
}
