package process

import (
	"strconv"
	"strings"
)

// An ownerID identifies the program that a run's tag or a folder's claim names.
type ownerID struct {
	boot, namespace string
	pid             int
	born            uint64
}

// parseOwner parses what owner returns.
func parseOwner(text string) (o ownerID, ok bool) {
	fields := strings.Split(text, ":")
	if len(fields) != 4 {
		return o, false
	}
	o.boot, o.namespace = fields[0], fields[1]
	var err error
	if o.pid, err = strconv.Atoi(fields[2]); err != nil || o.pid <= 0 {
		return o, false
	}
	o.born, err = strconv.ParseUint(fields[3], 10, 64)
	return o, err == nil && o.born > 0
}

// parseEntry parses an entry of a tag.
func parseEntry(entry string) (o ownerID, ok bool) {
	i := strings.LastIndex(entry, ":")
	if i < 0 {
		return o, false
	}
	return parseOwner(entry[:i])
}

// dead reports whether the owner is dead for sure. It is not when it ran in
// another PID namespace, on another machine or before a restart of this one: a
// copy of the environment proves nothing there.
func (o ownerID) dead() bool {
	own, ok := parseOwner(owner())
	if !ok || !canSee() || own.boot == "" || own.boot != o.boot || own.namespace != o.namespace {
		return false
	}
	return isGoneOr(o.pid, func(p process) bool { return p.born != o.born || p.dead })
}

// isGoneOr reports whether no process has the PID, or one for which is holds. It is
// false for a process that is hidden.
func isGoneOr(pid int, is func(process) bool) bool {
	p, err := readProcess(pid)
	if err != nil {
		return isGone(pid)
	}
	return is(p)
}
