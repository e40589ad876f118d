package eventserver

import (
	"encoding/base64"
	"slices"
	"strings"

	"github.com/busdk/bus-integration-task/events"
)

// Subjects. Events of a task are on one subject, with the name in a header; all others
// are on a subject for their name:
//
//	<prefix>.<identity>.task.<work reference>
//	<prefix>.<identity>.name.<event name>
//
// The condition of an append is JetStream's expected last sequence of a subject. In a
// cluster, the leader checks it before it proposes a message, against the messages in its
// store and against the subjects, compared as text, of the proposals that are not yet
// stored. A filter subject with a wildcard is therefore not exact: a proposal for another
// subject that it matches is missed (nats-server v2.15.2,
// checkMsgHeadersPreClusteredProposal). With one literal subject a task it is exact, also
// against appends without a condition.
const (
	taskWord = "task"
	nameWord = "name"
)

const taskPrefix = "bus.task."

// token makes any text one word of a subject.
func token(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }

// subjectOf returns the subject of an event; workRef is "" if it belongs to no task.
func subjectOf(prefix, identity, name, workRef string) string {
	if workRef != "" {
		return prefix + "." + token(identity) + "." + taskWord + "." + token(workRef)
	}
	return prefix + "." + token(identity) + "." + nameWord + "." + name
}

// subjectsOf returns the subjects on which events with the names can be, of one task if
// workRef is set.
func subjectsOf(prefix, identity string, names []string, workRef string) []string {
	if workRef != "" {
		return []string{subjectOf(prefix, identity, "", workRef)}
	}
	var subjects []string
	for _, name := range names {
		if isTaskName(name) {
			subjects = append(subjects, prefix+"."+token(identity)+"."+taskWord+".*")
		}
		subjects = append(subjects, subjectOf(prefix, identity, name, ""))
	}
	slices.Sort(subjects)
	return slices.Compact(subjects)
}

// filterOf is subjectsOf for a reader that leaves out events with other names itself. For
// all tasks it is all subjects of the identity: for several filters, JetStream compares
// every subject of a block of messages for each message, which takes milliseconds if there
// are thousands of tasks (nats-server v2.15.2, firstMatchingMulti).
func filterOf(prefix, identity string, names []string, workRef string) []string {
	if workRef == "" && slices.ContainsFunc(names, isTaskName) {
		return []string{prefix + "." + token(identity) + ".>"}
	}
	return subjectsOf(prefix, identity, names, workRef)
}

// isTaskName reports whether an event with a name and a work reference is of a task.
func isTaskName(name string) bool { return strings.HasPrefix(name, taskPrefix) }

// validRef reports whether text is a work reference.
func validRef(ref string) bool {
	return ref != "" && len(ref) <= events.MaxRefBytes && !strings.ContainsFunc(ref, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("_.#:/-", r)
	})
}

// validLabel reports whether text is the name of a group, a consumer or a program.
func validLabel(text string) bool {
	return text != "" && len(text) <= 128 && !strings.ContainsFunc(text, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("_.@#:/-", r)
	})
}
