package runs

import (
	"time"

	"github.com/busdk/bus-agent/agent"
)

// KindMessage is the kind of an [Event] that is no event of the agent's: Text is
// what it was told, the prompt first and then each message of a session.
const KindMessage agent.Kind = "message"

// An Event is a line of events.ndjson: {"time":…} and the members of the event.
type Event struct {
	Time time.Time `json:"time"`
	agent.Event
}
