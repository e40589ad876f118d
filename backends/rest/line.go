package rest

import "github.com/busdk/bus-agent/agent"

// line is what any of the lines of bus-agent-rest can hold.
type line struct {
	Type     string `json:"type"`
	Agent    string `json:"agent"`    // start
	Provider string `json:"provider"` // start
	Model    string `json:"model"`    // start, answer
	Text     string `json:"text"`     // all but usage

	Attempt     int `json:"attempt"` // retry
	MaxAttempts int `json:"max_attempts"`

	Input     int64    `json:"input"` // usage
	Cached    int64    `json:"cached"`
	Output    int64    `json:"output"`
	Reasoning int64    `json:"reasoning"`
	CostUSD   *float64 `json:"cost_usd"`

	Error   string `json:"error"`   // result
	Failure string `json:"failure"` // result, retry
}

// class returns the class of a failure.
func (l *line) class() agent.Failure {
	switch class := agent.Failure(l.Failure); class {
	case agent.FailureAuthentication, agent.FailureQuota, agent.FailureIdleTimeout:
		return class
	}
	return ""
}
