//go:build !linux && !darwin

package process

import (
	"os"
	"syscall"
	"time"

	"github.com/busdk/bus-agent/internal/unix"
)

// Nothing starts here: Supported says why.

type leader struct{ pid int }

func forkLeader(string, []string, *syscall.ProcAttr) (leader, error) {
	return leader{}, Supported()
}

func (*leader) wait()                         {}
func (*leader) reap() (unix.WaitStatus, bool) { return *new(unix.WaitStatus), false }

func buffered(int) (int, error) { return 0, Supported() }
func enlarge(*os.File)          {}

func bootID() string       { return "" }
func pidNamespace() string { return "" }
func ownStart() uint64     { return 0 }
func ownSession() int      { return 0 }

func isGone(int) bool                         { return false }
func signalProcess(process, unix.Signal) bool { return false }

func now() horizon                                { return horizon{at: time.Now()} }
func readTable(horizon, marks) ([]process, error) { return nil, Supported() }
func readProcess(int) (process, error)            { return process{}, Supported() }

var errNoTable = Supported()

func canSee() bool              { return false }
func sameUser(int) bool         { return false }
func programNames(int) []string { return nil }
func bornAt(uint64) time.Time   { return time.Time{} }

func environment(int) []byte { return nil }
