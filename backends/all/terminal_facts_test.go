package all_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
)

// Each runtime says how its CLI is held in a terminal, and does as it says.
func TestTerminalsSayHowTheyWork(t *testing.T) {
	t.Parallel()
	for _, rt := range packaged() {
		terminal := rt.Terminal
		if terminal == nil {
			t.Errorf("%s has none", rt.ID)
			continue
		}
		if terminal.WarmUp <= 0 {
			t.Errorf("%s: %+v", rt.ID, terminal.Terminal)
		}
		req := registry.Invocation{Workdir: "/w", Root: "/w", Access: agent.AccessRead}
		fresh, err := terminal.Command(req)
		if err != nil {
			t.Fatal(err)
		}
		req.Resume = "id-1"
		resumed, err := terminal.Command(req)
		if err != nil {
			t.Fatal(err)
		}
		how := ""
		for i, arg := range resumed.Args {
			switch {
			case arg == "--resume=id-1":
				how = string(registry.ResumeFlag)
			case arg == "resume" && i+1 < len(resumed.Args) && resumed.Args[i+1] == "id-1":
				how = string(registry.ResumeSubcommand)
			}
		}
		if how != string(terminal.Resume) || slices.ContainsFunc(fresh.Args, func(arg string) bool { return strings.Contains(arg, "resume") }) {
			t.Errorf("%s resumes by %q, says %q: %q, else %q", rt.ID, how, terminal.Resume, resumed.Args, fresh.Args)
		}
		if resumed.Stdin != "" || slices.Contains(fresh.Args, "-p") || slices.Contains(fresh.Args, "exec") {
			t.Errorf("%s is not interactive: %q", rt.ID, fresh.Args)
		}
		// An approval request that takes Enter for a yes must not be answered by a dialog.
		for _, d := range terminal.Dialogs {
			for _, q := range terminal.Approvals {
				if strings.Contains(q.Contains, d.Contains) || strings.Contains(d.Contains, q.Contains) {
					t.Errorf("%s answers %q itself", rt.ID, q.Contains)
				}
			}
		}
	}
}
