//go:build unix

package instructions_test

import "syscall"

// The modes of files that tests expect are those of the usual umask.
func init() { syscall.Umask(0o022) }
