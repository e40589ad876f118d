package cli

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/supervisor"
	"github.com/busdk/bus-agent/runner"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/sessions"
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
	log := runner.NewMaskWriter(&supervisor.BoundedLog{File: os.Stderr}, slices.Concat(inv.env.Environ, s.Env))
	err := supervisor.Serve(ctx, supervisor.Options{
		Sessions: &supervisor.Sessions{Folder: what.Folder},
		Entry:    what.Entry,
		Message:  what.Message,
		Idle:     s.Idle,
		Ready:    func() { reporter.Report(supervisor.Report{Ready: true}) },
		Open: func(ctx context.Context, options session.Options, notes supervisor.Notes) (supervisor.Agent, error) {
			warn := func(line string) {
				inv.screen.line(line)
				reporter.Report(supervisor.Report{Warning: line})
				notes.Warn(line)
			}
			options.Stderr = log
			options.Started = func(start agent.Start) {
				notes.Started(start)
				reporter.Report(supervisor.Report{Runtime: start.Runtime, Model: start.Model})
			}
			held, err := inv.hold(ctx, sessions.NewStore(what.Folder), what.Entry.CanonicalID, &s, sessions.StartOptions{Session: options}, warn)
			if err != nil {
				return nil, err
			}
			return supervised{held}, nil
		},
	})
	_ = log.Flush() // a log never fails
	reporter.Fail(err)
	return err
}

// supervised is a session as its supervisor needs it.
type supervised struct{ held *heldSession }

func (s supervised) Session() *session.Session { return s.held.session }

func (s supervised) Send(m session.Message) (*session.Turn, error) {
	return s.held.manager.Send(s.held.handle, sessions.Message{Text: m.Text, Timeout: m.Timeout})
}

func (s supervised) Steer(ctx context.Context, m session.Message) (*session.Turn, error) {
	return s.held.manager.Steer(ctx, s.held.handle, sessions.Message{Text: m.Text, Timeout: m.Timeout})
}

func (s supervised) Stop(ctx context.Context, reason string) { s.held.stop(ctx, reason) }

// request returns the settings of a session that runs have too.
func (s *sessionSettings) request() agent.Request {
	return agent.Request{
		Place: s.Record.place(),
		Model: s.Model, ReasoningEffort: s.Effort, Verbosity: s.Verbosity,
		Access: s.Access, AllowCommands: s.AllowCommands, AddDirs: s.AddDirs, Args: s.Args,
		TrustWorkspace: s.TrustWorkspace, RequireInstructions: s.RequireInstructions,
		Timeout: s.StartTimeout,
	}
}
