package instructions

import (
	"path/filepath"

	"golang.org/x/sys/unix"
)

// isMagic reports whether a link is one of /proc, mounted anywhere: its target depends
// on the process, and can differ from its text.
func isMagic(link string) bool {
	var s unix.Statfs_t
	err := unix.Statfs(filepath.Dir(link), &s)
	return err != nil || s.Type == unix.PROC_SUPER_MAGIC
}
