//go:build !linux

package tree

import "github.com/busdk/bus-agent/internal/unix"

// makeReadable gives the user all rights to a directory, which is not a link.
func makeReadable(at int, name string) error {
	return unix.Fchmodat(at, name, 0o700, unix.AT_SYMLINK_NOFOLLOW)
}
