package cli

import (
	"cmp"
	"context"

	"github.com/busdk/bus-agent/runner"
	"github.com/busdk/bus-agent/sessions"
)

// sessionEnviron returns the variables of a session's agent: what s asks for, and
// those of the environment contract for the session with an ID. Who the agent is
// comes from the environment; its session is its own.
func (inv *invocation) sessionEnviron(ctx context.Context, r *runner.Runner, s *sessionSettings, id string) []string {
	quiet := *r
	quiet.Warn = func(string) {} // whoever starts it warns
	native := ""
	if selection, err := quiet.Resolve(ctx, s.Runtime); err == nil && selection.Runtime.Session != nil {
		native = selection.Runtime.Session.SessionEnv
	}
	environ := append([]string{}, inv.env.Environ...)
	who := sessions.IdentityOf(append(environ, s.Env...), "")
	who.SessionID = cmp.Or(sessions.IdentityOf(s.Env, "").SessionID, id)
	who.WorkDir = s.Workdir
	return append(append([]string{}, s.Env...), who.Environ(native)...)
}
