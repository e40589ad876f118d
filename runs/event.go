package runs

import (
	"time"

	"github.com/busdk/bus-agent/agent"
)

// KindMessage is the kind of an [Event] that is a message to the agent: Text is the
// prompt, or a message of a session.
const KindMessage agent.Kind = "message"

// An Event is a line of events.ndjson: an object with "time" and the members of the
// agent's event.
type Event struct {
	Time time.Time `json:"time"`
	agent.Event

	// Attachments are the files of a message, without their content.
	Attachments []agent.AttachmentInfo `json:"attachments,omitempty"`
}
