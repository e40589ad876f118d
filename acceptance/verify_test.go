//go:build acceptance

package acceptance

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	_ "github.com/busdk/bus-agent/backends/all"
	"github.com/busdk/bus-agent/verify"
	"github.com/busdk/bus-agent/verify/targets"
)

// toolServer returns the MCP server of the checks, which is in the program.
func toolServer() []string { return []string{busAgent, "__tool"} }

// The real CLIs keep every promise, except for the known failures of their targets.
func TestVerify(t *testing.T) {
	t.Parallel()
	path := []string{filepath.Dir(codex), filepath.Dir(claude), filepath.Dir(gemini), filepath.Dir(node), filepath.Dir(git), "/usr/bin", "/bin"}
	for _, target := range targets.All() {
		if !slices.Contains([]string{"claude", "codex", "gemini"}, target.Runtime) {
			continue // not installed, or it takes minutes
		}
		t.Run(target.Runtime, func(t *testing.T) {
			t.Parallel()
			report, err := verify.Run(t.Context(), target, verify.Options{
				Limit:      10 * time.Minute, // next to other tests
				ToolServer: toolServer(),
				Environ:    []string{"PATH=" + strings.Join(path, string(filepath.ListSeparator))},
				Done: func(r verify.Result) {
					t.Logf("%s %s after %.1f s: %s", r.Check, r.Status, r.Duration.Seconds(), r.Detail)
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range report.Broken() {
				t.Errorf("%s %s: %s: %s", report.Runtime, report.Version, r.Check, r.Detail)
			}
			have := report.Record(time.Now())
			have.Version = cmp.Or(have.Version, target.Verified.Version) // on a busy machine, --version takes too long
			if !have.Same(target.Verified) {
				t.Errorf("the results differ from those in verify/targets/verified.json; run make verified:\n%+v", have)
			}
			for _, r := range report.Results {
				if r.Known != "" && r.Status != verify.KnownFailure {
					t.Errorf("%s %s: %s is %s; remove it from the known failures", report.Runtime, report.Version, r.Check, r.Status)
				}
			}
		})
	}
}
