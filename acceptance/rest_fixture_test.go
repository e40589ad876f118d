//go:build acceptance

package acceptance

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/busdk/bus-agent/modeltest"
)

// restPrograms is a folder with a bus-agent built with the tag rest, and with
// bin/bus-agent-rest. They are built by the first test that needs them.
var restPrograms struct {
	sync.Once
	dir string
	err error
}

func buildREST() (dir string, err error) {
	r := &restPrograms
	r.Do(func() {
		if r.dir, r.err = os.MkdirTemp("", "bus-agent-rest-"); r.err != nil {
			return
		}
		for _, args := range [][]string{
			{"build", "-tags", "urfave_cli_no_docs,rest", "-o", filepath.Join(r.dir, "bus-agent"), "../cmd/bus-agent"},
			{"build", "-C", "../bus-agent-rest", "-o", filepath.Join(r.dir, "bin", "bus-agent-rest"), "."},
		} {
			if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
				r.err = fmt.Errorf("%w\n%s", err, out)
				return
			}
		}
	})
	return r.dir, r.err
}

func removeREST() {
	if restPrograms.dir != "" {
		_ = os.RemoveAll(restPrograms.dir)
	}
}

// newREST returns a fixture for the runtime openai with a key.
func newREST(t *testing.T, script modeltest.Script, files map[string]string) *fixture {
	t.Helper()
	programs, err := buildREST()
	if err != nil {
		t.Fatal(err)
	}
	w := newCodex(t, script, files)
	w.program = filepath.Join(programs, "bus-agent")
	w.agent, w.modelID = "openai", "qwen3:0.6b"
	w.env = []string{
		"PATH=" + strings.Join([]string{filepath.Join(programs, "bin"), "/usr/bin", "/bin"}, string(os.PathListSeparator)),
		"OPENAI_BASE_URL=" + w.model.OpenAIURL(),
		"OPENAI_API_KEY=sk-acceptance",
	}
	return w
}
