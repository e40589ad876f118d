package verify_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/session/acp"
	"github.com/busdk/bus-agent/session/engine"
	"github.com/busdk/bus-agent/verify"
)

// names returns the names of all checks.
func names() (names []string) {
	for _, c := range verify.Checks() {
		names = append(names, c.Name)
	}
	return names
}

func TestChecksHaveUniqueNamesAndAPromise(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, c := range verify.Checks() {
		if c.Name == "" || strings.Trim(c.Name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" || seen[c.Name] {
			t.Errorf("the name %q is used twice or has other characters", c.Name)
		}
		if seen[c.Name] = true; !strings.HasSuffix(c.Promise, ".") {
			t.Errorf("the promise of %s is not a sentence: %q", c.Name, c.Promise)
		}
	}
}

func TestGoodRuntimeKeepsEveryPromise(t *testing.T) {
	t.Parallel()
	var begun, done []string
	o := stubOptions(t, stubRuntime())
	o.Begin = func(c verify.Check) { begun = append(begun, c.Name) }
	o.Done = func(r verify.Result) { done = append(done, r.Check) }
	report, err := verify.Run(t.Context(), stubTarget("keep"), o)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range report.Results {
		if r.Status != verify.Kept {
			t.Errorf("%s is %s: %s", r.Check, r.Status, r.Detail)
		}
	}
	if diff := cmp.Diff(names(), statuses(report, verify.Kept, verify.Broken, verify.Unsupported)); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	slices.Sort(begun)
	slices.Sort(done)
	if want := slices.Sorted(slices.Values(names())); !slices.Equal(begun, want) || !slices.Equal(done, want) {
		t.Errorf("begun %q, done %q", begun, done)
	}
	if report.Runtime != "stub" || report.Version != "1.2.3" || !strings.HasSuffix(report.Path, "verify-stub") {
		t.Errorf("report of %q %q at %q", report.Runtime, report.Version, report.Path)
	}
}

// What each broken stub must be found to break. Every check is in a list.
func TestEachBrokenPromiseIsFound(t *testing.T) {
	t.Parallel()
	http := []string{"http-400", "http-401", "http-403", "http-429", "http-500", "stream-cut"}
	broken := map[string][]string{
		"prompt":         {"prompt-dash", "prompt-slash", "prompt-at", "prompt-bang", "prompt-space", "prompt-1mb", "prompt-3mb"},
		"nul":            {"prompt-nul"},
		"prompt-run":     {"prompt-bang"},
		"attach-text":    {"attach-text"},
		"attach-files":   {"attach-files", "session-attach"},
		"agents-md":      {"agents-md", "agents-md-link"},
		"agents-md-root": {"agents-md-root", "agents-md-adjacent", "agents-md-replaced"},
		"agents-md-deep": {"agents-md-empty"},
		"agents-md-crlf": {"agents-md-crlf"},
		"agents-md-long": {"agents-md-long"},
		"replaced":       {"agents-md-replaced"},
		"schema":         {"schema"},
		"words":          {"schema"},
		"model":          {"model"},
		"effort":         {"effort"},
		"system-prompt":  {"system-prompt", "session-system-prompt"},
		"server":         {"mcp", "session-mcp"},
		"tools":          {"tools-allowed", "tools-denied", "session-tools-allowed", "session-tools-denied"},
		"verdict":        http,
		"kind":           {"http-401", "http-403", "http-429"},
		"empty":          {"empty-answer"},
		"tool-call":      {"tool-call"},
		"tool-id":        {"tool-call"},
		"usage":          {"usage"},
		"session":        {"resume", "continue"},
		"repeats-rules":  {"resume", "continue"},
		"access":         {"read-edit", "read-command", "write-outside", "tools-access"},
		"denies":         {"write-edit", "full-command", "cancel"},
		"gives-up":       {"read-edit", "read-command", "write-outside"},
		"silence":        {"timeout", "idle-timeout"},

		"runs-plants":       {"repo-runs-nothing", "session-runs-nothing"},
		"never-runs-plants": {"plants-fire"},
		"reads-links":       {"context-link"},
		"stops-at-fifo":     {"context-fifo"},

		"session-forgets":       {"session-turns", "session-resume"},
		"session-commands":      {"session-slash"},
		"session-loses":         {"session-steer"},
		"session-denies-end":    {"session-interrupt"},
		"session-leaves-tool":   {"session-interrupt"},
		"session-never-asks":    {"session-approval"},
		"session-runs-declined": {"session-approval"},
		"session-refuses":       {"session-approval"},
		"session-unsaved":       {"session-resume"},
		"leaves-file":           {"leaves-nothing"},
	}
	seen := []string{"prompt-limit", "attach-refused"} // see TestLimitThatIsNotEnforcedIsFound
	for breaks, want := range broken {
		seen = append(seen, want...)
		t.Run(breaks, func(t *testing.T) {
			t.Parallel()
			o := stubOptions(t, stubRuntime(), want...)
			if breaks == "session-leaves-tool" { // the check waits for a part of it
				o.Limit /= 3
			}
			report, err := verify.Run(t.Context(), stubTarget(breaks), o)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range report.Results {
				if r.Status != verify.Broken || r.Detail == "" {
					t.Errorf("%s is %s: %s", r.Check, r.Status, r.Detail)
				}
				t.Logf("%s: %s", r.Check, r.Detail)
			}
			if len(report.Results) != len(want) || len(report.Broken()) != len(want) {
				t.Errorf("%d results, %d broken, want %d", len(report.Results), len(report.Broken()), len(want))
			}
		})
	}
	for _, name := range names() {
		if !slices.Contains(seen, name) {
			t.Errorf("no stub breaks %s", name)
		}
	}
}

func TestLimitThatIsNotEnforcedIsFound(t *testing.T) {
	t.Parallel()
	rt := stubRuntime()
	o := stubOptions(t, rt, "prompt-limit", "attach-refused")
	o.Begin = func(verify.Check) {
		rt.PromptLimit, rt.Run.Options.Attachments = registry.Limit{}, append(agent.ImageTypes(), agent.MediaPDF)
		if err := o.Registry.Replace(rt); err != nil {
			t.Error(err)
		}
	}
	report, err := verify.Run(t.Context(), stubTarget("keep"), o)
	if err != nil || len(report.Broken()) != 2 {
		t.Errorf("%v, %+v", err, report.Results)
	}
}

func TestKnownFailureIsShownAsKnown(t *testing.T) {
	t.Parallel()
	target := stubTarget("model")
	target.Known = map[string]string{"model": "it always uses another", "usage": "it counted wrong once"}
	report, err := verify.Run(t.Context(), target, stubOptions(t, stubRuntime(), "model", "usage"))
	if err != nil {
		t.Fatal(err)
	}
	known, kept := report.Results[0], report.Results[1]
	if known.Status != verify.KnownFailure || known.Detail == "" || known.Known == "" || len(report.Broken()) != 0 {
		t.Errorf("the known failure is %+v", known)
	}
	if kept.Status != verify.Kept || kept.Known == "" {
		t.Errorf("the repaired failure is %+v", kept)
	}
}

func TestMissingFeatureIsUnsupported(t *testing.T) {
	t.Parallel()
	rt := stubRuntime()
	rt.Run.Options = registry.Options{Access: []agent.Access{agent.AccessWrite}}
	rt.PromptLimit, rt.Instructions, rt.Run.Prepare, rt.Session = registry.Limit{Bytes: 2_000_000}, nil, nil, nil
	target := stubTarget("keep")
	target.Edit, target.Command = nil, nil
	report, err := verify.Run(t.Context(), target, stubOptions(t, rt))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"prompt-3mb", "attach-files", "agents-md", "agents-md-root", "agents-md-adjacent", "agents-md-replaced", "agents-md-link", "agents-md-empty", "agents-md-crlf", "agents-md-long", "model", "effort", "system-prompt", "tool-call", "mcp", "tools-allowed", "tools-denied", "tools-access", "resume", "continue",
		"read-edit", "read-command", "write-edit", "write-outside", "full-command",
		"session-turns", "session-slash", "session-system-prompt", "session-mcp", "session-tools-allowed", "session-tools-denied", "session-steer", "session-interrupt", "session-approval", "session-attach", "session-resume",
		"session-runs-nothing", "cancel",
	}
	if diff := cmp.Diff(want, statuses(report, verify.Unsupported)); diff != "" {
		t.Errorf("unsupported (-want +got):\n%s", diff)
	}
	for _, r := range report.Broken() {
		t.Errorf("%s: %s", r.Check, r.Detail)
	}
}

// A runtime without single runs is checked by sessions with one turn.
func TestSessionsReplaceRunsThatARuntimeLacks(t *testing.T) {
	t.Parallel()
	rt := stubRuntime()
	rt.Run = registry.Use{}
	rt.Session.Engine = func(registry.Invocation) engine.Engine { return &acp.Engine{ModelInArgs: true} }
	report, err := verify.Run(t.Context(), stubTarget("keep"), stubOptions(t, rt,
		"prompt-slash", "prompt-3mb", "agents-md", "agents-md-long", "model", "effort", "schema", "http-500", "resume", "continue",
		"full-command", "session-turns", "repo-runs-nothing", "timeout", "idle-timeout", "cancel", "leaves-nothing"))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range report.Broken() {
		t.Errorf("%s: %s", r.Check, r.Detail)
	}
	want := []string{"effort", "schema", "continue", "idle-timeout"}
	if diff := cmp.Diff(want, statuses(report, verify.Unsupported)); diff != "" {
		t.Errorf("unsupported (-want +got):\n%s", diff)
	}
	// Some agents end a turn with the tool call that was declined.
	for _, end := range []string{"ends-when-declined", "silent-when-declined"} {
		report, err = verify.Run(t.Context(), stubTarget(end), stubOptions(t, rt, "read-edit", "read-command", "session-approval"))
		if err != nil || len(statuses(report, verify.Kept)) != 3 {
			t.Errorf("%s: %v, %+v", end, err, report.Results)
		}
	}
	report, err = verify.Run(t.Context(), stubTarget("session-forgets"), stubOptions(t, rt, "resume"))
	if err != nil || len(report.Broken()) != 1 {
		t.Errorf("a session that forgets: %v, %+v", err, report.Results)
	}
}

func TestInvalidTargetIsAUsageError(t *testing.T) {
	t.Parallel()
	noModel, noRuntime, unknown := stubTarget("keep"), stubTarget("keep"), stubTarget("keep")
	noModel.Model, noRuntime.Runtime = "", "none"
	unknown.Known = map[string]string{"no-such-check": "because"}
	for name, target := range map[string]verify.Target{"no model": noModel, "no runtime": noRuntime, "unknown check": unknown} {
		o := stubOptions(t, stubRuntime())
		o.Begin = func(c verify.Check) { t.Errorf("%s: %s was begun", name, c.Name) }
		if _, err := verify.Run(t.Context(), target, o); !errors.Is(err, agent.ErrUsage) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := verify.Run(t.Context(), stubTarget("keep"), stubOptions(t, stubRuntime(), "no-such-check")); !errors.Is(err, agent.ErrUsage) {
		t.Errorf("unknown check: %v", err)
	}
}

func TestMissingCLIIsNotInstalled(t *testing.T) {
	t.Parallel()
	o := stubOptions(t, stubRuntime())
	o.Environ = []string{"PATH=" + t.TempDir()}
	if _, err := verify.Run(t.Context(), stubTarget("keep"), o); !errors.Is(err, agent.ErrNotInstalled) {
		t.Errorf("%v", err)
	}
}

func TestCanceledChecksAreNotBroken(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stop")
	o := stubOptions(t, stubRuntime(), "model", "timeout")
	o.Parallel = 1
	o.Begin = func(c verify.Check) {
		if c.Name == "timeout" {
			cancel(stop)
		}
	}
	report, err := verify.Run(ctx, stubTarget("keep"), o)
	if !errors.Is(err, stop) || len(report.Results) != 1 || report.Results[0].Check != "model" {
		t.Errorf("%v, %+v", err, report.Results)
	}
}

// Not parallel: it sets the folder for temporary files.
func TestRunRemovesItsFolders(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	if _, err := verify.Run(t.Context(), stubTarget("keep"), stubOptions(t, stubRuntime(), "model", "prompt-nul")); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}
