// Command replay is a stub of the Codex CLI: it reads a prompt and says what
// the real one said in a recorded run.
package main

import (
	"bytes"
	_ "embed"
	"io"
	"os"
	"time"
)

//go:embed transcript.ndjson
var transcript []byte

func main() {
	io.Copy(io.Discard, os.Stdin)
	for line := range bytes.Lines(transcript) {
		os.Stdout.Write(line)
		time.Sleep(150 * time.Millisecond) // so that it can be seen to stream
	}
}
