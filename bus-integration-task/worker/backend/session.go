package backend

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/fallback"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/runner"
)

// Names of backends.
const (
	NameAppServer = "codex-appserver"
	NameContainer = "container"
	prefixSession = "session:"
)

// runtimeAppServer is the runtime of NameAppServer.
const runtimeAppServer = "codex"

// SessionRuntime returns the token of the runtime that a backend's name selects: that
// of Codex for codex-appserver, NAME for session:NAME. Ok is false for other names.
func SessionRuntime(name string) (token string, ok bool) {
	if name == NameAppServer {
		return runtimeAppServer, true
	}
	token, ok = strings.CutPrefix(name, prefixSession)
	if !ok || token == "" {
		return "", false
	}
	return token, true
}

// IsCodex reports whether the runtime that a backend's name selects is Codex.
func IsCodex(name string) bool {
	token, _ := SessionRuntime(name)
	runtime, _, _ := strings.Cut(token, ":")
	return runtime == runtimeAppServer
}

// Session is the backend that holds a session with an agent of a runtime. Its fields
// must not change once it is used. The runtimes are those that the program registers,
// for example by importing package backends/all of bus-agent.
type Session struct {
	// Runner starts the agents. Its Recorder, for example runs.Records, makes one
	// record of each session, and so one of each attempt without a fallback.
	Runner runner.Runner

	// Runtime is the token of the runtime. Required.
	Runtime string

	// Args go to the CLI of Runtime after its own arguments.
	Args []string

	// Fallback lists the tokens of the runtimes that are tried in order when the one
	// before is out of quota, not logged in or not installed, also in the middle of a
	// turn. The next one gets the same prompt, and the messages that were said, in a new
	// session with its default model; where the one before may have changed something,
	// the prompt says so. The runtime of a session that is resumed is the first one. The
	// outcome has the commands and the plan of the last one.
	Fallback []string

	// Cooldowns has the runtimes that were out of quota or not logged in lately. They
	// are left out while another one is ready. Nil remembers none.
	Cooldowns *fallback.Cooldowns
}

// Check returns an agent.ErrUsage error if a runtime is unknown or holds no sessions.
func (b *Session) Check() error {
	for _, token := range b.tokens() {
		rt, err := b.lookup(token)
		if err != nil {
			return err
		}
		if rt.Session == nil {
			return agent.Usagef("runtime %q holds no sessions; use another backend", token)
		}
	}
	return nil
}

func (b *Session) tokens() []string { return append([]string{b.Runtime}, b.Fallback...) }

func (b *Session) lookup(token string) (registry.Runtime, error) {
	r := b.Runner.Registry
	if r == nil {
		r = registry.Default()
	}
	rt, _, err := r.ParseToken(token)
	return rt, err
}

// Start starts an attempt; see [Backend.Start].
func (b *Session) Start(ctx context.Context, a Attempt, l Listener) (Running, error) {
	if err := b.Check(); err != nil {
		return nil, err
	}
	if err := a.check(); err != nil {
		return nil, err
	}
	environ := inherited(b.Runner.Environ)
	own, rest := credentials(environ)
	a.Hidden = append(own, a.Hidden...)
	run := &attempt{
		backend: b,
		given:   a,
		environ: rest,
		report:  newReporter(l, runner.NewMasker(slices.Concat(environ, a.Env, a.Hidden))),
		begun:   time.Now(),
		asked:   a.ApprovalsBefore,
		pending: map[string]pendingApproval{},
		changed: make(chan struct{}),
		done:    make(chan struct{}),
	}
	run.ctx, run.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	run.unwatch = context.AfterFunc(ctx, func() {
		run.Stop(context.Background(), cmp.Or(context.Cause(ctx), context.Canceled).Error())
	})
	go run.run()
	return run, nil
}

// check returns what is wrong with an attempt by a session.
func (a *Attempt) check() error {
	switch {
	case !filepath.IsAbs(a.Workdir):
		return agent.Usagef("workdir %q is not absolute; nothing was started", a.Workdir)
	case strings.TrimSpace(a.Prompt) == "":
		return agent.Usagef("the prompt is empty; nothing was started")
	case a.Sandbox.Access() == "":
		_, err := ParseSandbox(string(a.Sandbox))
		return err
	case a.StateDir != "" && !filepath.IsAbs(a.StateDir):
		return agent.Usagef("state folder %q is not absolute; nothing was started", a.StateDir)
	}
	if a.Effort != "" {
		if _, err := agent.ParseEffort(a.Effort); err != nil {
			return err
		}
	}
	if a.ApprovalPolicy != "" {
		_, err := ParseApprovalPolicy(string(a.ApprovalPolicy))
		return err
	}
	return nil
}
