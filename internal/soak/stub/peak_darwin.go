package main

import (
	"os"
	"syscall"
)

// peak returns the peak of the resident memory of a process that has ended.
func peak(state *os.ProcessState) int64 {
	return state.SysUsage().(*syscall.Rusage).Maxrss
}
