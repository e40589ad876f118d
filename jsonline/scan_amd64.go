//go:build !purego

package jsonline

import "golang.org/x/sys/cpu"

// wide says that the processor has what scanWide needs.
var wide = cpu.X86.HasAVX2

// wideSize is how many bytes scanWide looks at together.
const wideSize = 32

// scanWide continues from i, which is not in an escape, while there are 32 bytes
// left, and stops at the first of them that is a quote that is not escaped, a
// control character, or a backslash that begins no escape of two characters. It
// returns the index of that byte, or where fewer than 32 bytes are left, and
// whether it went over an escape.
//
//go:noescape
func scanWide(b []byte, i int) (at int, escaped bool)
