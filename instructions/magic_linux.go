package instructions

import (
	"path/filepath"

	"golang.org/x/sys/unix"
)

// isMagic reports whether a link is one of /proc, wherever that is mounted. They
// depend on the process that follows them, and some lead where their text does not
// say.
func isMagic(link string) bool {
	var s unix.Statfs_t
	err := unix.Statfs(filepath.Dir(link), &s)
	return err != nil || s.Type == unix.PROC_SUPER_MAGIC
}
