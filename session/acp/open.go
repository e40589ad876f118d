package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session/engine"
	"github.com/busdk/bus-agent/session/jsonrpc"
)

func (e *Engine) open(ctx context.Context, start engine.Start) (engine.Info, error) {
	agentIs, err := e.initialize(ctx)
	if err != nil {
		return engine.Info{}, err
	}
	e.takes = agentIs.AgentCapabilities.Prompt
	if e.AuthMethod != "" {
		if err := e.order(ctx, methodAuthenticate, map[string]string{"methodId": e.AuthMethod}); err != nil {
			return engine.Info{}, fmt.Errorf("log in: %w", err)
		}
	}
	if e.ServersInArgs {
		start.MCPServers = nil
	}
	servers, err := mcpServers(start.MCPServers, agentIs)
	if err != nil {
		return engine.Info{}, err
	}
	var got opened
	if start.Resume == "" {
		got, err = e.newSession(ctx, start, servers)
	} else if !agentIs.AgentCapabilities.LoadSession {
		err = fmt.Errorf("resume: %w", engine.ErrUnsupported)
	} else {
		got, err = e.loadSession(ctx, start, servers)
	}
	if err != nil {
		return engine.Info{}, e.withLogins(agentIs, err)
	}
	return e.settings(ctx, got, start)
}

// withLogins adds the agent's ways to log in to an error for lack of a login.
func (e *Engine) withLogins(g greeting, err error) error {
	var methods []authMethod
	if r, ok := errors.AsType[*refusal](err); !ok || e.failure(r) != agent.FailureAuthentication || json.Unmarshal(g.AuthMethods, &methods) != nil || len(methods) == 0 {
		return err
	}
	const maxMethods, maxName = 8, 60
	var names []string
	for _, m := range methods[:min(len(methods), maxMethods)] {
		name := cmp.Or(m.Name, m.ID)
		names = append(names, strings.ToValidUTF8(name[:min(len(name), maxName)], ""))
	}
	return fmt.Errorf("%w; log in with the agent's program, which offers: %s", err, strings.Join(names, ", "))
}

// call sends a request and returns the result, which read, if not nil, gets before the
// agent's next line is read.
func call[T any](ctx context.Context, e *Engine, method string, params any, read func(T)) (T, error) {
	result, err := jsonrpc.Call(ctx, e.conn, method, params, read)
	return result, refused(err)
}

// order sends a request whose result is of no interest.
func (e *Engine) order(ctx context.Context, method string, params map[string]string) error {
	_, err := call[any](ctx, e, method, params, nil)
	return err
}

func (e *Engine) initialize(ctx context.Context) (greeting, error) {
	params := introduction{ProtocolVersion: protocolVersion}
	if e.Info.Name != "" {
		params.Info = &e.Info
	}
	got, err := call[greeting](ctx, e, methodInitialize, params, nil)
	if err != nil {
		return got, fmt.Errorf("greet: %w", err)
	}
	if got.ProtocolVersion != protocolVersion {
		return got, fmt.Errorf("the agent speaks version %d of the protocol, not %d", got.ProtocolVersion, protocolVersion)
	}
	return got, nil
}

func (e *Engine) newSession(ctx context.Context, start engine.Start, servers []mcpServer) (opened, error) {
	got, err := call(ctx, e, methodNew, sessionParams{Workdir: start.Workdir, MCPServers: servers, Meta: e.Meta}, func(got opened) {
		if got.SessionID != "" {
			e.begun(got)
		}
	})
	if err == nil && got.SessionID == "" {
		err = errors.New("the agent gives no session ID")
	}
	if err != nil {
		return got, fmt.Errorf("begin a session: %w", err)
	}
	return got, nil
}

// settleLimit is how long an agent may take to repeat the history of a session
// that it has loaded.
const settleLimit = 5 * time.Second

func (e *Engine) loadSession(ctx context.Context, start engine.Start, servers []mcpServer) (opened, error) {
	if err := e.waitToLoad(ctx, start.Created); err != nil {
		return opened{}, fmt.Errorf("wait to load session %s: %w", start.Resume, err)
	}
	e.mu.Lock()
	e.loading = true
	e.mu.Unlock()
	got, err := e.load(ctx, start, servers)
	if err != nil {
		return got, fmt.Errorf("load session %s: %w", start.Resume, err)
	}
	limited, cancel := context.WithTimeout(ctx, settleLimit)
	defer cancel()
	for over := false; !over; {
		if over, err = e.quiet(limited); err != nil && limited.Err() == nil {
			return got, err
		}
	}
	e.mu.Lock()
	e.loading = false // at the latest now
	e.mu.Unlock()
	return got, context.Cause(ctx)
}

func (e *Engine) load(ctx context.Context, start engine.Start, servers []mcpServer) (opened, error) {
	params := sessionParams{SessionID: start.Resume, Workdir: start.Workdir, MCPServers: servers, Meta: e.Meta}
	got, err := call(ctx, e, methodLoad, params, func(got opened) {
		got.SessionID = start.Resume
		e.begun(got)
	})
	got.SessionID = start.Resume
	return got, err
}

// quiet reports whether the agent sent nothing of earlier turns before it answered a
// request. It sends nothing more of them then: it sends each update when the one before
// is written.
func (e *Engine) quiet(ctx context.Context) (bool, error) {
	e.mu.Lock()
	before := e.dropped
	e.mu.Unlock()
	over := make(chan bool, 1)
	_, _, err := e.conn.Start(ctx, methodNothing, struct{}{}, func(m *jsonrpc.Message) {
		e.mu.Lock()
		defer e.mu.Unlock()
		quiet := m != nil && e.dropped == before
		if quiet {
			e.loading = false // before anything else of the agent is read
		}
		if m == nil {
			close(over)
			return
		}
		over <- quiet
	})
	if err != nil {
		return true, err
	}
	select {
	case quiet, ok := <-over:
		if !ok {
			return true, jsonrpc.ErrClosed
		}
		return quiet, nil
	case <-ctx.Done():
		return true, context.Cause(ctx)
	}
}

// begun makes got the session, before the agent reports more about it.
func (e *Engine) begun(got opened) {
	e.mu.Lock()
	e.sessionID, e.opened = got.SessionID, got
	e.mu.Unlock()
	e.emit(&agent.Event{Kind: agent.KindSessionStarted, SessionID: got.SessionID, Model: got.model()})
}

// configured takes the options that the session has now, and reports whether they are a
// list. The model can be another one then.
func (e *Engine) configured(options json.RawMessage) bool {
	var list []json.RawMessage
	if json.Unmarshal(options, &list) != nil {
		return false
	}
	e.mu.Lock()
	before := e.opened.model()
	e.opened.Options = slices.Clone(options)
	event := agent.Event{Kind: agent.KindHeartbeat}
	if now := e.opened.model(); now != before && now != "" {
		event = agent.Event{Kind: agent.KindSessionStarted, SessionID: e.sessionID, Model: now}
	}
	e.mu.Unlock()
	e.emit(&event)
	return true
}

// settings sets the mode, the model and the effort that start names, unless the agent
// has them already. An agent without models has got its model by its command line, or
// cannot; the same goes for the effort.
func (e *Engine) settings(ctx context.Context, got opened, start engine.Start) (engine.Info, error) {
	info := engine.Info{SessionID: got.SessionID, Model: got.model(), Models: got.offers()}
	if mode := e.Modes[start.Access]; mode != "" && mode != got.mode() {
		if err := e.SetAccess(ctx, start.Access); err != nil {
			return info, err
		}
	}
	offered := got.Models != nil || got.option(optionModel) != nil
	switch {
	case e.ModelInArgs:
		info.Model = cmp.Or(start.Model, info.Model)
	case (offered || e.ModelsOffered) && start.Model != "" && start.Model != got.model():
		if err := e.SetModel(ctx, start.Model); err != nil {
			if err == engine.ErrUnsupported {
				err = fmt.Errorf("set model %s: %w", start.Model, err)
			}
			return info, err
		}
		info.Model = start.Model
	}
	effort := cmp.Or(e.Efforts[start.Effort], string(start.Effort))
	switch option := got.option(optionThink); {
	case effort == "":
	case option == nil && !e.EffortInArgs:
		e.emit(&agent.Event{Kind: agent.KindWarning, Text: fmt.Sprintf("the agent offers no reasoning effort for this model; %q is ignored", start.Effort)})
	case option != nil && effort != option.current():
		if err := e.setOption(ctx, option, effort); err != nil {
			return info, err
		}
	}
	return info, nil
}

// SetModel sets the model of the following turns.
func (e *Engine) SetModel(ctx context.Context, model string) error {
	e.mu.Lock()
	session := e.opened
	e.mu.Unlock()
	if option := session.option(optionModel); option != nil {
		return e.setOption(ctx, option, model)
	}
	if session.Models != nil {
		return e.set(ctx, methodSetModel, "model", model, map[string]string{"modelId": model})
	}
	return engine.ErrUnsupported
}

// SetAccess sets the mode for what the agent may do from now on.
func (e *Engine) SetAccess(ctx context.Context, access agent.Access) error {
	mode := e.Modes[access]
	if mode == "" {
		return engine.ErrUnsupported
	}
	e.mu.Lock()
	session := e.opened
	e.mu.Unlock()
	var err error
	if option := session.option(optionMode); option != nil && session.Modes.Current == "" {
		err = e.setOption(ctx, option, mode)
	} else {
		err = e.set(ctx, methodSetMode, "mode", mode, map[string]string{"modeId": mode})
	}
	if err == nil {
		e.mu.Lock()
		if access != e.access { // what was accepted for the session was so with the other one
			clear(e.accepted)
		}
		e.access = access
		e.mu.Unlock()
	}
	return err
}

// setOption sets an option to a value.
func (e *Engine) setOption(ctx context.Context, option *configOption, value string) error {
	return e.set(ctx, methodSetOption, option.Category, value, map[string]string{"configId": option.ID, "value": value})
}

// set sets what, the model or the mode, to the one with an ID.
func (e *Engine) set(ctx context.Context, method, what, id string, params map[string]string) error {
	e.mu.Lock()
	params["sessionId"] = e.sessionID
	e.mu.Unlock()
	err := e.order(ctx, method, params)
	if refusal, ok := errors.AsType[*refusal](err); ok && refusal.code == jsonrpc.CodeMethodNotFound {
		return engine.ErrUnsupported
	}
	if err != nil {
		return fmt.Errorf("set %s %s: %w", what, id, err)
	}
	return nil
}
