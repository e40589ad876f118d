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

// offlineModule is a Node.js module that makes all name lookups fail, because with
// --bare the telemetry of Qwen Code cannot be turned off.
const offlineModule = `const dns = require("node:dns");
dns.lookup = (host, ...rest) => {
	const error = Object.assign(new Error("offline: " + host), {code: "ENOTFOUND"});
	process.nextTick(rest[rest.length - 1], error);
};
`

// newDescribed returns a fixture for Qwen Code with a key. The runtime has no backend,
// only the definition in docs/adding-a-runtime.md.
func newDescribed(t *testing.T, script modeltest.Script, files map[string]string) *fixture {
	t.Helper()
	w := newCodex(t, script, files)
	w.agent, w.modelID = "qwen-bare", "qwen3-coder-plus"
	offline := filepath.Join(filepath.Dir(w.home), "offline.cjs")
	w.env = []string{
		"OPENAI_BASE_URL=" + w.model.OpenAIURL(),
		"OPENAI_API_KEY=sk-acceptance",
		"NODE_OPTIONS=--require=" + offline,
	}
	writeFiles(t, filepath.Dir(offline), map[string]string{filepath.Base(offline): offlineModule})
	w.keptInHome = []string{".qwen"} // contains installation_id and the used tokens
	w.promptSuffix, w.answerSuffix = "\n\n", "\n"
	definition, err := os.ReadFile("testdata/qwen.json")
	if err != nil {
		t.Fatal(err)
	}
	w.mustExec(string(definition), "set", "runtime-definition", "qwen-bare", "-")
	return w
}

// mustExec runs bus-agent, which must succeed, and returns its standard output. It does
// not check what it leaves behind.
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

// execQwen runs Qwen Code in the repository, without bus-agent.
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
