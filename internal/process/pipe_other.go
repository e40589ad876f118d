//go:build !linux

package process

import "os"

// inputPipe returns a pipe that a child reads from and we write to.
func inputPipe() (child, ours *os.File, err error) { return os.Pipe() }

// outputPipe returns a pipe that we read from and a child writes to.
func outputPipe() (ours, child *os.File, err error) { return os.Pipe() }
