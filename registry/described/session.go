package described

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/session/acp"
	"github.com/busdk/bus-agent/session/engine"
)

// sessions checks what concerns the sessions of d and returns it.
func (d Definition) sessions(id string) (*registry.Session, error) {
	s, err := d.forSessions()
	if err != nil {
		return nil, err
	}
	use, err := s.use(id)
	if err != nil {
		return nil, err
	}
	use.Options.Resume = s.Home == nil || s.Home.Env == "" || len(s.Home.Sessions) > 0
	use.Options.Model = use.Options.Model || s.ACP.Models
	use.Options.Attachments = agent.ImageTypes() // an agent that takes none says so
	use.Command = func(inv registry.Invocation) (agent.Command, error) {
		inv.Prompt = "" // which the engine sends
		return s.command(inv)
	}
	return &registry.Session{
		Use:      use,
		Engine:   s.engine,
		Protocol: outputACP,
		Delivery: engine.DeliverRPC,
	}, nil
}

// forSessions returns the definition of d's sessions: their arguments and settings are
// those of the definition, and their messages need no argument or file.
func (d Definition) forSessions() (*Definition, error) {
	if d.ACP == nil {
		d.ACP = &ACP{}
	}
	if d.Output == outputACP {
		if d.Prompt != promptByStdin {
			return nil, fmt.Errorf("prompt: %q is of no use with output %q, which has messages instead", d.Prompt, outputACP)
		}
		if len(d.Args) > 0 && len(d.ACP.Args) > 0 || len(d.Continue) > 0 {
			return nil, fmt.Errorf("output: with %q the arguments are those of acp; leave out args or acp.args, and continue", outputACP)
		}
	}
	if d.ACP.Args != nil || d.Output != outputACP {
		d.Args = d.ACP.Args
	}
	if d.ACP.Access != nil {
		d.Access = d.ACP.Access
	}
	if d.ACP.Efforts != nil {
		d.Efforts = d.ACP.Efforts
	}
	d.Prompt, d.Continue, d.session = promptByStdin, nil, true
	return &d, nil
}

// engine returns the engine of a session.
func (d *Definition) engine(inv registry.Invocation) engine.Engine {
	e := &acp.Engine{
		AuthMethod:    d.ACP.Authenticate,
		ModelsOffered: d.ACP.Models,
		ModelInArgs:   d.has(holdModel),
		EffortInArgs:  d.has(holdEffort) || d.setsEfforts(),
		Meta:          d.ACP.metaFor(inv),
		ServersInArgs: d.has(holdMCPFile),
		SilenceFails:  d.SilenceFails,
		AnswerFailure: d.answerFailure(),
		Modes:         map[agent.Access]string{},
		Efforts:       map[agent.ReasoningEffort]string{},
		Permits: func(access agent.Access, kind string) bool {
			return access == agent.AccessFull || kind == "edit" && d.Access[access].AcceptEdits
		},
	}
	if len(d.Failures) > 0 {
		e.Failure = func(text string) agent.Failure { return d.failure(0, text) }
	}
	for access, s := range d.Access {
		e.Modes[access] = s.Mode
	}
	for effort, s := range d.Efforts {
		e.Efforts[effort] = s.Option
	}
	return e
}

// setsEfforts reports whether an effort sets variables or files.
func (d *Definition) setsEfforts() bool {
	for _, s := range d.Efforts {
		if len(s.Env)+len(s.Files) > 0 {
			return true
		}
	}
	return false
}

// metaSystem is the string of Meta that stands for the additional system prompt.
const metaSystem = `"` + holdSystem + `"`

// takesSystemPrompt reports whether Meta has the additional system prompt.
func (a *ACP) takesSystemPrompt() bool {
	for _, value := range a.Meta {
		if bytes.Contains(value, []byte(metaSystem)) {
			return true
		}
	}
	return false
}

// metaFor returns Meta for a session.
func (a *ACP) metaFor(inv registry.Invocation) map[string]json.RawMessage {
	if !a.takesSystemPrompt() {
		return a.Meta
	}
	text, err := json.Marshal(inv.AppendSystemPrompt)
	if err != nil {
		panic(err) // a string always marshals
	}
	all := maps.Clone(a.Meta)
	for name, value := range all {
		switch {
		case !bytes.Contains(value, []byte(metaSystem)):
		case inv.AppendSystemPrompt == "":
			delete(all, name)
		default:
			all[name] = bytes.ReplaceAll(value, []byte(metaSystem), text)
		}
	}
	return all
}
