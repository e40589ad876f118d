package registry

import (
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/tailscale/hujson"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/instructions"
)

// ReadFile reads a regular file of at most limit bytes, following links, without
// waiting for a pipe or device. The error matches instructions.ErrNotRegular or
// instructions.ErrTooLarge where the file is not such a one. It is for files of the
// user's; those of a repository are read through a Workspace.
func ReadFile(name string, limit int64) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	notRegular := &fs.PathError{Op: "open", Path: name, Err: instructions.ErrNotRegular}
	if !info.Mode().IsRegular() {
		return nil, notRegular
	}
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, notRegular // it was replaced
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = &fs.PathError{Op: "read", Path: name, Err: instructions.ErrTooLarge}
	}
	return data, err
}

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
