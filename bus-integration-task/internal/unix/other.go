//go:build !linux && !darwin && !freebsd

package unix

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

const NoFollow = 0

var (
	ErrHeld        = errors.New("another process holds it")
	errUnsupported = fmt.Errorf("bus-integration-task cannot work on %s: %w", runtime.GOOS, errors.ErrUnsupported)
)

func Lock(string) (*os.File, error)                     { return nil, errUnsupported }
func Unlock(f *os.File) error                           { return f.Close() }
func OwnGroup(*exec.Cmd)                                {}
func SignalGroup(cmd *exec.Cmd, _ syscall.Signal) error { return cmd.Process.Kill() }
func IsGone(int) bool                                   { return false }
func FreeSpace(string) (int64, error)                   { return 0, errUnsupported }
func IsReadOnly(*os.File) bool                          { return false }
func IsOwn(os.FileInfo) bool                            { return false }
func Changed(info os.FileInfo) time.Time                { return info.ModTime() }
