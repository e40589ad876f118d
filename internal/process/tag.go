package process

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
)

// TagVariable is the variable with the run's tag: a comma-separated list with an entry for
// each run that a process is part of, the outermost first.
const TagVariable = "BUS_AGENT_RUN"

// newEntry returns an entry that no other run has or had, on this machine or on
// another one that shares its process table: boot, PID namespace, PID and start
// time of this process, and a random number for the run.
func newEntry() string {
	return fmt.Sprintf("%s:%016x", owner(), rand.Uint64())
}

var owner = sync.OnceValue(func() string {
	return identityText(os.Getpid(), ownStart())
})

// environ returns env without what a later entry of the same key replaces, and
// with the run's entry added to the tag.
func (r *run) environ(env []string) []string {
	last := make(map[string]int, len(env))
	for i, entry := range env {
		last[key(entry)] = i
	}
	tag := r.entry
	kept := make([]string, 0, len(env)+1)
	for i, entry := range env {
		switch name := key(entry); {
		case last[name] != i:
		case name == TagVariable:
			if outer := strings.TrimPrefix(entry, TagVariable+"="); outer != "" {
				tag = outer + "," + tag
			}
		default:
			kept = append(kept, entry)
		}
	}
	return append(kept, TagVariable+"="+tag)
}

// outerTag returns the tag in env of a run that starts with it, the last one.
func outerTag(env []string) (tag string) {
	for _, entry := range env {
		if value, ok := strings.CutPrefix(entry, TagVariable+"="); ok {
			tag = value
		}
	}
	return tag
}

func key(entry string) string {
	name, _, _ := strings.Cut(entry, "=")
	return name
}

// tagged reports whether the tag has the entry, whole.
func tagged(tag, entry string) bool {
	for tag != "" {
		var first string
		if first, tag, _ = strings.Cut(tag, ","); first == entry {
			return true
		}
	}
	return false
}

// findTag returns the tag in an environment of NUL-terminated entries. When the
// variable occurs twice, both count.
func findTag(environ []byte) string { return strings.Join(valuesOf(environ, TagVariable), ",") }

// valuesOf returns the values of a variable in an environment of NUL-terminated entries.
func valuesOf(environ []byte, name string) (values []string) {
	prefix := []byte(name + "=")
	for entry := range bytes.SplitSeq(environ, []byte{0}) {
		if value, ok := bytes.CutPrefix(entry, prefix); ok {
			values = append(values, string(value))
		}
	}
	return values
}
