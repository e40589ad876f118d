package appserver

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestHeldItemsAreBounded reports items without end in one turn of a thread, and of
// many threads.
func TestHeldItemsAreBounded(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", 1<<20)
	for _, threads := range []int{1, 40} {
		var d decoder
		for n := range 60 {
			subagent := ""
			if threads > 1 {
				subagent = fmt.Sprint("thread ", n%threads)
			}
			for _, said := range []Notification{
				{"item/started", json.RawMessage(fmt.Sprintf(`{"item":{"id":"f%d","type":"fileChange","changes":[{"path":%q}]}}`, n, large))},
				{"item/agentMessage/delta", json.RawMessage(fmt.Sprintf(`{"itemId":"%d%s","delta":"x"}`, n, large))},
			} {
				d.events(said, subagent, "")
			}
			held := len(d.proposed) + len(d.streamed)
			for _, other := range d.others {
				held += len(other.proposed) + len(other.streamed)
			}
			if held<<20 > 2*maxHeld {
				t.Fatalf("%d threads hold %d MiB", threads, held)
			}
		}
	}
}
