package acp

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session/engine"
)

// The names and shapes of the protocol that an engine needs. What else the agent says
// may be of any shape: only what is read here is checked.

const (
	methodInitialize    = "initialize"
	methodAuthenticate  = "authenticate"
	methodNew           = "session/new"
	methodLoad          = "session/load"
	methodSetMode       = "session/set_mode"
	methodSetModel      = "session/set_model"
	methodSetOption     = "session/set_config_option"
	methodPrompt        = "session/prompt"
	methodCancel        = "session/cancel"
	methodUpdate        = "session/update"             // from the agent
	methodPermission    = "session/request_permission" // from the agent
	methodElicit        = "elicitation/create"         // from the agent
	methodCancelRequest = "$/cancel_request"           // from the agent
	methodNothing       = "_bus-agent/nothing"         // unknown to every agent, so its refusal changes nothing
)

// protocolVersion is the version of the protocol that the engine speaks.
const protocolVersion = 1

// ClientInfo is how an engine introduces itself.
type ClientInfo struct {
	Name    string `json:"name"`
	Title   string `json:"title,omitempty"`
	Version string `json:"version"`
}

// introduction greets the agent.
type introduction struct {
	ProtocolVersion int `json:"protocolVersion"`
	Capabilities    struct {
		Files struct {
			Read  bool `json:"readTextFile"`
			Write bool `json:"writeTextFile"`
		} `json:"fs"`
		Terminal    bool        `json:"terminal"`
		Elicitation elicitation `json:"elicitation"`
	} `json:"clientCapabilities"`
	Info *ClientInfo `json:"clientInfo,omitempty"`
}

// elicitation says what the agent can ask the user: forms.
type elicitation struct {
	Form struct{} `json:"form"`
}

// greeting answers it.
type greeting struct {
	ProtocolVersion   int `json:"protocolVersion"`
	AgentCapabilities struct {
		LoadSession bool               `json:"loadSession"`
		Prompt      promptCapabilities `json:"promptCapabilities"`
		MCP         struct {
			HTTP bool `json:"http"`
			SSE  bool `json:"sse"`
		} `json:"mcpCapabilities"`
	} `json:"agentCapabilities"`
	AuthMethods json.RawMessage `json:"authMethods"` // a list of authMethod
}

// promptCapabilities are the parts of a message that an agent takes, besides text.
type promptCapabilities struct {
	Image    bool `json:"image"`
	Resource bool `json:"embeddedContext"`
}

// authMethod is a way to log in.
type authMethod struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// sessionParams begin or load a session.
type sessionParams struct {
	SessionID  string                     `json:"sessionId,omitempty"`
	Workdir    string                     `json:"cwd"`
	MCPServers []mcpServer                `json:"mcpServers"`
	Meta       map[string]json.RawMessage `json:"_meta,omitempty"`
}

// opened is the answer to them.
type opened struct {
	SessionID string `json:"sessionId"`
	Modes     struct {
		Current string `json:"currentModeId"`
	} `json:"modes"`
	Models *struct {
		Current   string          `json:"currentModelId"`
		Available json.RawMessage `json:"availableModels"` // a list of modelValue
	} `json:"models"` // of agents without an option for it; codex-acp 2.6.0 has both, with other IDs
	Options json.RawMessage `json:"configOptions"` // a list of configOption
}

func (o opened) model() string {
	if option := o.option(optionModel); option != nil || o.Models == nil {
		return option.current()
	}
	return o.Models.Current
}

func (o opened) mode() string {
	return cmp.Or(o.Modes.Current, o.option(optionMode).current())
}

// option returns the option of a category, nil if the agent has none.
func (o opened) option(category string) *configOption {
	var options []json.RawMessage
	_ = json.Unmarshal(o.Options, &options) // then there are none
	for _, raw := range options {
		var c configOption
		if json.Unmarshal(raw, &c) == nil && c.Category == category && c.ID != "" {
			return &c
		}
	}
	return nil
}

// configOption is a setting of a session.
type configOption struct {
	ID       string `json:"id"`
	Category string `json:"category"`
	Value    any    `json:"currentValue"`
	// Options is a list of modelValue, or of groups of them.
	Options json.RawMessage `json:"options"`
}

// modelValue is a model to choose from, in either form, or a group of them.
type modelValue struct {
	ID          string          `json:"modelId"`
	Value       string          `json:"value"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Group       json.RawMessage `json:"options"`
}

// offers returns the models that the agent offers.
func (o opened) offers() []engine.Model {
	if option := o.option(optionModel); option != nil {
		return modelsIn(option.Options)
	}
	if o.Models != nil {
		return modelsIn(o.Models.Available)
	}
	return nil
}

// modelsIn returns the models in a list and in its groups, which can be of any shape.
func modelsIn(list json.RawMessage) (models []engine.Model) {
	for _, v := range modelValues(list) {
		for _, v := range append(modelValues(v.Group), v) {
			if id := cmp.Or(v.ID, v.Value); id != "" && len(models) < engine.MaxModels {
				models = append(models, engine.Model{ID: id, Name: v.Name, Description: v.Description})
			}
		}
	}
	return models
}

func modelValues(list json.RawMessage) []modelValue {
	var values []json.RawMessage
	_ = json.Unmarshal(list, &values) // then there are none
	models := make([]modelValue, 0, min(len(values), engine.MaxModels))
	for _, raw := range values[:min(len(values), engine.MaxModels)] {
		var v modelValue
		if json.Unmarshal(raw, &v) == nil {
			models = append(models, v)
		}
	}
	return models
}

// Categories of options.
const (
	optionModel = "model"
	optionMode  = "mode"
	optionThink = "thought_level"
)

func (c *configOption) current() string {
	if c == nil {
		return ""
	}
	value, _ := c.Value.(string) // others are not to be chosen from
	return value
}

// promptBlock is a piece of a message to the agent: a text, an image or a resource.
type promptBlock struct {
	Type string `json:"type"`
	Text string `json:"text,omitempty"`

	MediaType string `json:"mimeType,omitempty"` // of an image
	Data      []byte `json:"data,omitempty"`

	Resource *resource `json:"resource,omitempty"`
}

// resource is a file that a message has in it.
type resource struct {
	URI       string `json:"uri"`
	MediaType string `json:"mimeType"`
	Data      []byte `json:"blob"`
}

// fileBlock returns the piece of a message that is a file, if the agent takes it.
func (c promptCapabilities) fileBlock(file agent.Attachment) (b promptBlock, ok bool) {
	media := file.MediaType()
	if slices.Contains(agent.ImageTypes(), media) {
		return promptBlock{Type: "image", MediaType: media, Data: file.Data}, c.Image
	}
	return promptBlock{Type: "resource", Resource: &resource{"attachment:///" + escaped(file.Name), media, file.Data}}, c.Resource
}

// escaped returns a name as a part of a URI.
func escaped(name string) string {
	var b strings.Builder
	for i := range len(name) {
		switch c := name[i]; {
		case '0' <= c && c <= '9', 'A' <= c && c <= 'Z', 'a' <= c && c <= 'z', strings.IndexByte("-._~", c) >= 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

type promptParams struct {
	SessionID string        `json:"sessionId"`
	Prompt    []promptBlock `json:"prompt"`
}

// promptResult is how a turn has ended.
type promptResult struct {
	StopReason string `json:"stopReason"`
	Usage      tokens `json:"usage"`
	Meta       struct {
		Quota struct {
			Tokens struct {
				Input  int64 `json:"input_tokens"`
				Output int64 `json:"output_tokens"`
			} `json:"token_count"`
		} `json:"quota"`
	} `json:"_meta"`
}

// tokens are those of a turn.
type tokens struct {
	Total       int64 `json:"totalTokens"` // the sum of all kinds that are not part of another
	Input       int64 `json:"inputTokens"`
	Output      int64 `json:"outputTokens"`
	Thought     int64 `json:"thoughtTokens"`
	CachedRead  int64 `json:"cachedReadTokens"`
	CachedWrite int64 `json:"cachedWriteTokens"`
}

// measure is what an agent reports about a session between its answers.
type measure struct {
	Used int64 `json:"used"`
	Size int64 `json:"size"`
	Cost *struct {
		Amount   float64 `json:"amount"` // of the session
		Currency string  `json:"currency"`
	} `json:"cost"`
}

type cancelParams struct {
	SessionID string `json:"sessionId"`
}

// permission is a request for permission.
type permission struct {
	Options  []option `json:"options"`
	ToolCall toolCall `json:"toolCall"`
}

// option is an answer to it that the agent offers.
type option struct {
	ID   string `json:"optionId"`
	Kind string `json:"kind"`
}

// Kinds of options.
const (
	allowOnce   = "allow_once"
	allowAlways = "allow_always"
	rejectOnce  = "reject_once"
)

// permissionAnswer answers a request for permission.
type permissionAnswer struct {
	Outcome struct {
		OptionID string `json:"optionId,omitempty"`
		Outcome  string `json:"outcome"`
	} `json:"outcome"`
}

func selected(optionID string) (a permissionAnswer) {
	a.Outcome.OptionID, a.Outcome.Outcome = optionID, "selected"
	return a
}

func cancelled() (a permissionAnswer) {
	a.Outcome.Outcome = "cancelled"
	return a
}
