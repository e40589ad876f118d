package closeout

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/busdk/bus-agent/structured"
)

// Bounds of what Parse reads. It refuses longer lists.
const (
	MaxAnswer       = 1 << 20 // bytes of an answer, counted from its end
	MaxChangedFiles = 10_000
	MaxItems        = 200 // checks, blockers and note IDs, each
)

// ErrNone: an answer has no closeout, or one that is not valid.
var ErrNone = errors.New("no closeout")

// A Closeout is what an agent reports at the end of a task; app_server_closeout in an
// event. It is a claim until [Judge] has compared it with the work. The zero value
// claims nothing. Methods may be called concurrently while no field changes.
type Closeout struct {
	TaskComplete bool   `json:"task_complete"`
	Status       Status `json:"status,omitempty"`
	Summary      string `json:"summary,omitempty"`

	// ChangedFiles are paths relative to the repository. Nil means that the agent did
	// not report them, an empty list that it changed nothing.
	ChangedFiles []string `json:"changed_files"`

	PlanClosed           bool   `json:"plan_closed"`
	NoMatchingPlanItem   bool   `json:"no_matching_plan_item"`
	NoMatchingPlanReason string `json:"no_matching_plan_reason,omitempty"`

	RequiredChecks    []Check `json:"required_checks"`
	RemainingBlockers Texts   `json:"remaining_blockers"`

	// The worker sets these; what the agent reports is replaced.
	AgentID      string   `json:"agent_id,omitempty"`       // the recipient
	AgentsMDPath string   `json:"agents_md_path,omitempty"` // relative to the repository
	BusNotes     BusNotes `json:"bus_notes,omitzero"`
}

// Status is the state that an agent reports. The empty Status leaves it to the other
// fields.
type Status string

// The statuses that [Schema] allows.
const (
	StatusDone    Status = "done"
	StatusBlocked Status = "blocked"
	StatusFailed  Status = "failed"
)

// A Check is a command that the agent ran to check its work.
type Check struct {
	Command string      `json:"command"`
	Result  CheckResult `json:"result,omitempty"`
	Reason  string      `json:"reason,omitempty"` // why it was skipped
}

// CheckResult is the result of a check. The empty result counts as passed.
type CheckResult string

// The results that [Schema] allows.
const (
	CheckPassed  CheckResult = "pass"
	CheckFailed  CheckResult = "fail"
	CheckSkipped CheckResult = "skip"
)

// BusNotes are the Bus Notes of a task: the IDs of those published, or a query.
type BusNotes struct {
	IDs   []string `json:"ids,omitempty"`
	Query string   `json:"query,omitempty"`
}

// Texts is a list of texts. In JSON an element may be a string or an object, and the
// list may be null or a single element. Blank elements are left out.
type Texts []string

// UnmarshalJSON implements json.Unmarshaler.
func (t *Texts) UnmarshalJSON(data []byte) error {
	elements, err := elements(data)
	if err != nil {
		return err
	}
	*t = make(Texts, 0, len(elements))
	for _, element := range elements {
		text, err := textOf(element, "text", "reason", "blocker", "message", "description", "title", "summary")
		if err != nil {
			return err
		}
		if text != "" {
			*t = append(*t, text)
		}
	}
	return nil
}

// UnmarshalJSON implements json.Unmarshaler. A string is the command.
func (c *Check) UnmarshalJSON(data []byte) error {
	command, err := textOf(data, "command", "check", "name")
	if err != nil {
		return err
	}
	*c = Check{Command: command}
	if data[0] != '{' {
		return nil
	}
	var object struct {
		Result   string `json:"result"`
		Status   string `json:"status"`
		ExitCode *int   `json:"exit_code"`
		Reason   string `json:"reason"`
	}
	if err := json.Unmarshal(data, &object); err != nil {
		return err
	}
	c.Reason = strings.TrimSpace(object.Reason)
	switch strings.ToLower(strings.TrimSpace(cmp.Or(object.Result, object.Status))) {
	case "":
		if object.ExitCode != nil && *object.ExitCode != 0 {
			c.Result = CheckFailed
		}
	case "pass", "passed", "ok", "success", "succeeded":
		c.Result = CheckPassed
	case "skip", "skipped":
		c.Result = CheckSkipped
	default:
		c.Result = CheckFailed
	}
	return nil
}

// elements returns the elements of a list, or data as the only one.
func elements(data []byte) (list []json.RawMessage, err error) {
	switch data = bytes.TrimSpace(data); {
	case bytes.Equal(data, []byte("null")):
		return nil, nil
	case data[0] != '[':
		return []json.RawMessage{data}, nil
	}
	return list, json.Unmarshal(data, &list)
}

// textOf returns the text of a string, or that of the first of names that an object
// has; otherwise the object itself.
func textOf(data []byte, names ...string) (string, error) {
	if data[0] != '{' {
		var text string
		err := json.Unmarshal(data, &text)
		return strings.TrimSpace(text), err
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(data, &object); err != nil {
		return "", err
	}
	for _, name := range names {
		var text string
		if json.Unmarshal(object[name], &text) == nil && strings.TrimSpace(text) != "" {
			return strings.TrimSpace(text), nil
		}
	}
	var compact bytes.Buffer
	err := json.Compact(&compact, data)
	return compact.String(), err
}

// object is the form that any closeout has, bare or as a member.
var object = mustCompile(`{"type":"object","anyOf":[{"required":["task_complete"]},{"required":["app_server_closeout"]}]}`)

func mustCompile(text string) *structured.Schema {
	s, err := structured.Compile([]byte(text))
	if err != nil {
		panic(err)
	}
	return s
}

// Parse returns the closeout of a final answer: the value that package structured finds
// in it, or else the last object that is a closeout. It may be the member
// app_server_closeout of the object. Parse accepts more than [Schema]: fields may be
// missing, and unknown ones are ignored. Errors match ErrNone.
func Parse(answer string) (Closeout, error) {
	answer = tail(answer, MaxAnswer)
	value, err := object.Check(answer)
	if err != nil {
		found, ok := last(answer)
		if !ok {
			return Closeout{}, fmt.Errorf("%w: %s", ErrNone, line(err.Error()))
		}
		value = found
	}
	var outer struct {
		Closeout *Closeout `json:"app_server_closeout"`
	}
	var c Closeout
	if err := json.Unmarshal(value, &outer); err == nil && outer.Closeout != nil {
		c = *outer.Closeout
	} else if err := errors.Join(err, json.Unmarshal(value, &c)); err != nil {
		return Closeout{}, fmt.Errorf("%w: %s", ErrNone, line(err.Error()))
	}
	return c.bounded()
}

// last returns the last object of answer that is a closeout and begins a line.
func last(answer string) (json.RawMessage, bool) {
	const enough = 64 // beginnings that are tried
	end := len(answer)
	for range enough {
		begin := strings.LastIndex(answer[:end], "\n{")
		if begin < 0 {
			return nil, false
		}
		if value, err := object.Check(answer[begin:]); err == nil {
			return value, true
		}
		end = begin
	}
	return nil, false
}

// tail returns the end of text, at most size bytes and beginning with a whole character.
func tail(text string, size int) string {
	if len(text) <= size {
		return text
	}
	at := len(text) - size
	for at < len(text) && !utf8.RuneStart(text[at]) {
		at++
	}
	return text[at:]
}

func (c Closeout) bounded() (Closeout, error) {
	for _, list := range []struct {
		name     string
		has, max int
	}{
		{"changed_files", len(c.ChangedFiles), MaxChangedFiles},
		{"required_checks", len(c.RequiredChecks), MaxItems},
		{"remaining_blockers", len(c.RemainingBlockers), MaxItems},
		{"bus_notes.ids", len(c.BusNotes.IDs), MaxItems},
	} {
		if list.has > list.max {
			return Closeout{}, fmt.Errorf("%w: %s has %d entries; at most %d are allowed", ErrNone, list.name, list.has, list.max)
		}
	}
	c.Status = Status(strings.ToLower(strings.TrimSpace(string(c.Status))))
	return c, nil
}

// shortened returns text cut to size bytes at the end of a character.
func shortened(text string, size int) string {
	if len(text) <= size {
		return text
	}
	const mark = "…"
	at := size - len(mark)
	for at > 0 && !utf8.RuneStart(text[at]) {
		at--
	}
	return text[:at] + mark
}
