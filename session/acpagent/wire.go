package acpagent

import "encoding/json"

// The names and shapes of the protocol that an agent needs, of the schema of version 1.

const (
	methodInitialize    = "initialize"
	methodNew           = "session/new"
	methodLoad          = "session/load"
	methodResume        = "session/resume"
	methodList          = "session/list"
	methodClose         = "session/close"
	methodPrompt        = "session/prompt"
	methodCancel        = "session/cancel"
	methodSetMode       = "session/set_mode"
	methodSetModel      = "session/set_model" // of earlier clients
	methodSetOption     = "session/set_config_option"
	methodCancelRequest = "$/cancel_request"
	methodUpdate        = "session/update"             // to the client
	methodPermission    = "session/request_permission" // to the client
	methodElicit        = "elicitation/create"         // to the client
)

// protocolVersion is the version of the protocol that is spoken.
const protocolVersion = 1

// Codes of errors, besides those of package jsonrpc.
const (
	codeAuthRequired = -32000
	codeNotFound     = -32002
	codeCancelled    = -32800
)

// empty is an object without members: a capability, or an answer.
type empty struct{}

// implementation is a program and its version.
type implementation struct {
	Name    string `json:"name"`
	Title   string `json:"title,omitempty"`
	Version string `json:"version"`
}

type initializeParams struct {
	Capabilities struct {
		Session struct {
			Notices *empty `json:"notices"`
		} `json:"session"`
		Elicitation struct {
			Form *empty `json:"form"`
		} `json:"elicitation"`
	} `json:"clientCapabilities"`
}

type initializeResult struct {
	ProtocolVersion int               `json:"protocolVersion"`
	Capabilities    agentCapabilities `json:"agentCapabilities"`
	Info            implementation    `json:"agentInfo"`
	AuthMethods     []empty           `json:"authMethods"`
}

type agentCapabilities struct {
	LoadSession bool `json:"loadSession"`
	Prompt      struct {
		Image           bool `json:"image"`
		Audio           bool `json:"audio"`
		EmbeddedContext bool `json:"embeddedContext"`
	} `json:"promptCapabilities"`
	MCP struct {
		HTTP bool `json:"http"`
		SSE  bool `json:"sse"`
	} `json:"mcpCapabilities"`
	Session struct {
		List   empty `json:"list"`
		Resume empty `json:"resume"`
		Close  empty `json:"close"`
	} `json:"sessionCapabilities"`
}

// sessionParams begin, load or resume a session, or are about one.
type sessionParams struct {
	SessionID   string      `json:"sessionId"`
	Workdir     string      `json:"cwd"`
	Directories []string    `json:"additionalDirectories"`
	MCPServers  []mcpServer `json:"mcpServers"`
}

// mcpServer is an MCP server that a session gets. One with a command has no type.
type mcpServer struct {
	Type    string     `json:"type"`
	Name    string     `json:"name"`
	Command string     `json:"command"`
	Args    []string   `json:"args"`
	Env     []variable `json:"env"`
	URL     string     `json:"url"`
	Headers []variable `json:"headers"`
}

type variable struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// sessionResult answers them.
type sessionResult struct {
	SessionID string         `json:"sessionId,omitempty"` // of a new one
	Modes     *modeState     `json:"modes,omitempty"`
	Options   []configOption `json:"configOptions"`
}

type modeState struct {
	Current   string `json:"currentModeId"`
	Available []mode `json:"availableModes"`
}

type mode struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description"`
}

// configOption is a setting of a session.
type configOption struct {
	Type     string        `json:"type"` // select
	ID       string        `json:"id"`
	Name     string        `json:"name"`
	Category string        `json:"category"`
	Current  string        `json:"currentValue"`
	Options  []optionValue `json:"options"`
}

type optionValue struct {
	Value       string `json:"value"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
}

type setParams struct {
	SessionID string          `json:"sessionId"`
	Mode      string          `json:"modeId"`
	Model     string          `json:"modelId"`
	Option    string          `json:"configId"`
	Value     json.RawMessage `json:"value"`
}

type optionsResult struct {
	Options []configOption `json:"configOptions"`
}

type listParams struct {
	Workdir string `json:"cwd"`
	After   string `json:"cursor"` // where the page begins
}

type listResult struct {
	Sessions []sessionInfo `json:"sessions"`
	Next     string        `json:"nextCursor,omitempty"`
}

type sessionInfo struct {
	SessionID string `json:"sessionId"`
	Workdir   string `json:"cwd"`
	Title     string `json:"title,omitempty"`
	UpdatedAt string `json:"updatedAt,omitempty"`
}

type promptParams struct {
	SessionID string  `json:"sessionId"`
	Prompt    []block `json:"prompt"`
}

// block is a piece of content.
type block struct {
	Type     string    `json:"type"`
	Text     string    `json:"text"`
	Name     string    `json:"name,omitempty"`
	URI      string    `json:"uri,omitempty"`
	Data     string    `json:"data,omitempty"` // of an image, in base64
	Resource *resource `json:"resource,omitempty"`
}

type resource struct {
	URI  string  `json:"uri"`
	Text *string `json:"text"` // nil for bytes
	Blob string  `json:"blob"` // bytes, in base64
}

type promptResult struct {
	StopReason string `json:"stopReason"`
	Usage      *usage `json:"usage,omitempty"`
}

// usage is what a turn has consumed.
type usage struct {
	Total   int64 `json:"totalTokens"`
	Input   int64 `json:"inputTokens"`
	Output  int64 `json:"outputTokens"`
	Cached  int64 `json:"cachedReadTokens,omitempty"`
	Thought int64 `json:"thoughtTokens,omitempty"`
}

// notification reports something about a session: one of the updates below.
type notification struct {
	SessionID string `json:"sessionId"`
	Update    any    `json:"update"`
}

// Kinds of updates.
const (
	updateUser     = "user_message_chunk"
	updateText     = "agent_message_chunk"
	updateThought  = "agent_thought_chunk"
	updateCall     = "tool_call"
	updateCallMore = "tool_call_update"
	updatePlan     = "plan"
	updateMode     = "current_mode_update"
	updateOptions  = "config_option_update"
	updateUsage    = "usage_update"
	updateNotice   = "notice"
)

type textUpdate struct {
	Kind      string    `json:"sessionUpdate"`
	Content   textBlock `json:"content"`
	MessageID string    `json:"messageId,omitempty"`
}

type textBlock struct {
	Type string `json:"type"` // text
	Text string `json:"text"`
}

func text(s string) textBlock { return textBlock{"text", s} }

type callUpdate struct {
	Kind string `json:"sessionUpdate"`
	toolCall
}

// toolCall is a tool call, or what is new of one.
type toolCall struct {
	ID        string          `json:"toolCallId"`
	Title     string          `json:"title,omitempty"`
	Name      string          `json:"name,omitempty"`
	Kind      string          `json:"kind,omitempty"`
	Status    string          `json:"status,omitempty"`
	RawInput  json.RawMessage `json:"rawInput,omitempty"`
	RawOutput json.RawMessage `json:"rawOutput,omitempty"`
	Locations []location      `json:"locations,omitempty"`
	Content   []piece         `json:"content,omitempty"`
}

// Statuses of a tool call.
const (
	callPending   = "pending"
	callRunning   = "in_progress"
	callCompleted = "completed"
	callFailed    = "failed"
)

type location struct {
	Path string `json:"path"`
}

// piece is a piece of what a tool has given: a text or a change of a file.
type piece struct {
	Type    string     `json:"type"` // content or diff
	Content *textBlock `json:"content,omitempty"`
	Path    string     `json:"path,omitempty"`
	OldText *string    `json:"oldText,omitempty"`
	NewText *string    `json:"newText,omitempty"`
}

type planUpdate struct {
	Kind    string      `json:"sessionUpdate"`
	Entries []planEntry `json:"entries"`
}

type planEntry struct {
	Content  string `json:"content"`
	Priority string `json:"priority"`
	Status   string `json:"status"`
}

type modeUpdate struct {
	Kind string `json:"sessionUpdate"`
	Mode string `json:"currentModeId"`
}

type optionsUpdate struct {
	Kind    string         `json:"sessionUpdate"`
	Options []configOption `json:"configOptions"`
}

// usageUpdate is how much of the context is in use, and what the session has cost.
type usageUpdate struct {
	Kind string `json:"sessionUpdate"`
	Used int64  `json:"used"`
	Size int64  `json:"size"`
	Cost *cost  `json:"cost,omitempty"`
}

type cost struct {
	Amount   float64 `json:"amount"`
	Currency string  `json:"currency"`
}

type noticeUpdate struct {
	Kind     string `json:"sessionUpdate"`
	Severity string `json:"severity"`
	Title    string `json:"title"`
}

// permissionParams ask for permission.
type permissionParams struct {
	SessionID string             `json:"sessionId"`
	ToolCall  toolCall           `json:"toolCall"`
	Options   []permissionOption `json:"options"`
}

type permissionOption struct {
	ID   string `json:"optionId"`
	Name string `json:"name"`
	Kind string `json:"kind"`
}

type permissionResult struct {
	Outcome struct {
		Outcome  string `json:"outcome"`
		OptionID string `json:"optionId"`
	} `json:"outcome"`
}

// cancelParams withdraw a request.
type cancelParams struct {
	RequestID json.RawMessage `json:"requestId"`
}
