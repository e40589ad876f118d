package acpagent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/control"
)

// IDs of the options of a session.
const (
	optionMode   = "mode"
	optionModel  = "model"
	optionEffort = "effort"
)

const (
	// autoModel lets the runtime choose the model.
	autoModel = "auto"
	// defaultEffort is that of the runtime.
	defaultEffort = "default"
)

// supported returns what sessions of the runtime support.
func (s *conversation) supported() registry.Options {
	switch {
	case s.settings.Mode == session.ModeTmux && s.runtime.Terminal != nil:
		return s.runtime.Terminal.Options
	case s.runtime.Session != nil:
		return s.runtime.Session.Options
	}
	return registry.Options{}
}

// modes returns the modes of the session; s.mu is held.
func (s *conversation) modes() *modeState {
	m := &modeState{Current: string(cmp.Or(s.settings.Access, agent.AccessWrite)), Available: []mode{}}
	for _, access := range agent.Accesses() {
		if slices.Contains(s.supported().Access, access) {
			m.Available = append(m.Available, accesses[access])
		}
	}
	if len(m.Available) == 0 {
		return nil
	}
	return m
}

// options returns the options of the session; s.mu is held.
func (s *conversation) options() []configOption {
	list := []configOption{}
	add := func(id, name, category, current string, values ...optionValue) {
		if !slices.ContainsFunc(values, func(v optionValue) bool { return v.Value == current }) {
			values = append([]optionValue{{Value: current, Name: current}}, values...)
		}
		list = append(list, configOption{Type: "select", ID: id, Name: name, Category: category, Current: current, Options: values})
	}
	if m := s.modes(); m != nil {
		var values []optionValue
		for _, mode := range m.Available {
			values = append(values, optionValue{mode.ID, mode.Name, mode.Description})
		}
		add(optionMode, "Access", "mode", m.Current, values...)
	}
	supported := s.supported()
	if supported.Model {
		values := []optionValue{{Value: autoModel, Name: "Chosen by the runtime"}}
		for _, m := range s.session.Info().Models {
			if m.ID != autoModel {
				values = append(values, optionValue{m.ID, cmp.Or(m.Name, m.ID), m.Description})
			}
		}
		add(optionModel, "Model", "model", cmp.Or(s.settings.Model, autoModel), values...)
	}
	if len(supported.Efforts) > 0 {
		var values []optionValue
		for _, effort := range supported.Efforts {
			values = append(values, optionValue{Value: string(effort), Name: string(effort)})
		}
		add(optionEffort, "Effort", "thought_level", cmp.Or(string(s.settings.ReasoningEffort), defaultEffort), values...)
	}
	return list
}

// set takes the parameters of a request that changes a setting.
func (c *connection) set(ctx context.Context, params json.RawMessage, done func(answer, error)) {
	var p setParams
	err := decode(params, &p)
	var s *conversation
	if err == nil {
		s, err = c.session(p.SessionID)
	}
	if err == nil && !s.queue.add(func() {
		err := s.set(ctx, p)
		s.mu.Lock()
		result := optionsResult{s.options()}
		s.mu.Unlock()
		done(answer{result: result}, err)
	}) {
		err = errBusy
	}
	if err != nil {
		done(answer{}, err)
	}
}

// set changes a setting, and reports the change as the client did not ask for it in that
// form.
func (s *conversation) set(ctx context.Context, p setParams) error {
	option, value := p.Option, ""
	switch {
	case p.Mode != "":
		option, value = optionMode, p.Mode
	case p.Model != "":
		option, value = optionModel, p.Model
	default:
		if json.Unmarshal(p.Value, &value) != nil || value == "" {
			return invalid("the value of option %q is not a text", option)
		}
	}
	s.mu.Lock()
	options, settings := s.options(), s.settings
	s.mu.Unlock()
	i := slices.IndexFunc(options, func(o configOption) bool { return o.ID == option })
	if i < 0 {
		return invalid("the session has no option %q", option)
	}
	if options[i].Current == value {
		return nil
	}
	known := slices.ContainsFunc(options[i].Options, func(v optionValue) bool { return v.Value == value })
	if !known && option != optionModel {
		return invalid("%q is not a value of option %q", value, option)
	}
	if err := s.change(ctx, option, value, settings); err != nil {
		return err
	}
	if option == optionMode && p.Mode == "" {
		s.update(modeUpdate{updateMode, value})
	}
	if p.Option == "" {
		s.mu.Lock()
		options = s.options()
		s.mu.Unlock()
		s.update(optionsUpdate{updateOptions, options})
	}
	return nil
}

// change changes an option: while the agent runs if it can, and by a restart if not.
func (s *conversation) change(ctx context.Context, option, value string, settings control.Settings) error {
	err := error(session.ErrUnsupported)
	s.mu.Lock()
	handle, busy := s.handle, len(s.turns) > 0
	s.mu.Unlock()
	call, cancel := context.WithTimeoutCause(ctx, s.c.server.grace(), errNoAnswer)
	defer cancel()
	switch option {
	case optionMode:
		settings.Access = agent.Access(value)
		err = s.manager.SetAccess(call, handle, settings.Access)
	case optionModel:
		settings.Model = value
		if value != autoModel {
			err = s.manager.SetModel(call, handle, value)
		}
	case optionEffort:
		settings.ReasoningEffort = agent.ReasoningEffort(value)
	}
	switch {
	case err == nil:
		s.mu.Lock()
		s.settings = settings
		s.mu.Unlock()
		return nil
	case !errors.Is(err, session.ErrUnsupported) && !errors.Is(err, control.ErrNotRunning):
		return err
	case busy:
		return errBusy
	}
	return s.restart(ctx, settings)
}
