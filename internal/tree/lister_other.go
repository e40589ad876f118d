//go:build !linux

package tree

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/busdk/bus-agent/internal/unix"
)

// A lister lists folders, one at a time. The zero value is ready.
type lister struct{}

// list calls add with the entries of a folder until it returns false. The name is
// valid during the call.
func (l *lister) list(dir string, add func(name []byte, kind fs.FileMode) bool) error {
	d, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer d.Close()
	for {
		entries, err := d.ReadDir(batch)
		for _, e := range entries {
			if !add([]byte(e.Name()), e.Type()) {
				return nil
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
