package cli

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/supervisor"
	"github.com/busdk/bus-agent/session"
)

// superviseCommand is what the program calls itself with to hold a session.
const superviseCommand = "__supervise"

var errNoExecutable = errors.New("the program does not know its own file")

// supervision is what the supervisor of a session reads on its standard input.
type supervision struct {
	Folder   string           `json:"folder"`
	Entry    supervisor.Entry `json:"entry"`
	Settings sessionSettings  `json:"settings"`
	Message  string           `json:"message,omitempty"`
}

// supervise holds one session until its end. What goes wrong before the session
// is ready is reported to the command that waits for it.
func (inv *invocation) supervise(ctx context.Context) error {
	var what supervision
	if err := json.NewDecoder(inv.env.Stdin).Decode(&what); err != nil {
		return agent.Usagef("%s is for bus-agent itself", superviseCommand)
	}
	ctx, end := inv.begin(ctx, true)
	defer end()
	reporter := supervisor.NewReporter()
	s := what.Settings
	err := supervisor.Serve(ctx, supervisor.Options{
		Sessions:        &supervisor.Sessions{Folder: what.Folder},
		Entry:           what.Entry,
		Message:         what.Message,
		Idle:            s.Idle,
		ApprovalTimeout: s.ApprovalTimeout,
		Ready:           func() { reporter.Report(supervisor.Report{Ready: true}) },
		Open: func(ctx context.Context, options session.Options, started func(agent.Start)) (*session.Session, error) {
			r := inv.sessionRunner(s.Workdir, func(line string) {
				io.WriteString(inv.env.Stderr, line+"\n")
				reporter.Report(supervisor.Report{Warning: line})
			})
			r.RequireConfigured = s.RequireConfigured
			req := s.request()
			req.Env = inv.sessionEnviron(ctx, r, &s, what.Entry.ID)
			req.Stderr = &supervisor.BoundedLog{File: os.Stderr}
			req.Started = func(start agent.Start) {
				started(start)
				reporter.Report(supervisor.Report{Runtime: start.Runtime, Model: start.Model})
			}
			return r.StartSession(ctx, req, options)
		},
	})
	reporter.Fail(err)
	return err
}

// request returns the request of a session.
func (s *sessionSettings) request() agent.Request {
	return agent.Request{
		Runtime: s.Runtime, Workdir: s.Workdir, Model: s.Model, ReasoningEffort: s.Effort, Verbosity: s.Verbosity,
		Access: s.Access, AllowCommands: s.AllowCommands, AddDirs: s.AddDirs, Args: s.Args, Env: s.Env,
		TrustWorkspace: s.TrustWorkspace, RequireInstructions: s.RequireInstructions,
		Resume: s.Resume, Timeout: s.StartTimeout,
	}
}
