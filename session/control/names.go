package control

import (
	"slices"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session"
)

// idLength is how long the IDs are that sessions are given.
const idLength = 8

// isName reports whether s can name a session: [A-Za-z0-9][A-Za-z0-9._-]{0,63}.
func isName(s string) bool {
	if s == "" || len(s) > 64 || strings.IndexByte("._-", s[0]) >= 0 {
		return false
	}
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && strings.IndexByte("._-", c) < 0 {
			return false
		}
	}
	return true
}

// beginsID reports whether s can be an ID that a session is given, or the beginning
// of one.
func beginsID(s string) bool {
	return s != "" && len(s) <= idLength && strings.Trim(s, "0123456789abcdef") == ""
}

// checkName returns why a new session cannot have a name.
func checkName(name string) error {
	switch {
	case name == "":
		return nil
	case !isName(name):
		return agent.Usagef("%q is not a name for a session: a name is up to 64 letters, digits, dots, dashes and underscores", name)
	case beginsID(name):
		return agent.Usagef("%q is not a name for a session: up to %d digits and letters a to f alone can be the ID of one", name, idLength)
	}
	return nil
}

// checkFree returns why the session e cannot have its name besides the others of
// list, the latest of which comes first.
func checkFree(list []Entry, e Entry) error {
	later := false // another one has the name, and is found by it
	for _, other := range namesakes(list, e) {
		if !other.State.Ended() {
			return usage(ErrNameTaken, "there is a session %q already", e.Name)
		}
		if other.State == session.StateCrashed && other.resumable() {
			label := e.Name
			if later {
				label = other.SessionID
			}
			return usage(ErrNameTaken, "session %q has crashed: \"session resume %s\" continues it, \"session stop %s\" marks it as stopped", e.Name, label, label)
		}
		later = true
	}
	return nil
}

// checkResumable returns why the session e cannot be resumed besides the others of list: a
// command with its name would act on one of two sessions.
func checkResumable(list []Entry, e Entry) error {
	for _, other := range namesakes(list, e) {
		if !other.State.Ended() {
			return usage(ErrNameTaken, "session %s has the name %q, and has not ended", other.SessionID, e.Name)
		}
	}
	return nil
}

// namesakes returns the others of list that have the name of e.
func namesakes(list []Entry, e Entry) []Entry {
	return slices.DeleteFunc(slices.Clone(list), func(other Entry) bool {
		return e.Name == "" || other.Name != e.Name || other.SessionID == e.SessionID
	})
}
