package events

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Limits of an event.
const (
	MaxPayloadBytes = 4 << 20                  // payload, as compact JSON
	MaxEventBytes   = MaxPayloadBytes + 64<<10 // whole event, as a line of a stream
	MaxNameBytes    = 200                      // name
	MaxRefBytes     = 200                      // work reference
	idPrefix        = "evt_"
	idDigits        = 19
)

// Event is an event as a stream delivers it.
type Event struct {
	Version       string          `json:"version"` // "v1"
	ID            string          `json:"id"`      // unique; IDs of a log ascend in its order
	Name          string          `json:"name"`
	CorrelationID string          `json:"correlationId,omitempty"`
	Source        string          `json:"source,omitempty"` // program that published it, as it named itself
	Timestamp     time.Time       `json:"timestamp"`        // when the server accepted it, UTC
	Metadata      Metadata        `json:"metadata,omitempty"`
	Payload       json.RawMessage `json:"payload,omitempty"` // valid JSON
	Error         *Failure        `json:"error,omitempty"`
}

// Draft is an event to be published. The server adds the ID, the time and the identity.
type Draft struct {
	Name          string          `json:"name"` // required; see ValidName
	CorrelationID string          `json:"correlationId,omitempty"`
	Source        string          `json:"source,omitempty"` // "" for the Source of the client
	Metadata      Metadata        `json:"metadata,omitempty"`
	Payload       json.RawMessage `json:"payload,omitempty"` // any JSON; nil for null
	Error         *Failure        `json:"error,omitempty"`
}

// Failure is the error that an event reports.
type Failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Published is the answer to an event that the server has stored.
type Published struct {
	ID   string
	Name string
}

// Metadata are labels of an event. Values that are not strings are dropped when it is
// read, since readers must ignore what they do not know.
type Metadata map[string]string

func (m *Metadata) UnmarshalJSON(text []byte) error {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil {
		return err
	}
	if all == nil {
		return nil
	}
	*m = make(Metadata, len(all))
	for key, value := range all {
		var s string
		if len(value) > 0 && value[0] == '"' && json.Unmarshal(value, &s) == nil {
			(*m)[key] = s
		}
	}
	return nil
}

// ValidName reports whether an event can have a name: words of lower-case letters,
// digits, "-" and "_", joined by single dots, at most [MaxNameBytes] long.
func ValidName(name string) bool {
	if len(name) > MaxNameBytes {
		return false
	}
	for word := range strings.SplitSeq(name, ".") {
		if word == "" || strings.ContainsFunc(word, notOfName) {
			return false
		}
	}
	return true
}

func notOfName(r rune) bool {
	return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_'
}

// FormatID returns the ID of the event at a position of the log, counted from 1.
func FormatID(position uint64) string {
	return fmt.Sprintf("%s%0*d", idPrefix, idDigits, position)
}

// ParseID returns the position in the log of an event, from its ID. It reports false for
// other text.
func ParseID(id string) (position uint64, ok bool) {
	digits, ok := strings.CutPrefix(id, idPrefix)
	if !ok || len(digits) != idDigits || strings.ContainsFunc(digits, func(r rune) bool { return r < '0' || r > '9' }) {
		return 0, false
	}
	position, err := strconv.ParseUint(digits, 10, 64)
	return position, err == nil
}
