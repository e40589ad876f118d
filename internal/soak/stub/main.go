//go:build linux || darwin

// Command stub is the agent of the soak tests. It reads its prompt and prints
// the output that the file of its last argument, --play=FILE, describes.
//
// With --input-format among its arguments it holds a session instead.
//
// Called as "stub measure FILE COMMAND..." it runs a command instead and writes
// the peak of its resident memory in bytes to FILE. It is small itself: what a
// process measures of its child begins with what the parent has.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/busdk/bus-agent/internal/soak"
)

func main() {
	code, err := 0, error(nil)
	switch {
	case len(os.Args) > 3 && os.Args[1] == "measure":
		code, err = measure(os.Args[2], os.Args[3:])
	case slices.Contains(os.Args, "--input-format"):
		err = converse(os.Stdin, os.Stdout)
	default:
		err = play(strings.TrimPrefix(os.Args[len(os.Args)-1], "--play="))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "stub:", err)
		code = 98
	}
	os.Exit(code)
}

func play(file string) error {
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var output soak.Output
	if err := json.Unmarshal(text, &output); err != nil {
		return err
	}
	_, err = io.CopyBuffer(struct{ io.Writer }{os.Stdout}, output.Reader(), make([]byte, 256<<10))
	return err
}

func measure(file string, command []string) (code int, err error) {
	child, err := os.StartProcess(command[0], command, &os.ProcAttr{Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}})
	if err != nil {
		return 0, err
	}
	// The reader and the writer of the child see it end.
	os.Stdin.Close()
	os.Stdout.Close()
	state, err := child.Wait()
	if err != nil {
		return 0, err
	}
	return state.ExitCode(), os.WriteFile(file, fmt.Appendln(nil, peak(state)), 0o600)
}
