package backend

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/runs"
)

// RecordLabels returns the labels of the run record of an attempt at the task workRef of
// a module. Package runs takes lower-case letters, digits and dashes only. So other
// characters become dashes, and a hash of the original keeps different names different:
// busdk#81.1 becomes busdk-81-1-5f6f0c42. Previous is the run ID of the attempt before,
// empty for the first.
func RecordLabels(module, workRef, previous string) agent.Labels {
	return agent.Labels{
		Project:  recordName(module, runs.CheckProject),
		Task:     recordName(workRef, runs.CheckTask),
		Previous: previous,
	}
}

// recordName returns name in a form that check takes.
func recordName(name string, check func(string) error) string {
	if check(name) == nil {
		return name
	}
	words := strings.FieldsFunc(strings.ToLower(name), func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < '0' || c > '9')
	})
	sum := sha256.Sum256([]byte(name))
	words = append(words, hex.EncodeToString(sum[:4]))
	joined := strings.Join(words, "-")
	const most = 100 // of 128
	if n := len(joined) - most; n > 0 {
		joined = strings.TrimLeft(joined[n:], "-")
	}
	return joined
}
