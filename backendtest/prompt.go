package backendtest

import (
	"errors"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
)

var promptRules = []rule{
	{name: "prompt", test: prompts,
		text: "The prompt reaches the CLI byte for byte, whatever it begins with or holds; one with a leading slash can get a line break before it, or be refused."},
	{name: "prompt-hidden", test: promptHidden,
		applies: func(h *Harness) bool { return h.Prompt != PromptArgument },
		text:    "The prompt is in no argument and no variable, where others could read it."},
	{name: "prompt-long", test: promptLong,
		text: "A prompt of 1 MiB arrives whole, where the runtime does not state a lower limit."},
	{name: "prompt-limit", test: promptLimit,
		applies: func(h *Harness) bool { return h.Runtime.PromptLimit != (registry.Limit{}) },
		text:    "A prompt at the stated limit is taken, and a longer one is a usage error before anything is started."},
}

func prompts(w *world) {
	for _, prompt := range []string{
		"-p --help", "--", "/init the project", " /quit", "@main.txt and @/etc/hosts", "!ls", "#x",
		"one line\n\nthree lines\r\n\ttab \\ \"quoted\" 'single' `back` $(echo x) ${HOME} %s {{NAME}} <b> ü 工 🙂\n\n",
	} {
		for _, token := range w.tokens() {
			req := w.request()
			req.Runtime, req.Prompt = token, prompt
			o := w.run(req, w.answer("fine")...)
			switch {
			case o.seen != nil:
				w.prompt(o, req)
			case !isSlash(prompt) || !errors.Is(o.err, agent.ErrUsage):
				w.fatalf("the CLI was not started: %v", o.err)
			}
		}
	}
	req := w.request()
	req.Prompt = "a\x00b"
	if o := w.run(req, w.answer("fine")...); o.seen != nil {
		w.prompt(o, req)
	} else if !errors.Is(o.err, agent.ErrUsage) {
		w.failf("a prompt with a NUL character fails with %v", o.err)
	}
}

// arrived runs the request and checks that its prompt arrives.
func (w *world) arrived(req agent.Request) *outcome {
	o := w.started(req)
	w.prompt(o, req)
	return o
}

func (w *world) prompt(o *outcome, req agent.Request) {
	text, err := w.received(o.seen)
	if err != nil {
		w.failf("%v", err)
		return
	}
	rest, ok := strings.CutSuffix(text, req.Prompt)
	switch {
	case !ok:
		w.failf("of %s the CLI of %s gets %s", clip(req.Prompt), req.Runtime, clip(text))
	case rest != "" && !(isSlash(req.Prompt) && rest == "\n"):
		w.failf("before %s the CLI of %s gets %s", clip(req.Prompt), req.Runtime, clip(rest))
	}
}

// isSlash reports whether a CLI can take a prompt for a command.
func isSlash(prompt string) bool {
	return strings.HasPrefix(strings.TrimLeft(prompt, " \t\r"), "/")
}

func promptHidden(w *world) {
	for _, token := range w.tokens() {
		req := w.request()
		req.Runtime = token
		seen := w.started(req).seen
		for _, text := range append(seen.Args, seen.Env...) {
			if strings.Contains(text, promptWords) {
				w.failf("%s was started with %s", token, clip(text))
			}
		}
	}
}

// within reports whether a prompt is within the limit of the runtime.
func (w *world) within(prompt string) bool {
	limit := w.Runtime.PromptLimit
	return (limit.Bytes == 0 || len(prompt) <= limit.Bytes) && (limit.Runes == 0 || len([]rune(prompt)) <= limit.Runes)
}

func promptLong(w *world) {
	req := w.request()
	req.Prompt = strings.Repeat("0123456789 word\n", 1<<20/16)
	if !w.within(req.Prompt) {
		limit := max(w.Runtime.PromptLimit.Bytes, w.Runtime.PromptLimit.Runes)
		req.Prompt = req.Prompt[:limit]
	}
	w.arrived(req)
}

// tooLong returns a prompt beyond the limit; "" where there is none.
func (w *world) tooLong(prompt string) string {
	limit := w.Runtime.PromptLimit
	switch {
	case limit.Bytes > 0:
		return prompt + strings.Repeat("x", limit.Bytes+1-len(prompt))
	case limit.Runes > 0:
		return prompt + strings.Repeat("ü", limit.Runes+1-len(prompt))
	}
	return ""
}

func promptLimit(w *world) {
	long := w.tooLong("x")
	req := w.request()
	bin, a := w.install()
	for _, c := range []struct {
		prompt string
		kind   error
	}{{strings.TrimPrefix(long, "x"), nil}, {long, agent.ErrUsage}} {
		req.Prompt = c.prompt
		if _, err := w.runner(bin, nil).DryRun(w.ctx, req); !errors.Is(err, c.kind) {
			w.failf("a prompt of %d bytes gives %v", len(c.prompt), err)
		}
	}
	if _, err := w.runner(bin, nil).Run(w.ctx, req, agent.Output{}); !errors.Is(err, agent.ErrUsage) {
		w.failf("a run with a longer prompt gives %v", err)
	}
	seen, err := a.Invocation()
	w.must(err)
	if seen != nil {
		w.failf("a longer prompt started the CLI")
	}
}
