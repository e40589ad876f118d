package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session/engine"
)

// greeting is what an engine needs of the agent's answer to initialize. What else
// is in it may be of any shape.
type greeting struct {
	ProtocolVersion   int `json:"protocolVersion"`
	AgentCapabilities struct {
		LoadSession bool `json:"loadSession"`
	} `json:"agentCapabilities"`
}

// introduction greets the agent. The SDK's own leaves out what is false, which is
// not what agents were seen to understand.
type introduction struct {
	ProtocolVersion int `json:"protocolVersion"`
	Capabilities    struct {
		Files struct {
			Read  bool `json:"readTextFile"`
			Write bool `json:"writeTextFile"`
		} `json:"fs"`
		Terminal bool `json:"terminal"`
	} `json:"clientCapabilities"` // none
	Info *sdk.Implementation `json:"clientInfo,omitempty"`
}

// opened is what an engine needs of the answer to a session that is begun or
// loaded.
type opened struct {
	SessionID string                 `json:"sessionId"`
	Modes     *sdk.SessionModeState  `json:"modes"`
	Models    *sdk.SessionModelState `json:"models"`
}

func (e *Engine) open(ctx context.Context, start engine.Start) (engine.Info, error) {
	agentIs, err := e.initialize(ctx)
	if err != nil {
		return engine.Info{}, err
	}
	if e.AuthMethod != "" {
		if err := e.order(ctx, sdk.AgentMethodAuthenticate, sdk.AuthenticateRequest{MethodId: e.AuthMethod}); err != nil {
			return engine.Info{}, fmt.Errorf("log in: %w", err)
		}
	}
	var got opened
	if start.Resume == "" {
		got, err = e.newSession(ctx, start)
	} else if !agentIs.AgentCapabilities.LoadSession {
		err = fmt.Errorf("resume: %w", engine.ErrUnsupported)
	} else {
		got, err = e.loadSession(ctx, start)
	}
	if err != nil {
		return engine.Info{}, err
	}
	return e.settings(ctx, got, start)
}

func (e *Engine) initialize(ctx context.Context) (greeting, error) {
	r := newRequest(ctx)
	defer r.settle()
	params := introduction{ProtocolVersion: sdk.ProtocolVersionNumber}
	if e.Info.Name != "" {
		params.Info = &e.Info
	}
	got, err := call[greeting](ctx, e, r, sdk.AgentMethodInitialize, params)
	if err != nil {
		return got, fmt.Errorf("greet: %w", err)
	}
	if got.ProtocolVersion != sdk.ProtocolVersionNumber {
		return got, fmt.Errorf("the agent speaks version %d of the protocol, not %d", got.ProtocolVersion, sdk.ProtocolVersionNumber)
	}
	return got, nil
}

// order sends a request whose answer says nothing but that it was done.
func (e *Engine) order(ctx context.Context, method string, params any) error {
	r := newRequest(ctx)
	defer r.settle()
	_, err := call[json.RawMessage](ctx, e, r, method, params)
	return err
}

func (e *Engine) newSession(ctx context.Context, start engine.Start) (opened, error) {
	r := newRequest(ctx)
	defer r.settle()
	got, err := call[opened](ctx, e, r, sdk.AgentMethodSessionNew, sdk.NewSessionRequest{Cwd: start.Workdir, McpServers: []sdk.McpServer{}})
	if err == nil && got.SessionID == "" {
		err = errors.New("the agent gives no session ID")
	}
	if err != nil {
		return got, fmt.Errorf("begin a session: %w", err)
	}
	e.begun(got)
	return got, nil
}

// settleLimit is how long an agent may take to repeat the history of a session
// that it has loaded.
const settleLimit = 5 * time.Second

func (e *Engine) loadSession(ctx context.Context, start engine.Start) (opened, error) {
	if err := e.waitToLoad(ctx, start.Created); err != nil {
		return opened{}, fmt.Errorf("wait to load session %s: %w", start.Resume, err)
	}
	e.mu.Lock()
	e.loading = true
	e.mu.Unlock()
	got, err := e.load(ctx, start)
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

func (e *Engine) load(ctx context.Context, start engine.Start) (opened, error) {
	r := newRequest(ctx)
	defer r.settle()
	got, err := call[opened](ctx, e, r, sdk.AgentMethodSessionLoad,
		sdk.LoadSessionRequest{SessionId: sdk.SessionId(start.Resume), Cwd: start.Workdir, McpServers: []sdk.McpServer{}})
	if err != nil {
		return got, err
	}
	got.SessionID = start.Resume
	e.begun(got)
	return got, nil
}

// methodNothing is a request that no agent knows, so its refusal changes nothing.
const methodNothing = "_bus-agent/nothing"

// quiet reports whether the agent said nothing of earlier turns before it
// answered a start. It does not go on with them when it has done so: it sends
// each update when the one before is written.
func (e *Engine) quiet(ctx context.Context) (bool, error) {
	r := newRequest(ctx)
	defer r.settle()
	e.mu.Lock()
	before := e.dropped
	e.mu.Unlock()
	_, err := call[json.RawMessage](ctx, e, r, methodNothing, struct{}{})
	if !r.answered.Load() {
		return true, err // it will not
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.dropped != before {
		return false, nil
	}
	e.loading = false // before anything else of the agent is read
	return true, nil
}

// begun takes note of the session before the agent says more about it.
func (e *Engine) begun(got opened) {
	e.mu.Lock()
	e.sessionID, e.models = got.SessionID, got.Models != nil
	e.mu.Unlock()
	e.emit(&agent.Event{Kind: agent.KindSessionStarted, SessionID: got.SessionID, Model: got.model()})
}

func (o opened) model() string {
	if o.Models == nil {
		return ""
	}
	return string(o.Models.CurrentModelId)
}

func (o opened) mode() string {
	if o.Modes == nil {
		return ""
	}
	return string(o.Modes.CurrentModeId)
}

// settings sets what start asks for and the agent does not have already.
// An agent without models has got its model by its command line, or cannot.
func (e *Engine) settings(ctx context.Context, got opened, start engine.Start) (engine.Info, error) {
	info := engine.Info{SessionID: got.SessionID, Model: got.model()}
	e.grant(start.Access)
	if mode := e.Modes[start.Access]; mode != "" && mode != got.mode() {
		if err := e.SetAccess(ctx, start.Access); err != nil {
			return info, err
		}
	}
	if got.Models != nil && start.Model != "" && start.Model != got.model() {
		if err := e.SetModel(ctx, start.Model); err != nil {
			return info, err
		}
		info.Model = start.Model
	}
	return info, nil
}

// SetModel sets the model of the turns to come.
func (e *Engine) SetModel(ctx context.Context, model string) error {
	e.mu.Lock()
	id, able := e.sessionID, e.models
	e.mu.Unlock()
	if !able {
		return engine.ErrUnsupported
	}
	params := sdk.UnstableSetSessionModelRequest{SessionId: sdk.SessionId(id), ModelId: sdk.UnstableModelId(model)}
	return setting("model "+model, e.order(ctx, sdk.AgentMethodSessionSetModel, params))
}

// SetAccess sets the mode for what the agent may do from now on.
func (e *Engine) SetAccess(ctx context.Context, access agent.Access) error {
	mode := e.Modes[access]
	if mode == "" {
		return engine.ErrUnsupported
	}
	e.mu.Lock()
	id := e.sessionID
	e.mu.Unlock()
	params := sdk.SetSessionModeRequest{SessionId: sdk.SessionId(id), ModeId: sdk.SessionModeId(mode)}
	err := setting("mode "+mode, e.order(ctx, sdk.AgentMethodSessionSetMode, params))
	if err == nil {
		e.grant(access)
	}
	return err
}

func (e *Engine) grant(access agent.Access) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.access = access
}

func setting(what string, err error) error {
	if err == nil {
		return nil
	}
	if refusal, ok := errors.AsType[*refusal](err); ok && refusal.code == codeMethodNotFound {
		return engine.ErrUnsupported
	}
	return fmt.Errorf("set %s: %w", what, err)
}
