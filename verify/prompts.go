package verify

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/modeltest"
)

func says(text string) modeltest.Reply { return modeltest.Reply{modeltest.Text{text}} }

// prompt checks that text arrives unchanged, except that a line break may precede a slash.
func prompt(text string) func(*trial) error {
	return func(t *trial) error {
		if err := t.start(modeltest.Replies(says("got it")), nil); err != nil {
			return err
		}
		_, request, err := t.askOnce(agent.Request{Prompt: text}, "got it")
		if err != nil {
			return err
		}
		got := strings.TrimSuffix(lastPrompt(request), t.target.PromptSuffix)
		if strings.HasPrefix(text, "/") {
			got = strings.TrimPrefix(got, "\n")
		}
		if got != text {
			return fmt.Errorf("the model got %s instead of %s", quote(got), quote(text))
		}
		if _, err := os.Lstat(filepath.Join(t.work, "pwned")); err == nil {
			return errors.New("the prompt was run")
		}
		return nil
	}
}

// longPrompt is prompt with a text of n bytes.
func longPrompt(n int) func(*trial) error {
	return func(t *trial) error { return prompt(long(n))(t) }
}

// lastPrompt returns the last text of the user.
func lastPrompt(r *modeltest.Request) string {
	texts := r.Texts("user")
	if len(texts) == 0 {
		return ""
	}
	return texts[len(texts)-1]
}

// wasRefused returns nil if o is a usage error that started nothing.
func (t *trial) wasRefused(o outcome) error {
	switch {
	case !errors.Is(o.err, agent.ErrUsage):
		return fmt.Errorf("the run ended with %s instead of a usage error", describe(o.err))
	case o.started:
		return errors.New("the CLI was started")
	case len(t.model.Requests()) > 0:
		return errors.New("the model got a request")
	}
	return nil
}

func promptLimit(t *trial) error {
	if err := t.start(modeltest.Always(says("got it")), nil); err != nil {
		return err
	}
	limit := t.runtime.PromptLimit
	return t.wasRefused(t.run(t.ctx, agent.Request{Prompt: strings.Repeat("x", cmp.Or(limit.Bytes, limit.Runes)+1)}))
}

// promptNUL fails if the CLI cuts the prompt, as programs do that take it for the end.
func promptNUL(t *trial) error {
	if err := t.start(modeltest.Always(says("got it")), nil); err != nil {
		return err
	}
	const text = "before\x00after"
	o := t.run(t.ctx, agent.Request{Prompt: text})
	if o.err != nil {
		return t.wasRefused(o)
	}
	list, err := t.requests(1)
	if err != nil {
		return err
	}
	if got := strings.TrimSuffix(lastPrompt(list[0]), t.target.PromptSuffix); got != text {
		return fmt.Errorf("the model got %s instead of %s", quote(got), quote(text))
	}
	return nil
}

// The folders with an AGENTS.md, the root first, of which the last is not around the
// workdir, and the text of each.
var ruled = []struct{ folder, mark string }{
	{"", "MARKER-OF-THE-ROOT"},
	{"services/", "MARKER-OF-THE-MIDDLE"},
	{"services/a/", "MARKER-OF-THE-WORKDIR"},
	{"services/b/", "MARKER-OF-ANOTHER-FOLDER"},
}

func rules() map[string]string {
	files := map[string]string{}
	for _, r := range ruled {
		files[r.folder+"AGENTS.md"] = "Rules. " + r.mark + "\n"
	}
	return files
}

func agentsMD(t *trial) error { return checkRules(t, "") }

func longAgentsMD(t *trial) error {
	var text strings.Builder
	for i := 0; text.Len() < 100<<10; i++ {
		fmt.Fprintf(&text, "rule %d of many\n", i)
	}
	return checkRules(t, text.String())
}

// checkRules checks that the rules of ruled arrive, with more at the end of the root's.
func checkRules(t *trial, more string) error {
	files := rules()
	files["AGENTS.md"] += more
	if err := t.start(modeltest.Replies(says("ok")), files); err != nil {
		return err
	}
	workdir := filepath.Join(t.work, "services", "a")
	o, request, err := t.askOnce(agent.Request{Prompt: "hello", Workdir: workdir, RequireInstructions: true}, "ok")
	if err != nil {
		return err
	}
	var at []int
	for i, r := range ruled {
		want := 1
		if i == len(ruled)-1 {
			want = 0
		}
		if n := request.Count(r.mark); n != want {
			return fmt.Errorf("%sAGENTS.md arrived %d times, want %d", r.folder, n, want)
		}
		if want == 1 {
			at = append(at, strings.Index(strings.Join(request.Texts(), "\n"), r.mark))
		}
	}
	switch {
	case !slices.IsSorted(at):
		return errors.New("the files arrived in another order than from the root to the workdir")
	case more != "" && request.Count(more) != 1:
		return errors.New("the long file did not arrive whole")
	case len(o.Warnings) > 0:
		return fmt.Errorf("the run warned: %s", quote(o.Warnings[0]))
	}
	return nil
}

func model(t *trial) error {
	if err := t.start(modeltest.Replies(says("ok")), nil); err != nil {
		return err
	}
	o, request, err := t.askOnce(agent.Request{Prompt: "hello"}, "ok")
	switch {
	case err != nil:
		return err
	case request.Model() != t.target.Model:
		return fmt.Errorf("the model %q was requested instead of %q", request.Model(), t.target.Model)
	case o.Model != t.target.Model:
		return fmt.Errorf("the run reports the model %q instead of %q", o.Model, t.target.Model)
	}
	return nil
}

// effort uses low, or else the greatest effort: neither is a likely default.
func effort(t *trial) error {
	if err := t.start(modeltest.Replies(says("ok")), nil); err != nil {
		return err
	}
	efforts := t.runtime.Run.Options.Efforts
	want := efforts[len(efforts)-1]
	if slices.Contains(efforts, agent.EffortLow) {
		want = agent.EffortLow
	}
	_, request, err := t.askOnce(agent.Request{Prompt: "hello", ReasoningEffort: want}, "ok")
	if err == nil && request.Effort() != string(want) {
		err = fmt.Errorf("the effort %q was requested instead of %q", request.Effort(), want)
	}
	return err
}

// describe returns the error of a run with its kind.
func describe(err error) string {
	if err == nil {
		return "success"
	}
	return fmt.Sprintf("%s (%s)", quote(err.Error()), agent.KindOf(err))
}
