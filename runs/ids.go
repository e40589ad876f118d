package runs

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/busdk/bus-agent/agent"
)

// The forms of IDs: those that the writers of the Agent Protocol make, and those of its
// examples, "task-001" and "test-run".
var (
	nameForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`) })
	runForm  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]*$`) })
)

// maxName bounds IDs, in bytes: they are names of folders.
const maxName = 128

// CheckProject returns an agent.ErrUsage error for an invalid project ID.
func CheckProject(id string) error { return checkName("project", id) }

// CheckTask returns an agent.ErrUsage error for an invalid task ID.
func CheckTask(id string) error { return checkName("task", id) }

func checkName(what, id string) error {
	if len(id) > maxName || !nameForm().MatchString(id) {
		return agent.Usagef("%s %q is not of lower-case letters, digits and inner dashes", what, id)
	}
	return nil
}

// CheckRun returns an agent.ErrUsage error for an invalid run ID.
func CheckRun(id string) error {
	if len(id) > maxName || !runForm().MatchString(id) {
		return agent.Usagef("run %q is not of letters, digits, dashes and underscores", id)
	}
	return nil
}

// newTask returns the ID of a new task: the time, a name made from about, and a random
// part.
func newTask(now time.Time, about string) string {
	var random [3]byte
	_, _ = rand.Read(random[:]) // it never fails
	name := slug(about, 40)
	if name != "" {
		name += "-"
	}
	return "task-" + now.UTC().Format("20060102-150405") + "-" + name + hex.EncodeToString(random[:])
}

// projectOf returns the project ID for a folder, made from its name.
func projectOf(folder string) string {
	if id := slug(filepath.Base(folder), 64); id != "" {
		return id
	}
	return "project"
}

// slug returns text in lower-case letters, digits and inner dashes.
func slug(text string, limit int) string {
	var b strings.Builder
	for _, c := range strings.ToLower(text) {
		switch {
		case c >= 'a' && c <= 'z' || c >= '0' && c <= '9':
			b.WriteRune(c)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
		if b.Len() >= limit {
			break
		}
	}
	return strings.Trim(b.String(), "-")
}

// runNumber counts the runs of this process.
var runNumber atomic.Int64

// newRunID returns an ID that is unique in this process. Processes with the same PID in
// different containers can have the same one.
func newRunID(now time.Time) string {
	now = now.UTC()
	return fmt.Sprintf("%s%04d-%d-%d", now.Format("20060102-150405"), now.Nanosecond()/100_000, os.Getpid(), runNumber.Add(1))
}
