package runs

import "time"

// Status is the state of a run.
type Status string

// The states of runs. Files have the first three; the others are found when a record is
// read.
const (
	StatusRunning   Status = "running"
	StatusCompleted Status = "completed"
	StatusFailed    Status = "failed"
	// StatusCrashed: the file has StatusRunning, but the recording program is gone.
	StatusCrashed Status = "crashed"
	// StatusUnknown: the recording program is on another machine or in another
	// container, or the file has an unknown status.
	StatusUnknown Status = "unknown"
)

// Info is the content of run-info.yaml: the keys of the Agent Protocol in their order,
// then those of bus-agent, which other readers ignore.
type Info struct {
	Version          int       `yaml:"version" json:"version"`
	RunID            string    `yaml:"run_id" json:"run_id"`
	ParentRunID      string    `yaml:"parent_run_id,omitempty" json:"parent_run_id,omitempty"`
	PreviousRunID    string    `yaml:"previous_run_id,omitempty" json:"previous_run_id,omitempty"`
	ProjectID        string    `yaml:"project_id" json:"project_id"`
	TaskID           string    `yaml:"task_id" json:"task_id"`
	Agent            string    `yaml:"agent" json:"agent"` // runtime token
	ProcessOwnership string    `yaml:"process_ownership,omitempty" json:"process_ownership,omitempty"`
	PID              int       `yaml:"pid" json:"pid"`
	PGID             int       `yaml:"pgid" json:"pgid"`
	StartTime        time.Time `yaml:"start_time" json:"start_time"`
	EndTime          time.Time `yaml:"end_time" json:"end_time,omitzero"` // zero while running
	ExitCode         int       `yaml:"exit_code" json:"exit_code"`        // -1 while running
	Status           Status    `yaml:"status" json:"status"`
	CWD              string    `yaml:"cwd,omitempty" json:"cwd,omitempty"`
	PromptPath       string    `yaml:"prompt_path,omitempty" json:"prompt_path,omitempty"`
	OutputPath       string    `yaml:"output_path,omitempty" json:"output_path,omitempty"`
	StdoutPath       string    `yaml:"stdout_path,omitempty" json:"stdout_path,omitempty"`
	StderrPath       string    `yaml:"stderr_path,omitempty" json:"stderr_path,omitempty"`
	CommandLine      string    `yaml:"commandline,omitempty" json:"commandline,omitempty"`
	ErrorSummary     string    `yaml:"error_summary,omitempty" json:"error_summary,omitempty"`
	AgentVersion     string    `yaml:"agent_version" json:"agent_version"`

	// Process and Owner identify the agent's process and the recording program among
	// all processes of any time and machine.
	Process string `yaml:"process,omitempty" json:"process,omitempty"`
	Owner   string `yaml:"runner,omitempty" json:"runner,omitempty"`

	Session   bool   `yaml:"session,omitempty" json:"session,omitempty"` // a session, not one run
	Model     string `yaml:"model,omitempty" json:"model,omitempty"`
	SessionID string `yaml:"session_id,omitempty" json:"session_id,omitempty"` // the runtime's
	Access    string `yaml:"access,omitempty" json:"access,omitempty"`
	Signal    string `yaml:"signal,omitempty" json:"signal,omitempty"`
	// ErrorKind is the kind of the error, see agent.KindOf, and Error its text.
	ErrorKind string   `yaml:"error_kind,omitempty" json:"error_kind,omitempty"`
	Error     string   `yaml:"error,omitempty" json:"error,omitempty"`
	Usage     *Usage   `yaml:"usage,omitempty" json:"usage,omitempty"`
	ToolCalls int      `yaml:"tool_calls,omitempty" json:"tool_calls,omitempty"`
	Warnings  []string `yaml:"warnings,omitempty" json:"warnings,omitempty"`
	// EventsPath is where events.ndjson is, EventsVersion the version of its events, see
	// agent.EventsVersion; 0 means 1.
	EventsPath    string `yaml:"events_path,omitempty" json:"events_path,omitempty"`
	EventsVersion int    `yaml:"events_version,omitempty" json:"events_version,omitempty"`
	// RecordProblem is why the record is incomplete.
	RecordProblem string `yaml:"record_problem,omitempty" json:"record_problem,omitempty"`
}

// Usage is agent.Usage in run-info.yaml.
type Usage struct {
	Input      int64    `yaml:"input" json:"input"`
	Cached     int64    `yaml:"cached" json:"cached"`
	Output     int64    `yaml:"output" json:"output"`
	Reasoning  int64    `yaml:"reasoning" json:"reasoning"`
	CostUSD    *float64 `yaml:"cost_usd,omitempty" json:"cost_usd,omitempty"`
	Cumulative bool     `yaml:"cumulative,omitempty" json:"cumulative,omitempty"`

	Context     int64 `yaml:"context,omitempty" json:"context,omitempty"`
	ContextSize int64 `yaml:"context_size,omitempty" json:"context_size,omitempty"`
}
