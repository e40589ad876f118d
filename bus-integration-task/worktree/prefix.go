package worktree

import (
	"bytes"
	"errors"
	"io"
)

// A prefixWriter compares what is written with a file.
type prefixWriter struct {
	file   io.Reader
	ended  bool // the file is shorter than what was written
	differ bool
}

func (w *prefixWriter) Write(data []byte) (int, error) {
	buffer := make([]byte, 32<<10)
	for rest := data; len(rest) > 0 && !w.ended && !w.differ; {
		n, err := io.ReadFull(w.file, buffer[:min(len(buffer), len(rest))])
		w.differ = !bytes.Equal(buffer[:n], rest[:n])
		w.ended = err != nil
		rest = rest[n:]
	}
	return len(data), nil
}

// isPrefix reports whether the file is the beginning, or all, of what was written.
func (w *prefixWriter) isPrefix() bool {
	if w.differ {
		return false
	}
	n, err := io.ReadFull(w.file, make([]byte, 1))
	return w.ended || n == 0 && errors.Is(err, io.EOF)
}
