//go:build acceptance

package acceptance

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/modeltest"
)

// offlineModule keeps a program of Node.js from every host that has a name:
// Qwen Code reports to its setupFunc, which --bare leaves no way to switch off.
const offlineModule = `const dns = require("node:dns");
dns.lookup = (host, ...rest) => {
	const error = Object.assign(new Error("offline: " + host), {code: "ENOTFOUND"});
	process.nextTick(rest[rest.length - 1], error);
};
`

// newDescribed makes a world in which run runs Qwen Code, by key. bus-agent has
// no code for it: all it knows of it is what docs/adding-a-runtime.md shows.
func newDescribed(t *testing.T, script modeltest.Script, files map[string]string) *fixture {
	t.Helper()
	w := newCodex(t, script, files)
	w.agent, w.modelID = "qwen", "qwen3-coder-plus"
	offline := filepath.Join(filepath.Dir(w.home), "offline.cjs")
	w.env = []string{
		"OPENAI_BASE_URL=" + w.model.OpenAIURL(),
		"OPENAI_API_KEY=sk-acceptance",
		"NODE_OPTIONS=--require=" + offline,
	}
	writeFiles(t, filepath.Dir(offline), map[string]string{filepath.Base(offline): offlineModule})
	w.keptInHome = []string{".qwen"} // holds installation_id
	w.promptSuffix, w.answerSuffix = "\n\n", "\n"
	definition, err := os.ReadFile("testdata/qwen.json")
	if err != nil {
		t.Fatal(err)
	}
	w.mustExec(string(definition), "set", "runtime-definition", "qwen", "-")
	return w
}

// do runs a command of bus-agent that must succeed and returns its standard
// output.
func (w *fixture) mustExec(stdin string, args ...string) string {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), w.limit)
	defer cancel()
	cmd, stdout, stderr := w.start(ctx, stdin, args...)
	if err := cmd.Wait(); err != nil {
		w.t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, stderr)
	}
	return stdout.String()
}

// alone runs Qwen Code itself in the repository, without bus-agent.
func (w *fixture) execQwen(prompt string, args ...string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), w.limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, qwen, args...)
	cmd.Dir, cmd.Stdin = w.repo, strings.NewReader(prompt)
	cmd.Env = append(w.environ(), "QWEN_CODE_NO_RELAUNCH=true")
	out, err := cmd.CombinedOutput()
	w.t.Logf("%v\n%s", err, clip(string(out)))
}
