//go:build !amd64 || purego

package jsonline

const (
	wide     = false
	wideSize = 32
)

func scanWide(_ []byte, i int) (at int, escaped bool) { return i, false }
