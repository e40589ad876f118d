//go:build !linux

package instructions

// isMagic reports whether a link leads each process elsewhere. There are none
// without /proc.
func isMagic(string) bool { return false }
