//go:build !linux

package process

import "os"

// inheritedFile returns a file with the content, at its start, that has no name
// in any directory.
func inheritedFile(content []byte) (*os.File, error) {
	f, err := os.CreateTemp("", "bus-agent-")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		f.Close()
		return nil, err
	}
	return fill(f, content)
}
