//go:build acceptance

package acceptance

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/busdk/bus-agent/modeltest"
)

// If a sandboxed agent replaces a folder of its record with a link, nothing is written to
// the target of the link.
func TestHostileAgentCannotRedirectItsRecord(t *testing.T) {
	t.Parallel()
	for name, folder := range map[string]string{
		"run": "$JRUN_RUN_FOLDER", "runs": "$JRUN_RUNS_DIR", "task": "$JRUN_TASK_FOLDER", "root": "{repo}/records",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			script := make(chan modeltest.Script, 1)
			w := newCodex(t, func(r *modeltest.Request) modeltest.Reply {
				next := <-script
				defer func() { script <- next }()
				return next(r)
			}, map[string]string{".gitignore": "/records*\n"})
			commands := filepath.Join(w.home, ".claude", "commands")
			writeFiles(t, commands, map[string]string{"output.md": "mine\n", "run-info.yaml": "mine\n", "TASK-MESSAGE-BUS.md": "mine\n"})
			folder := strings.ReplaceAll(folder, "{repo}", w.repo)
			attack := `mv "` + folder + `" "` + w.repo + `/records-moved" && ln -s "` + commands + `" "` + folder + `" && echo replaced`
			script <- modeltest.Replies(modeltest.Reply{execCommand(map[string]any{"cmd": attack})}, answer("ATTACKER TEXT"))
			before := listFiles(t, commands)
			r, o := w.run("hello", "--record", "--runs-root", filepath.Join(w.repo, "records", "runs"))
			w.wantAnswer("ATTACKER TEXT", r, o)
			if _, err := os.Lstat(filepath.Join(w.repo, "records-moved")); err != nil {
				t.Fatalf("the attack was not possible: %v\n%v", err, o)
			}
			if diff := cmp.Diff(before, listFiles(t, commands)); diff != "" {
				t.Errorf("target of the link (-before +after):\n%s", diff)
			}
			if !strings.Contains(o.stderr, "was moved or replaced during the run") {
				t.Errorf("no warning: %v", o)
			}
		})
	}
}
