//go:build acceptance

package acceptance

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/busdk/bus-agent/modeltest"
)

// The CLI adds files that AGENTS.md names with "@" to the prompt. It must not follow a
// link out of the repository.
func TestDescribedRuntimeReadsNothingThroughALink(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ file, text string }{
		"named in AGENTS.md":  {"AGENTS.md", "Rules.\n\nsee @notes.txt now\n"},
		"outside":             {"AGENTS.md", "Rules.\n\nsee @../secret.txt now\n"},
		"an ignore file":      {".qwenignore", ""},
		"AGENTS.md is a link": {"AGENTS.md", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newDescribed(t, modeltest.Always(answer("ok")), map[string]string{"x": "x\n"})
			secret := filepath.Join(filepath.Dir(w.repo), "secret.txt")
			if err := os.WriteFile(secret, []byte("SECRET-OUTSIDE\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			link := filepath.Join(w.repo, "notes.txt")
			if c.text == "" {
				link = filepath.Join(w.repo, c.file)
			}
			if err := os.Symlink(secret, link); err != nil {
				t.Fatal(err)
			}
			if c.text != "" {
				w.plant(map[string]string{c.file: c.text}, ".")
			}
			w.exec("hello", "run", "--agent", "qwen-bare", "--model", w.modelID, "--workdir", w.repo, "--prompt", "-")
			for _, request := range w.model.Requests() {
				if n := request.Count("SECRET-OUTSIDE"); n != 0 {
					t.Errorf("a file outside the repository occurs %d times", n)
				}
			}
		})
	}
}
