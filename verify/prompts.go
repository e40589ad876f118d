package verify

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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
		got := t.lastPrompt(request)
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

// lastPrompt returns the last prompt of the user.
func (t *trial) lastPrompt(r *modeltest.Request) string {
	last := lastText(r)
	if t.target.Prompt != nil {
		return t.target.Prompt(last)
	}
	return last
}

// lastText returns the last text of the user.
func lastText(r *modeltest.Request) string {
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
	if got := t.lastPrompt(list[0]); got != text {
		return fmt.Errorf("the model got %s instead of %s", quote(got), quote(text))
	}
	return nil
}

// describe returns the error of a run with its kind.
func describe(err error) string {
	if err == nil {
		return "success"
	}
	return fmt.Sprintf("%s (%s)", quote(err.Error()), agent.KindOf(err))
}
