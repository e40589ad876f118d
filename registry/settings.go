package registry

import (
	"encoding/json"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/instructions"
	"github.com/busdk/bus-agent/internal/statefile"
)

// ReadFile reads a regular file of at most limit bytes, following links, without
// waiting for a pipe or device. The error matches instructions.ErrNotRegular or
// instructions.ErrTooLarge for other files. It is for files of the user; use a Workspace
// for those of a repository.
func ReadFile(name string, limit int64) ([]byte, error) { return statefile.ReadLinked(name, limit) }

// ParseObject returns the members of a JSON object, which can have comments and
// trailing commas. The error matches instructions.ErrUnparsable.
func ParseObject(text []byte) (map[string]json.RawMessage, error) {
	var members map[string]json.RawMessage
	text, err := hujson.Standardize(text)
	if err != nil || json.Unmarshal(text, &members) != nil || members == nil {
		return nil, instructions.ErrUnparsable
	}
	return members, nil
}

// CheckCommandPatterns returns an error of kind agent.ErrUsage for a pattern of
// Invocation.AllowCommands that would end the rule Tool(PATTERN), which some CLIs
// take in a list separated by commas.
func CheckCommandPatterns(patterns []string) error {
	for _, pattern := range patterns {
		if strings.TrimSpace(pattern) == "" || strings.ContainsAny(pattern, "(),\r\n\x00") {
			return agent.Usagef("command pattern %q cannot be allowed: it is empty or has one of ( ) , or a line break", pattern)
		}
	}
	return nil
}
