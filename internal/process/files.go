package process

import (
	"io"
	"os"
)

// fill writes the content and goes back to the start. It closes f when it fails.
func fill(f *os.File, content []byte) (*os.File, error) {
	_, err := f.Write(content)
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
