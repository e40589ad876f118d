package backendtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/formatters"
	"github.com/busdk/bus-agent/instructions"
	"github.com/busdk/bus-agent/registry"
)

// changed is Command with its result changed.
func changed(change func(registry.Invocation, *agent.Command)) func(*Harness) {
	return func(h *Harness) {
		h.Runtime.Run.Command = func(inv registry.Invocation) (agent.Command, error) {
			c, err := sampleCommand(inv)
			change(inv, &c)
			return c, err
		}
	}
}

// asked is Command with its request changed.
func asked(change func(*registry.Invocation)) func(*Harness) {
	return func(h *Harness) {
		h.Runtime.Run.Command = func(inv registry.Invocation) (agent.Command, error) {
			change(&inv)
			return sampleCommand(inv)
		}
	}
}

// prepared is Prepare with its result changed.
func prepared(change func(registry.Invocation, *instructions.Workspace, *registry.Setup) error) func(*Harness) {
	return func(h *Harness) {
		h.Runtime.Run.Prepare = func(ctx context.Context, inv registry.Invocation, w *instructions.Workspace) (registry.Setup, error) {
			setup, err := samplePrepare(ctx, inv, w)
			if err == nil {
				err = change(inv, w, &setup)
			}
			return setup, err
		}
	}
}

// decoderFunc is a decoder with its events changed.
type decoderFunc func(line []byte, events []agent.Event) []agent.Event

func (f decoderFunc) Decode(line []byte, events []agent.Event) []agent.Event { return f(line, events) }

func decoded(begin func(own formatters.Decoder) decoderFunc) func(*Harness) {
	return func(h *Harness) {
		h.Runtime.Decoder = func() formatters.Decoder { return begin(new(sampleDecoder)) }
	}
}

// without drops the events of a kind.
func without(kind agent.Kind) func(*Harness) {
	return decoded(func(own formatters.Decoder) decoderFunc {
		return func(line []byte, events []agent.Event) []agent.Event {
			return slices.DeleteFunc(own.Decode(line, events), func(e agent.Event) bool { return e.Kind == kind })
		}
	})
}

// TestBrokenRuntimesAreCaught breaks the sample in one way each and names the
// case that has to see it.
func TestBrokenRuntimesAreCaught(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		caught string
		breaks func(*Harness)
	}{
		"has a name that cannot be printed":  {"descriptor", func(h *Harness) { h.Runtime.Name = "Sample\x1b" }},
		"has no address":                     {"descriptor", func(h *Harness) { h.Runtime.InstallURL = "somewhere" }},
		"lists an unknown word":              {"descriptor", func(h *Harness) { h.Runtime.Run.Options.Efforts = []agent.ReasoningEffort{"much"} }},
		"has no ID":                          {"register", func(h *Harness) { h.Runtime.ID = "" }},
		"recognizes everything":              {"recognize", func(h *Harness) { h.Runtime.Recognize = func([]byte) bool { return true } }},
		"recognizes nothing":                 {"recognize", func(h *Harness) { h.Runtime.Recognize = func([]byte) bool { return false } }},
		"counts its calls":                   {"command-pure", counting},
		"writes behind the caller's args":    {"command-pure", asked(func(r *registry.Invocation) { _ = append(r.Args, "--more") })},
		"changes the caller's args":          {"command-pure", asked(func(r *registry.Invocation) { r.Args[0] = "--other" })},
		"writes in a dry run":                {"dry-run", prepared(leaveFile)},
		"loses the caller's args":            {"arguments", asked(func(r *registry.Invocation) { r.Args = nil })},
		"splits the caller's args":           {"arguments", asked(func(r *registry.Invocation) { r.Args = strings.Fields(strings.Join(r.Args, " ")) })},
		"mistakes the variant":               {"prompt", onlyPlain},
		"refuses the caller's variables":     {"environment", refuseVariables},
		"shows the environment":              {"secrets", tellEnvironment},
		"shows the prompt":                   {"secrets", prepared(warnOfPrompt)},
		"says another workdir":               {"workdir", changed(func(_ registry.Invocation, c *agent.Command) { c.Env = append(c.Env, "PWD=/") })},
		"trims the prompt":                   {"prompt", asked(func(r *registry.Invocation) { r.Prompt = strings.TrimSpace(r.Prompt) })},
		"does not guard a slash":             {"prompt", changed(func(r registry.Invocation, c *agent.Command) { c.Stdin = "Please: " + r.Prompt })},
		"puts the prompt into arguments":     {"prompt-hidden", changed(func(r registry.Invocation, c *agent.Command) { c.Args = append(c.Args, r.Prompt) })},
		"puts the prompt into a variable":    {"prompt-hidden", changed(func(r registry.Invocation, c *agent.Command) { c.Env = append(c.Env, "P="+r.Prompt) })},
		"cuts a long prompt":                 {"prompt-long", asked(func(r *registry.Invocation) { r.Prompt = r.Prompt[:min(len(r.Prompt), 100_000)] })},
		"takes less than its limit":          {"prompt-limit", takeLess},
		"loses the model":                    {"options", asked(func(r *registry.Invocation) { r.Model = "" })},
		"loses the additional system prompt": {"options", asked(func(r *registry.Invocation) { r.AppendSystemPrompt = "" })},
		"loses the allowed tools":            {"options-tools", asked(func(r *registry.Invocation) { r.AllowTools = nil })},
		"loses the denied tools":             {"options-tools", asked(func(r *registry.Invocation) { r.DenyTools = nil })},
		"loses added directories":            {"options", asked(func(r *registry.Invocation) { r.AddDirs = r.AddDirs[:min(1, len(r.AddDirs))] })},
		"loses allowed commands":             {"options", asked(func(r *registry.Invocation) { r.AllowCommands = nil })},
		"loses the limit of turns":           {"options", asked(func(r *registry.Invocation) { r.MaxTurns = 0 })},
		"loses the idle timeout":             {"idle-timeout", func(h *Harness) { h.Runtime.Run.Options.IdleTimeout = true }},
		"loses the effort":                   {"options-words", asked(func(r *registry.Invocation) { r.ReasoningEffort = "" })},
		"loses the schema":                   {"options-schema", asked(func(r *registry.Invocation) { r.Schema = nil })},
		"takes read for write":               {"options-words", asked(readAsWrite)},
		"loses AGENTS.md": {"instructions", prepared(func(_ registry.Invocation, _ *instructions.Workspace, s *registry.Setup) error {
			s.Files = nil
			return nil
		})},
		"delivers AGENTS.md twice":     {"instructions", prepared(twice)},
		"delivers AGENTS.md backwards": {"instructions", prepared(backwards)},
		"delivers what the CLI finds":  {"instructions", func(h *Harness) { h.NativeInstructions = true }},
		"does not tell of a cut": {"instructions-limit", prepared(func(_ registry.Invocation, _ *instructions.Workspace, s *registry.Setup) error {
			s.Warnings = nil
			return nil
		})},
		"warns at every run":           {"instructions-none", prepared(warnAlways)},
		"leaves a file in the workdir": {"workdir-clean", prepared(leaveFile)},
		"leaves a file in the home":    {"workdir-clean", prepared(leaveInHome)},
		"leaves a temporary file":      {"workdir-clean", prepared(leaveInTemp)},
		"leaves its home": {"workdir-clean", prepared(func(_ registry.Invocation, _ *instructions.Workspace, s *registry.Setup) error {
			s.Close = nil
			return nil
		})},
		"leaves what it does not own":         {"workdir-trust", func(h *Harness) { h.Runtime.Instructions.Owned = h.Runtime.Instructions.Owned[:1] }},
		"adds at every run":                   {"workdir-trust", prepared(addAlways)},
		"has one home for all":                {"workdir-shared", sharedHome},
		"uses an existing home":               {"planted-homes", sharedHome},
		"does not know its empty directories": {"empty-dirs", func(h *Harness) { h.Runtime.EmptyDirs = []string{".other", "../outside"} }},
		"does not tell the session":           {"session", without(agent.KindSessionStarted)},
		"starts anew in place of resuming":    {"resume", changed(func(_ registry.Invocation, c *agent.Command) { c.Args = slices.DeleteFunc(c.Args, isResume) })},
		"keeps sessions it does not own":      {"resume", prepared(keepElsewhere)},
		"starts anew in place of continuing":  {"continue", changed(func(_ registry.Invocation, c *agent.Command) { c.Args = slices.DeleteFunc(c.Args, isResume) })},
		"keeps the line":                      {"decoder-memory", decoded(keepLine)},
		"changes the line":                    {"decoder-memory", decoded(changeLine)},
		"panics on junk":                      {"decoder-junk", decoded(panicOnNull)},
		"loses what it does not know":         {"decoder-junk", without(agent.KindRaw)},
		"gives events without a kind":         {"decoder-junk", decoded(kindless)},
		"shares a decoder":                    {"decoder-runs", sharedDecoder},
		"loses tool results":                  {"events", without(agent.KindToolResult)},
		"says everything twice":               {"events", decoded(repeat)},
		"takes unknown events for the end":    {"unknown-event", decoded(failUnknown)},
		"drops lines without an event":        {"unknown-event", without(agent.KindRaw)},
		"takes a retry for a failure":         {"retry", decoded(failRetry)},
		"shows no half line":                  {"last-line", without(agent.KindRaw)},
		"cuts long lines":                     {"long-line", decoded(cutLong)},
		"mixes runs":                          {"parallel", sharedWords},
		"hides standard error":                {"exit-code", func(h *Harness) { h.Runtime.QuietStderr = func([]byte) bool { return true } }},
		"takes every exit for a login":        {"exit-code", func(h *Harness) { h.Runtime.ExitFailure = exitLogin }},
		"always reports success":              {"failure-result", decoded(alwaysSuccess)},
		"says no reason":                      {"failure-result", decoded(noReason)},
		"takes text for a result":             {"no-result", decoded(textIsResult)},
		"fails for good":                      {"last-result", without(agent.KindResult)},
		"follows a link":                      {"hostile-files", prepared(passIgnoreFile)},
		"writes through a link":               {"hostile-files", prepared(writeIgnoreFile)},
		"leaves a spoiled home": {"hostile-stale-home", prepared(func(_ registry.Invocation, _ *instructions.Workspace, s *registry.Setup) error {
			s.Close = nil
			return nil
		})},
		"writes into a replaced home": {"hostile-folders", prepared(writeAtClose)},
		"puts the workdir into PATH":  {"hostile-path", changed(func(r registry.Invocation, c *agent.Command) { c.Env = append(c.Env, "PATH="+r.Workdir) })},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := sample()
			c.breaks(&h)
			var failure *Failure
			if err := check(h, c.caught); !errors.As(err, &failure) || failure.Case != c.caught || failure.Rule == "" || failure.Problem == "" {
				t.Errorf("case %s says %v", c.caught, err)
			}
		})
	}
}

func counting(h *Harness) {
	var calls atomic.Int32
	changed(func(_ registry.Invocation, c *agent.Command) {
		c.Args = append(c.Args, fmt.Sprint("--call=", calls.Add(1)))
	})(h)
}

func onlyPlain(h *Harness) {
	asked(func(r *registry.Invocation) {
		if r.Variant != "" {
			r.Prompt = ""
		}
	})(h)
}

func refuse(h *Harness, when func(registry.Invocation) error) {
	h.Runtime.Run.Command = func(inv registry.Invocation) (agent.Command, error) {
		if err := when(inv); err != nil {
			return agent.Command{}, err
		}
		return sampleCommand(inv)
	}
}

func refuseVariables(h *Harness) {
	refuse(h, func(r registry.Invocation) error {
		if len(r.Env) > 0 {
			return agent.Usagef("no variables please")
		}
		return nil
	})
}

func tellEnvironment(h *Harness) {
	prepared(func(r registry.Invocation, _ *instructions.Workspace, s *registry.Setup) error {
		s.Warnings = append(s.Warnings, fmt.Sprint("the environment is ", r.Environ))
		return nil
	})(h)
}

func warnOfPrompt(r registry.Invocation, _ *instructions.Workspace, s *registry.Setup) error {
	s.Warnings = append(s.Warnings, "asking "+r.Prompt)
	return nil
}

func takeLess(h *Harness) {
	refuse(h, func(r registry.Invocation) error {
		if len(r.Prompt) > 1<<20 {
			return agent.Usagef("too long")
		}
		return nil
	})
}

func readAsWrite(r *registry.Invocation) {
	if r.Access == agent.AccessRead {
		r.Access = agent.AccessWrite
	}
}

func twice(_ registry.Invocation, _ *instructions.Workspace, s *registry.Setup) error {
	s.Files = append(s.Files, s.Files...)
	return nil
}

func backwards(_ registry.Invocation, w *instructions.Workspace, s *registry.Setup) error {
	var text string
	for _, file := range slices.Backward(w.Chain().Files) {
		b, err := os.ReadFile(file.Path)
		if err != nil {
			return err
		}
		text += string(b) + "\n"
	}
	s.Files = [][]byte{[]byte(text)}
	return nil
}

func warnAlways(_ registry.Invocation, _ *instructions.Workspace, s *registry.Setup) error {
	s.Warnings = append(s.Warnings, "beware")
	return nil
}

func leaveFile(r registry.Invocation, _ *instructions.Workspace, _ *registry.Setup) error {
	return os.WriteFile(filepath.Join(r.Workdir, "empty-dirs"), nil, 0o600)
}

func leaveInHome(r registry.Invocation, _ *instructions.Workspace, _ *registry.Setup) error {
	return os.WriteFile(filepath.Join(r.Getenv("HOME"), ".samplerc"), nil, 0o600)
}

func leaveInTemp(r registry.Invocation, _ *instructions.Workspace, _ *registry.Setup) error {
	return os.WriteFile(filepath.Join(r.Getenv("TMPDIR"), "sample.log"), nil, 0o600)
}

func addAlways(r registry.Invocation, _ *instructions.Workspace, _ *registry.Setup) error {
	f, err := os.OpenFile(filepath.Join(r.Workdir, ".gitignore"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return nil // not the case that is meant
	}
	defer f.Close()
	_, err = f.WriteString(".sample\n")
	return err
}

// sharedHome has a home with a fixed name.
func sharedHome(h *Harness) {
	prepared(func(r registry.Invocation, w *instructions.Workspace, s *registry.Setup) error {
		home := filepath.Join(r.Workdir, ".sample", "home")
		taken := os.Mkdir(home, 0o700)
		s.Env = []string{"SAMPLE_HOME=" + home}
		own := s.Close
		s.Close = func(ctx context.Context) []string {
			if taken == nil {
				os.RemoveAll(home)
			}
			return own(ctx)
		}
		if r.Executable != "" && taken != nil {
			return os.WriteFile(filepath.Join(home, "again"), nil, 0o600)
		}
		return nil
	})(h)
}

func isResume(arg string) bool { return strings.HasPrefix(arg, "--resume=") }

func keepElsewhere(r registry.Invocation, _ *instructions.Workspace, s *registry.Setup) error {
	own := s.Close
	s.Close = func(ctx context.Context) []string {
		os.WriteFile(filepath.Join(r.Workdir, ".sample-session"), nil, 0o600)
		return own(ctx)
	}
	return nil
}

// passIgnoreFile gives the agent what .gitignore has or leads to.
func passIgnoreFile(r registry.Invocation, _ *instructions.Workspace, s *registry.Setup) error {
	name := filepath.Join(r.Workdir, ".gitignore")
	if info, err := os.Stat(name); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	text, err := os.ReadFile(name)
	s.Files = append(s.Files, text)
	return err
}

func writeIgnoreFile(r registry.Invocation, _ *instructions.Workspace, _ *registry.Setup) error {
	f, err := os.OpenFile(filepath.Join(r.Workdir, ".gitignore"), os.O_CREATE|os.O_APPEND|os.O_WRONLY|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil // not the case that is meant
	}
	defer f.Close()
	_, err = f.WriteString(".sample\n")
	return err
}

func writeAtClose(_ registry.Invocation, _ *instructions.Workspace, s *registry.Setup) error {
	own, home := s.Close, strings.TrimPrefix(s.Env[0], "SAMPLE_HOME=")
	s.Close = func(ctx context.Context) []string {
		os.WriteFile(filepath.Join(home, "settings.json"), nil, 0o600)
		return own(ctx)
	}
	return nil
}

func keepLine(own formatters.Decoder) decoderFunc {
	var before []byte
	return func(line []byte, events []agent.Event) []agent.Event {
		events = append(own.Decode(line, events), agent.Event{Kind: agent.KindWarning, Text: string(before)})
		before = line
		return events
	}
}

func changeLine(own formatters.Decoder) decoderFunc {
	return func(line []byte, events []agent.Event) []agent.Event {
		events = own.Decode(line, events)
		if len(line) > 0 {
			line[0] = ' '
		}
		return events
	}
}

func panicOnNull(own formatters.Decoder) decoderFunc {
	return func(line []byte, events []agent.Event) []agent.Event {
		if string(line) == "null" {
			panic("null")
		}
		return own.Decode(line, events)
	}
}

func kindless(own formatters.Decoder) decoderFunc {
	return func(line []byte, events []agent.Event) []agent.Event {
		return append(own.Decode(line, events), agent.Event{Text: "more"})
	}
}

// sharedDecoder numbers the lines of all runs.
func sharedDecoder(h *Harness) {
	var lines atomic.Int32
	decoded(func(own formatters.Decoder) decoderFunc {
		return func(line []byte, events []agent.Event) []agent.Event {
			return append(own.Decode(line, events), agent.Event{Kind: agent.KindWarning, Text: fmt.Sprint("line ", lines.Add(1))})
		}
	})(h)
}

// sharedWords says again what any run said.
func sharedWords(h *Harness) {
	var said atomic.Value
	said.Store("")
	decoded(func(own formatters.Decoder) decoderFunc {
		return func(line []byte, events []agent.Event) []agent.Event {
			events = own.Decode(line, events)
			all := said.Load().(string) + string(line)
			said.Store(all)
			return append(events, agent.Event{Kind: agent.KindWarning, Text: all})
		}
	})(h)
}

func repeat(own formatters.Decoder) decoderFunc {
	return func(line []byte, events []agent.Event) []agent.Event {
		return own.Decode(line, own.Decode(line, events))
	}
}

// each changes every event.
func each(own formatters.Decoder, change func(*agent.Event)) decoderFunc {
	return func(line []byte, events []agent.Event) []agent.Event {
		events = own.Decode(line, events)
		for i := range events {
			change(&events[i])
		}
		return events
	}
}

func failUnknown(own formatters.Decoder) decoderFunc {
	return each(own, func(e *agent.Event) {
		if e.Kind == agent.KindRaw {
			*e = agent.Event{Kind: agent.KindResult, Failed: true, Text: e.Text}
		}
	})
}

func failRetry(own formatters.Decoder) decoderFunc {
	return each(own, func(e *agent.Event) {
		if e.Kind == agent.KindRetry {
			e.Failure = agent.FailureAuthentication
		}
	})
}

func cutLong(own formatters.Decoder) decoderFunc {
	return each(own, func(e *agent.Event) { e.Text = e.Text[:min(len(e.Text), 1<<20)] })
}

func exitLogin(*agent.ExitError) agent.Failure { return agent.FailureAuthentication }

func alwaysSuccess(own formatters.Decoder) decoderFunc {
	return each(own, func(e *agent.Event) { e.Failed = false })
}

func noReason(own formatters.Decoder) decoderFunc {
	return each(own, func(e *agent.Event) {
		if e.Failed {
			e.Text = ""
		}
	})
}

func textIsResult(own formatters.Decoder) decoderFunc {
	return func(line []byte, events []agent.Event) []agent.Event {
		return append(own.Decode(line, events), agent.Event{Kind: agent.KindResult})
	}
}
