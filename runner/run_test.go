package runner_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/formatters"
	"github.com/busdk/bus-agent/registry"
	"github.com/google/go-cmp/cmp"
)

func TestRunVerdict(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script []string
		kind   error
		text   string // in the error
		answer string
	}{
		"success":                       {script: []string{"say text:hello", "say ok:"}, answer: "hello"},
		"exit 0 without a result":       {script: []string{"say text:hello"}, kind: agent.ErrAgent, text: "without a result", answer: "hello"},
		"exit 0 with a failed result":   {script: []string{"say failed: no luck"}, kind: agent.ErrAgent, text: "no luck"},
		"exit 3 after success":          {script: []string{"say ok:", "exit 3"}, kind: agent.ErrAgent, text: "exit code 3"},
		"exit 41 that means a login":    {script: []string{"exit 41"}, kind: agent.ErrAuthentication, text: "exit code 41"},
		"quota":                         {script: []string{"say failed:quota used up", "exit 1"}, kind: agent.ErrQuota, text: "exit code 1: used up"},
		"authentication":                {script: []string{"say failed:authentication log in", "exit 1"}, kind: agent.ErrAuthentication, text: "log in"},
		"refused login ends it at once": {script: []string{"say retry:authentication", "hang"}, kind: agent.ErrAuthentication, text: "alpha: retrying; the agent was ended"},
		"retries are not a failure":     {script: []string{"say retry:quota", "say text:hello", "say ok:"}, answer: "hello"},
		"the last result counts":        {script: []string{"say failed: first", "say text:hello", "say ok:"}, answer: "hello"},
		"a quota that came back":        {script: []string{"say retry:quota", "say text:hello", "say failed: boom"}, kind: agent.ErrAgent, text: "boom", answer: "hello"},
		"a long reason is cut":          {script: []string{"say failed: " + strings.Repeat("long ", 2000) + "end"}, kind: agent.ErrAgent, text: "long lo"},
		"failed last":                   {script: []string{"say text:hello", "say ok:", "say failed: then this"}, kind: agent.ErrAgent, text: "then this", answer: "hello"},
		"last line without a break":     {script: []string{"say text:hello", "part ok:"}, answer: "hello"},
		"standard error has no effect":  {script: []string{"stderr FATAL ERROR", "say text:hello", "say ok:"}, answer: "hello"},

		"an answer that is a failure": {script: []string{"say text:Please log in.", "say ok:"}, kind: agent.ErrAuthentication, text: "Please log in.", answer: "Please log in."},
		"a reason that means a quota": {script: []string{"say failed: no credits", "exit 1"}, kind: agent.ErrQuota, text: "no credits"},
		"stderr that means a quota":   {script: []string{"stderr no credits", "exit 1"}, kind: agent.ErrQuota, text: "exit code 1"},

		"last message":             {script: []string{"say text:one", "say text:two", "say ok:"}, answer: "two"},
		"deltas are one message":   {script: []string{"say text:one", "say delta:tw", "say delta:o", "say ok:"}, answer: "two"},
		"after the last tool call": {script: []string{"say text:one", "say tool:x", "say delta:tw", "say tool:x", "say delta:three", "say ok:"}, answer: "three"},
		"nothing after a file":     {script: []string{"say text:one", "say file:x", "say ok:"}, answer: ""},
		"nothing after a tool":     {script: []string{"say text:one", "say tool:x", "say ok:"}, answer: ""},
		"repeated in the result":   {script: []string{"say tool:x", "say ok:the answer"}, answer: "the answer"},
		"not a subagent's":         {script: []string{"say text:one", "say subagent:two", "say ok:"}, answer: "one"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, "alpha")
			result, err := b.Run(t.Context(), b.request(c.script...), agent.Output{})
			if result.Text != c.answer {
				t.Errorf("text = %q, want %q", result.Text, c.answer)
			}
			if c.kind == nil {
				if err != nil || result.ExitCode != 0 {
					t.Errorf("Run = %d, %v, want success", result.ExitCode, err)
				}
				return
			}
			if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.text) || len(err.Error()) > 5000 {
				t.Errorf("Run = %v, want kind %v and text %q", err, c.kind, c.text)
			}
		})
	}
}

func TestRunThatIsSilent(t *testing.T) {
	t.Parallel()
	for script, failed := range map[string]bool{
		"say ok:":                             true,
		"say thinking:hm\nsay ok:":            true,
		"say text: \nsay ok:":                 true,
		"say tool:x\nsay ok:":                 false,
		"say text:one\nsay tool:x\nsay ok:":   false,
		"say text: \nsay ok:\nsay failed: no": true,
	} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, "alpha")
			rt := fakeRuntime("alpha")
			rt.AnswerFailure = func(answer string) (agent.Failure, bool) { return "", strings.TrimSpace(answer) == "" }
			if err := b.Registry.Replace(rt); err != nil {
				t.Fatal(err)
			}
			_, err := b.Run(t.Context(), b.request(script), agent.Output{})
			if (err != nil) != failed || failed && !strings.HasSuffix(err.Error(), ": the agent ended without an answer") && !strings.HasSuffix(err.Error(), "no") {
				t.Errorf("Run = %v, want a failure: %v", err, failed)
			}
		})
	}
}

func TestRunStartsTheAgentAsSettled(t *testing.T) {
	t.Parallel()
	b := newBench(t, "alpha", "beta")
	b.Environ = append(b.Environ, "BUS_AGENT_MODEL=m1", "BUS_AGENT_TIMEOUT=1m")
	req := b.request("argv", "env FAKE_SET", "env FAKE_GONE", "env MINE", "dir", "stdin", "say ok:")
	req.Runtime = "beta:local"
	req.ReasoningEffort = agent.EffortLow
	req.Args = []string{"--own", "arg with space"}
	req.Env = append(req.Env, "MINE=1", "FAKE_SET=by caller")
	req.Prompt, req.Template, req.Vars = "", "line one\n{{WHAT}}", map[string]string{"WHAT": "{{x}}"}
	var started agent.Start
	out := agent.Output{Started: func(s agent.Start) { started = s }}
	var said []string
	out.Events = func(e *agent.Event) error {
		if e.Kind == agent.KindText {
			said = append(said, strings.Clone(e.Text))
		}
		return nil
	}
	result, err := b.Run(t.Context(), req, out)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := filepath.EvalSymlinks(b.dir)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"--model=m1|--effort=low|--variant=local|--own|arg with space",
		"FAKE_SET=by caller true", "FAKE_GONE= false", "MINE=1 true", dir,
		"line one⏎{{x}}",
	}
	if diff := cmp.Diff(want, said); diff != "" {
		t.Error(diff)
	}
	if started.Runtime != "beta:local" || started.Model != "m1" || result.Runtime != "beta:local" || result.Model != "m1" {
		t.Errorf("started %+v, result %s %s; want beta:local and m1", started, result.Runtime, result.Model)
	}
}

func TestRunReportsEvents(t *testing.T) {
	t.Parallel()
	b := newBench(t, "alpha")
	req := b.request("say session:s-1 model-9", "say usage:7", "say text:hi", "stderr noise", "stderr note", "say ok:")
	var stdout, stderr, text bytes.Buffer
	var out agent.Output
	out.Stdout, out.Stderr, out.Text = &stdout, &stderr, &text
	result, err := b.Run(t.Context(), req, out)
	if err != nil {
		t.Fatal(err)
	}
	if result.SessionID != "s-1" || result.Model != "model-9" || result.Usage == nil || result.Usage.Input != 7 {
		t.Errorf("result = %+v", result)
	}
	if result.Usage != nil && result.Usage.Cumulative {
		t.Error("the usage of a fresh session is called cumulative")
	}
	raw := "session:s-1 model-9\nusage:7\ntext:hi\nok:\n"
	if stdout.String() != raw || result.Stdout.String() != raw {
		t.Errorf("raw output = %q, captured %q, want %q", stdout.String(), result.Stdout.String(), raw)
	}
	if stderr.String() != "noise\nnote\n" || result.Stderr.String() != "noise\nnote\n" {
		t.Errorf("stderr = %q, captured %q", stderr.String(), result.Stderr.String())
	}
	if !strings.Contains(text.String(), "hi\n") {
		t.Errorf("text = %q", text.String())
	}

	req = b.request("say usage:7", "say ok:")
	req.Resume = "s-1"
	if result, err = b.Run(t.Context(), req, out); err != nil || result.Usage == nil || !result.Usage.Cumulative {
		t.Errorf("resumed: %+v, %v, want cumulative usage", result.Usage, err)
	}
}

func TestRunRawFormatterPassesLinesThrough(t *testing.T) {
	t.Parallel()
	b := newBench(t, "alpha")
	req := b.request("say text:hi", "say ok:")
	var text bytes.Buffer
	var out agent.Output
	out.Text, out.Formatter = &text, formatters.Raw
	if _, err := b.Run(t.Context(), req, out); err != nil || text.String() != "text:hi\nok:\n" {
		t.Errorf("text = %q, %v", text.String(), err)
	}
}

func TestRunFailureCarriesExitAndStderr(t *testing.T) {
	t.Parallel()
	b := newBench(t, "alpha")
	result, err := b.Run(t.Context(), b.request("stderr noise", "stderr key sk-very-secret refused", "exit 7"), agent.Output{})
	var exit *agent.ExitError
	if !errors.As(err, &exit) || exit.Code != 7 || result.ExitCode != 7 {
		t.Fatalf("Run = %d, %v, want exit code 7", result.ExitCode, err)
	}
	if exit.Stderr != "key *** refused" {
		t.Errorf("stderr tail = %q, want it masked and without noise", exit.Stderr)
	}
}

// timeouts set one of the limits of a request.
var timeouts = []func(*agent.Request, time.Duration){
	func(r *agent.Request, d time.Duration) { r.Timeout = d },
	func(r *agent.Request, d time.Duration) { r.IdleTimeout = d },
}

// runIntoLimit runs a request whose agent hangs after a number of events. A run that reaches
// its limit earlier, which also is one that does not end as wanted (nil is any end), is
// repeated with a longer one.
func (b *bench) runIntoLimit(t *testing.T, req agent.Request, events int, set func(*agent.Request, time.Duration), wanted func(error) bool) (agent.Result, error) {
	t.Helper()
	for limit := 100 * time.Millisecond; ; limit *= 2 {
		seen := 0
		set(&req, limit)
		result, err := b.Run(t.Context(), req, agent.Output{Events: func(*agent.Event) error { seen++; return nil }})
		if seen == events && (wanted == nil || wanted(err)) {
			return result, err
		}
		if seen > events || limit > time.Minute {
			t.Fatalf("%d events within %v, want %d: %v", seen, limit, events, err)
		}
	}
}

func TestRunEndings(t *testing.T) {
	t.Parallel()
	t.Run("timeout", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, "alpha")
		req := b.request("say text:hi", "hang")
		result, err := b.runIntoLimit(t, req, 1, timeouts[0], nil)
		if !errors.Is(err, agent.ErrTimeout) || errors.Is(err, agent.ErrCanceled) || result.Text != "hi" {
			t.Errorf("Run = %q, %v, want timeout and the text so far", result.Text, err)
		}
	})
	t.Run("idle timeout is not reset by heartbeats and retries", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, "alpha")
		req := b.request("say text:hi", "many 1000", "say retry:", "hang")
		req.IdleTimeout = 200 * time.Millisecond
		if _, err := b.Run(t.Context(), req, agent.Output{}); !errors.Is(err, agent.ErrIdleTimeout) {
			t.Errorf("Run = %v, want idle timeout", err)
		}
	})
	t.Run("idle timeout of the runtime", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, "alpha")
		rt, _ := b.Registry.Lookup("alpha")
		rt.Run.Options.IdleTimeout = true
		b.Registry = new(registry.Registry)
		if err := b.Registry.Register(rt); err != nil {
			t.Fatal(err)
		}
		req := b.request("say text:hi", "hang")
		req.IdleTimeout, req.Timeout = time.Millisecond, 200*time.Millisecond
		if _, err := b.Run(t.Context(), req, agent.Output{}); !errors.Is(err, agent.ErrTimeout) {
			t.Errorf("Run = %v, want a timeout: the runtime watches the idle time", err)
		}
		_, err := b.Run(t.Context(), b.request("say failed:idle_timeout the server is silent"), agent.Output{})
		if !errors.Is(err, agent.ErrIdleTimeout) || !strings.Contains(err.Error(), "the server is silent") {
			t.Errorf("Run = %v, want the idle timeout that the agent reported", err)
		}
	})
	t.Run("a timeout names the last failure", func(t *testing.T) {
		t.Parallel()
		for _, c := range []struct {
			steps []string
			want  string
		}{
			{[]string{"say text:hi", "say retry:quota"}, "; the agent was ended; last failure: retrying"},
			{[]string{"say retry:quota", "say text:hi"}, "; the agent was ended"},
		} {
			for _, limit := range timeouts {
				b := newBench(t, "alpha")
				req := b.request(append(c.steps, "hang")...)
				if _, err := b.runIntoLimit(t, req, len(c.steps), limit, nil); err == nil || !strings.HasSuffix(err.Error(), c.want) {
					t.Errorf("%q: Run = %v, want %q at the end", c.steps, err, c.want)
				}
			}
		}
	})
	t.Run("cancel", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, "alpha")
		req := b.request("say text:hi", "hang")
		ctx, cancel := context.WithCancel(t.Context())
		out := agent.Output{Events: func(*agent.Event) error { cancel(); return nil }}
		if _, err := b.Run(ctx, req, out); !errors.Is(err, agent.ErrCanceled) || !errors.Is(err, context.Canceled) {
			t.Errorf("Run = %v, want canceled", err)
		}
	})
	t.Run("canceled before the start", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, "alpha")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		req := b.request("say ok:")
		out := agent.Output{Started: func(agent.Start) { t.Error("started") }}
		if _, err := b.Run(ctx, req, out); !errors.Is(err, agent.ErrCanceled) {
			t.Errorf("Run = %v, want canceled", err)
		}
	})
	t.Run("deadline of the context", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, "alpha")
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		if _, err := b.Run(ctx, b.request("hang"), agent.Output{}); !errors.Is(err, agent.ErrTimeout) {
			t.Errorf("Run = %v, want timeout", err)
		}
	})
	t.Run("result without exit", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, "alpha")
		b.SetResultSilence(100 * time.Millisecond)
		result, err := b.Run(t.Context(), b.request("say text:hi", "say ok:", "hang"), agent.Output{})
		if err != nil || result.Text != "hi" || result.ExitCode != 0 || len(result.Warnings) != 1 {
			t.Errorf("Run = %+v, %v, want success with a warning", result, err)
		}
	})
	t.Run("result without exit until the timeout", func(t *testing.T) {
		t.Parallel()
		succeeds := func(err error) bool { return err == nil }
		for _, limit := range timeouts {
			b := newBench(t, "alpha")
			b.SetResultSilence(time.Hour)
			req := b.request("say text:hi", "say ok:", "hang")
			if result, err := b.runIntoLimit(t, req, 2, limit, succeeds); err != nil || result.Text != "hi" || len(result.Warnings) != 1 {
				t.Errorf("Run = %+v, %v, want success with a warning", result, err)
			}
		}
	})
	t.Run("result without exit, but a task is open", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, "alpha")
		b.SetResultSilence(100 * time.Millisecond)
		req := b.request("say open:x", "say ok:", "hang")
		req.Timeout = time.Second
		if _, err := b.Run(t.Context(), req, agent.Output{}); !errors.Is(err, agent.ErrTimeout) {
			t.Errorf("Run = %v, want timeout", err)
		}
	})
	t.Run("consumer fails", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, "alpha")
		req := b.request("say text:hi", "hang")
		broken := errors.New("disk full")
		out := agent.Output{Events: func(*agent.Event) error { return broken }}
		if _, err := b.Run(t.Context(), req, out); !errors.Is(err, agent.ErrCanceled) || !errors.Is(err, broken) {
			t.Errorf("Run = %v, want the consumer's error", err)
		}
	})
}

func TestRunRefusesBeforeStart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*agent.Request)
		text   string
	}{
		"MCP servers refused":       {func(r *agent.Request) { r.MCPServers = []agent.MCPServer{{Name: "a", Command: "/a"}} }, "cannot be given MCP servers"},
		"a blank system prompt":     {func(r *agent.Request) { r.AppendSystemPrompt = " \n" }, "system prompt is empty"},
		"a long system prompt":      {func(r *agent.Request) { r.AppendSystemPrompt = strings.Repeat("x", agent.MaxSystemPrompt+1) }, "its limit is"},
		"a system prompt with NUL":  {func(r *agent.Request) { r.AppendSystemPrompt = "a\x00b" }, "control character"},
		"a system prompt not UTF-8": {func(r *agent.Request) { r.AppendSystemPrompt = "\xff" }, "not valid UTF-8"},
		"a system prompt refused":   {func(r *agent.Request) { r.AppendSystemPrompt = "be brief" }, "cannot be given an additional system prompt"},
		"allowed tools refused":     {func(r *agent.Request) { r.AllowTools = []string{"Read"} }, "cannot limit the tools of its model"},
		"denied tools refused":      {func(r *agent.Request) { r.DenyTools = []string{"Read"} }, "cannot leave out single tools"},
		"both lists of tools":       {func(r *agent.Request) { r.AllowTools, r.DenyTools = []string{"a"}, []string{"b"} }, "both allowed and denied tools"},
		"a tool twice":              {func(r *agent.Request) { r.DenyTools = []string{"a", "b", "a"} }, "tool a is given twice"},
		"too many tools":            {func(r *agent.Request) { r.AllowTools = make([]string, agent.MaxTools+1) }, "more than the 64"},
		"a long name of a tool":     {func(r *agent.Request) { r.AllowTools = []string{strings.Repeat("x", agent.MaxToolName+1)} }, "is not the name of a tool"},
		"a tool without a name":     {func(r *agent.Request) { r.DenyTools = []string{""} }, "is not the name of a tool"},
		"a tool like an option":     {func(r *agent.Request) { r.DenyTools = []string{"-x"} }, "is not the name of a tool"},
		"a pattern of tools":        {func(r *agent.Request) { r.DenyTools = []string{"mcp__*"} }, "is not the name of a tool"},
		"a list as a tool":          {func(r *agent.Request) { r.AllowTools = []string{"Read,Bash"} }, "is not the name of a tool"},
		"a rule as a tool":          {func(r *agent.Request) { r.AllowTools = []string{"Bash(ls)"} }, "is not the name of a tool"},
		"a tool with a line end":    {func(r *agent.Request) { r.AllowTools = []string{"Read\n"} }, "is not the name of a tool"},
		"no prompt":                 {func(r *agent.Request) { r.Prompt = " \n" }, "prompt is empty"},
		"prompt and template":       {func(r *agent.Request) { r.Template = "x" }, "both"},
		"values, no template":       {func(r *agent.Request) { r.Vars = map[string]string{"X": "1"} }, "Request.Vars"},
		"unresolved template":       {func(r *agent.Request) { r.Prompt, r.Template = "", "{{X}}" }, "X"},
		"prompt not UTF-8":          {func(r *agent.Request) { r.Prompt = "\xff" }, "UTF-8"},
		"prompt too long":           {func(r *agent.Request) { r.Prompt = strings.Repeat("x", 100_001) }, "100000"},
		"workdir missing":           {func(r *agent.Request) { r.Workdir = filepath.Join(r.Workdir, "none") }, "none"},
		"workdir is a file":         {func(r *agent.Request) { r.Workdir, _ = os.Executable() }, "not a directory"},
		"added dir missing":         {func(r *agent.Request) { r.AddDirs = []string{"/no/such"} }, "/no/such"},
		"cannot add dirs":           {func(r *agent.Request) { r.AddDirs = []string{r.Workdir} }, "further directories"},
		"cannot continue":           {func(r *agent.Request) { r.Continue = true }, "continue"},
		"resume and continue":       {func(r *agent.Request) { r.Continue, r.Resume = true, "x" }, "choose one"},
		"cannot limit turns":        {func(r *agent.Request) { r.MaxTurns = 1 }, "turns"},
		"negative turns":            {func(r *agent.Request) { r.MaxTurns = -1 }, "negative"},
		"cannot allow":              {func(r *agent.Request) { r.AllowCommands = []string{"ls"} }, "allow"},
		"unknown access":            {func(r *agent.Request) { r.Access = "root" }, "root"},
		"bad env":                   {func(r *agent.Request) { r.Env = append(r.Env, "novalue") }, "novalue"},
		"mark of the run":           {func(r *agent.Request) { r.Env = append(r.Env, "BUS_AGENT_RUN=x") }, "BUS_AGENT_RUN is set by bus-agent"},
		"blank model":               {func(r *agent.Request) { r.Model = " " }, "model is empty"},
		"model not UTF-8":           {func(r *agent.Request) { r.Model = "a\xff" }, "not printable"},
		"unknown effort":            {func(r *agent.Request) { r.ReasoningEffort = "banana" }, "banana"},
		"required, missing":         {func(r *agent.Request) { r.RequireInstructions = true }, "AGENTS.md"},
		"session like a flag":       {func(r *agent.Request) { r.Resume = "--yolo" }, "--yolo"},
		"model like a flag":         {func(r *agent.Request) { r.Model = "--yolo" }, "--yolo"},
		"NUL in an argument":        {func(r *agent.Request) { r.Args = []string{"a\x00b"} }, "NUL"},
		"negative idle":             {func(r *agent.Request) { r.IdleTimeout = -1 }, "negative"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, "alpha")
			req := b.request("say ok:")
			c.change(&req)
			out := agent.Output{Started: func(agent.Start) { t.Error("started") }}
			_, err := b.Run(t.Context(), req, out)
			if !errors.Is(err, agent.ErrUsage) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("Run = %v, want a usage error with %q", err, c.text)
			}
			if entries, _ := os.ReadDir(b.dir); len(entries) != 0 {
				t.Errorf("written: %v", entries)
			}
		})
	}
}

func TestRunWarnsOfWhatItLeavesOut(t *testing.T) {
	t.Parallel()
	b := newBench(t, "alpha")
	if err := os.WriteFile(filepath.Join(b.dir, "AGENTS.md"), []byte("be brief"), 0o644); err != nil {
		t.Fatal(err)
	}
	req := b.request("argv", "say ok:")
	req.ReasoningEffort, req.Verbosity = agent.EffortHigh, agent.VerbosityLow
	result, err := b.Run(t.Context(), req, agent.Output{})
	if err != nil || len(result.Warnings) != 3 {
		t.Errorf("warnings = %q, %v, want effort, verbosity and AGENTS.md", result.Warnings, err)
	}
	if diff := cmp.Diff(result.Warnings, b.warnings); diff != "" {
		t.Error(diff)
	}
	b.Environ = append(b.Environ, "BUS_AGENT_MODEL_VERBOSITY=low")
	if err := os.Remove(filepath.Join(b.dir, "AGENTS.md")); err != nil {
		t.Fatal(err)
	}
	if result, err = b.Run(t.Context(), b.request("say ok:"), agent.Output{}); err != nil || len(result.Warnings) != 0 {
		t.Errorf("warnings of defaults = %q, %v, want none", result.Warnings, err)
	}
}

func TestRunLeavesNoTemporaryFiles(t *testing.T) {
	t.Parallel()
	b := newBench(t, "alpha")
	var tmp string
	req := b.request("env TMPDIR", "stray", "say ok:")
	result, err := b.Run(t.Context(), req, agent.Output{})
	if err != nil {
		t.Fatal(err)
	}
	tmp = strings.TrimSuffix(strings.TrimPrefix(result.Text, "TMPDIR="), " true")
	if !strings.Contains(tmp, "bus-agent-") {
		t.Fatalf("TMPDIR = %q, want one of the run's own", tmp)
	}
	if _, err := os.Stat(tmp); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is left: %v", tmp, err)
	}
}

func TestPlanStartsNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t, "alpha")
	plan, err := b.DryRun(t.Context(), b.request("say ok:"))
	if err != nil {
		t.Fatal(err)
	}
	if plan.Selection.Token != "alpha" || plan.Start.Path != filepath.Join(b.path, "alpha") {
		t.Errorf("plan = %+v", plan)
	}
	if diff := cmp.Diff([]string{"BUS_AGENT_RUN", "FAKE_AGENT", "FAKE_GONE", "FAKE_SET", "PWD", "TMPDIR"}, plan.Env); diff != "" {
		t.Error(diff)
	}
	for _, dir := range []string{b.dir, func() string { v, _ := agent.LookupEnv(b.Environ, "TMPDIR"); return v }()} {
		if entries, _ := os.ReadDir(dir); len(entries) != 0 {
			t.Errorf("a plan wrote %v", entries)
		}
	}
}

func TestRunBoundsWhatItKeeps(t *testing.T) {
	t.Parallel()
	b := newBench(t, "alpha")
	req := b.request("many 5000", "say ok:")
	req.CaptureLimit = 100
	var stdout bytes.Buffer
	out := agent.Output{Stdout: &stdout}
	result, err := b.Run(t.Context(), req, out)
	if err != nil {
		t.Fatal(err)
	}
	whole := stdout.String()
	c := result.Stdout
	if !c.Truncated || c.Size != int64(len(whole)) || string(c.Head) != whole[:100] || string(c.Tail) != whole[len(whole)-100:] {
		t.Errorf("kept %d+%d of %d, truncated %t", len(c.Head), len(c.Tail), c.Size, c.Truncated)
	}
	if n := strings.Count(whole, "\n"); n != 5001 {
		t.Errorf("%d lines, want 5001", n)
	}
}
