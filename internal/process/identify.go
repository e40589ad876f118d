package process

import (
	"fmt"
	"strings"

	"github.com/busdk/bus-agent/internal/unix"
)

// A Life is the state of a process that was identified before.
type Life int

// The states of a Life.
const (
	// Unknown: the process is of another machine or container, or of an earlier boot.
	Unknown Life = iota
	Alive
	Dead
)

// Identify returns a text that identifies the process with a PID among those of all
// times and machines: boot, PID namespace, PID and start time. It is an error if no
// such process exists.
func Identify(pid int) (string, error) {
	p, err := readProcess(pid)
	if err == nil && p.dead {
		err = unix.ESRCH
	}
	if err != nil {
		return "", fmt.Errorf("identify process %d: %w", pid, err)
	}
	return identityText(pid, p.born), nil
}

// identifyChild is Identify for a child that is not reaped, also after its end; ""
// where the system reaps it by itself.
func identifyChild(pid int) string {
	p, err := readProcess(pid)
	if err != nil {
		return ""
	}
	return identityText(pid, p.born)
}

// Self returns what Identify returns for this process.
func Self() string { return owner() }

func identityText(pid int, born uint64) string {
	return strings.ReplaceAll(fmt.Sprintf("%s:%s:%d:%d", bootID(), pidNamespace(), pid, born), ",", "")
}

// LifeOf returns whether the process with an identity is alive.
func LifeOf(identity string) Life {
	o, ok := parseOwner(identity)
	if !ok {
		return Unknown
	}
	if o.dead() {
		return Dead
	}
	if p, err := readProcess(o.pid); err == nil && p.born == o.born && strings.HasPrefix(owner(), o.boot+":"+o.namespace+":") {
		return Alive
	}
	return Unknown
}

// Terminate sends SIGTERM to the process with an identity and reports whether it was
// alive. It never signals another process with the same PID.
func Terminate(identity string) bool {
	o, ok := parseOwner(identity)
	return ok && LifeOf(identity) == Alive && signalProcess(process{pid: o.pid, born: o.born}, unix.SIGTERM)
}

// SameBoot reports whether an identity is of this machine and its current boot.
func SameBoot(identity string) bool {
	o, ok := parseOwner(identity)
	return ok && o.boot == bootID()
}
