package task

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Limits of what is decoded, in bytes.
const (
	MaxPayload   = 8 << 20 // of an event; holds 4 MiB of attachments in base64
	MaxRef       = 200     // of a work reference
	MaxRecipient = 100     // of a recipient
	MaxID        = 128     // of a worker ID, attempt ID or approval ID
	MaxField     = 1 << 10 // of a branch, thread ID, label or other field of one line
)

// ErrInvalid is the kind of the errors of this package: the input cannot be used.
var ErrInvalid = errors.New("invalid task event")

// legacyPrefix begins the names that older programs publish.
const legacyPrefix = "bus.dev.task."

// legacyAttempt is the attempt of legacy events, which do not name one.
const legacyAttempt = "legacy"

var canonical = []string{
	Created, Approved, Assigned, Reopened, Claimed, Progress, Released, Message,
	ApprovalRequested, ApprovalAnswered, Done, Blocked, Failed, Canceled, Closed,
}

// aliases are the legacy names whose last part is not the canonical one.
var aliases = map[string]string{
	legacyPrefix + "new":     Created,
	legacyPrefix + "open":    Created,
	legacyPrefix + "running": Progress,
}

var byName = func() map[string]string {
	names := map[string]string{}
	for _, name := range canonical {
		names[name] = name
		names[legacyPrefix+strings.TrimPrefix(name, "bus.task.")] = name
	}
	for alias, name := range aliases {
		names[alias] = name
	}
	return names
}()

// Names returns the names of the events of a task, canonical ones first, then the legacy
// ones that [Decode] reads as canonical ones. A reader of the log must listen to all of
// them. The caller owns the slice.
func Names() []string {
	names := append([]string(nil), canonical...)
	for _, name := range canonical {
		names = append(names, legacyPrefix+strings.TrimPrefix(name, "bus.task."))
	}
	return append(names, legacyPrefix+"new", legacyPrefix+"open", legacyPrefix+"running")
}

// Decode makes an [Event] from the parts of a delivered envelope. A legacy name becomes
// the canonical one. A member of the payload that is not known is ignored.
//
// An event that cannot be assigned to a task, because its ID, its work reference or its
// payload is unusable, is an error that matches [ErrInvalid]. An event of a task with
// another defect, such as a name or an attempt ID that is not one, is returned:
// [State.Apply] counts it as seen, which conditional appends depend on, and reports what is
// wrong with it.
//
// The event keeps references to payload, which the caller must not change.
func Decode(id, name, source string, at time.Time, payload []byte) (Event, error) {
	e := Event{ID: id, Name: name, Source: source, Time: at}
	if !validEventID(id) {
		return Event{}, invalidf("id %s: not evt_ and 19 digits", quote(id))
	}
	if len(payload) > MaxPayload {
		return Event{}, invalidf("event %s: payload of %d bytes; at most %d are read", id, len(payload), MaxPayload)
	}
	if err := json.Unmarshal(payload, &e.Payload); err != nil {
		// Members after one of the wrong type are still read, so the task is known.
		if typeError := (*json.UnmarshalTypeError)(nil); !errors.As(err, &typeError) {
			return Event{}, invalidf("event %s: payload is not JSON: %v", id, err)
		}
		e.problem = "payload: " + line(err.Error(), maxReason)
	}
	if _, err := ParseRef(e.WorkRef); err != nil {
		return Event{}, fmt.Errorf("event %s: %w", id, err)
	}
	if e.problem == "" {
		e.problem = e.normalize()
	}
	return e, nil
}

// normalize replaces older spellings and returns what is wrong with the event, or "".
func (e *Event) normalize() string {
	name, known := byName[e.Name]
	if !known {
		return "unknown name " + quote(e.Name)
	}
	legacy := strings.HasPrefix(e.Name, legacyPrefix)
	e.Name = name
	if legacy && e.AttemptID == "" && ofHolder(name) {
		e.AttemptID = legacyAttempt
	}
	if e.Decision == "acceptForSession" {
		e.Decision = "accept_for_session"
	}
	if e.Recipient != "" {
		recipient, err := ParseRecipient(e.Recipient)
		if err != nil {
			return reason(err)
		}
		e.Recipient = recipient
	}
	return e.invalidField()
}

// ofHolder reports whether only the holder of a task publishes events of that name.
func ofHolder(name string) bool {
	switch name {
	case Claimed, Progress, Released, ApprovalRequested, Done, Blocked, Failed, Closed:
		return true
	}
	return false
}

func (e *Event) invalidField() string {
	for _, f := range []struct{ name, value string }{
		{"worker_id", e.WorkerID}, {"attempt_id", e.AttemptID},
		{"supersedes", e.Supersedes}, {"approval_id", e.ApprovalID},
	} {
		if !validID(f.value) {
			return f.name + ": not 1 to 128 printable ASCII characters without spaces"
		}
	}
	if e.DeliveredID != "" && !validEventID(e.DeliveredID) {
		return "delivered_id: not evt_ and 19 digits"
	}
	if e.Commit != "" && !validCommit(e.Commit) {
		return "commit: not 40 or 64 hexadecimal digits"
	}
	l := e.Labels
	for _, f := range []struct{ name, value string }{
		{"group_id", e.GroupID}, {"sender", e.Sender}, {"status", e.Status},
		{"branch", e.Branch}, {"base_branch", e.BaseBranch}, {"worktree_id", e.WorktreeID},
		{"app_server_thread_id", e.ThreadID}, {"thread_runtime", e.ThreadRuntime}, {"thread_place_id", e.ThreadPlace}, {"run_id", e.RunID}, {"decision", e.Decision},
		{"labels.worker_profile", l.WorkerProfile}, {"labels.requested_model", l.RequestedModel},
		{"labels.observed_model", l.ObservedModel}, {"labels.requested_reasoning_effort", l.RequestedEffort},
		{"labels.auth_mode", l.AuthMode}, {"labels.credential_source_kind", l.CredentialSourceKind},
	} {
		if !validField(f.value) {
			return fmt.Sprintf("%s: longer than %d bytes or not one line", f.name, MaxField)
		}
	}
	return ""
}

// ParseRef checks a work reference such as "busdk#81.1" or "acme/payroll#123.1" and
// returns it. It has letters, digits and _ . # : / -, does not begin with - or /, has no
// "..", and is at most [MaxRef] bytes long. The error matches [ErrInvalid].
func ParseRef(ref string) (string, error) {
	if ref == "" {
		return "", invalidf("work_ref: missing; give one such as busdk#81.1")
	}
	if len(ref) > MaxRef {
		return "", invalidf("work_ref: %d bytes; at most %d are allowed", len(ref), MaxRef)
	}
	if ref[0] == '-' || ref[0] == '/' || strings.Contains(ref, "..") || !only(ref, "_.#:/-") {
		return "", invalidf("work_ref %s: only letters, digits and _ . # : / - are allowed, no - or / at the start and no ..", quote(ref))
	}
	return ref, nil
}

// ParseRecipient checks a recipient such as "bus-dev" and returns it without the "@" that
// may precede it. It names a folder: it has letters, digits and _ . -, does not begin with
// - or ., and is at most [MaxRecipient] bytes long. The error matches [ErrInvalid].
func ParseRecipient(recipient string) (string, error) {
	name := strings.TrimPrefix(recipient, "@")
	if name == "" || len(name) > MaxRecipient || name[0] == '-' || name[0] == '.' || !only(name, "_.-") {
		return "", invalidf("recipient %s: only letters, digits and _ . - are allowed, no - or . at the start, at most %d bytes", quote(recipient), MaxRecipient)
	}
	return name, nil
}

// only reports whether text has ASCII letters, digits and the characters of more.
func only(text, more string) bool {
	for _, c := range []byte(text) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && strings.IndexByte(more, c) < 0 {
			return false
		}
	}
	return true
}

// validEventID reports whether id sorts like its number.
func validEventID(id string) bool {
	digits, ok := strings.CutPrefix(id, "evt_")
	return ok && len(digits) == 19 && strings.Trim(digits, "0123456789") == ""
}

// validID reports whether id is empty or safe to print and to compare.
func validID(id string) bool {
	if len(id) > MaxID {
		return false
	}
	for _, c := range []byte(id) {
		if c < '!' || c > '~' {
			return false
		}
	}
	return true
}

func validCommit(commit string) bool {
	return (len(commit) == 40 || len(commit) == 64) && strings.Trim(commit, "0123456789abcdef") == ""
}

func invalidf(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))
}

// reason returns the text of an error of this package without its kind.
func reason(err error) string {
	return strings.TrimPrefix(err.Error(), ErrInvalid.Error()+": ")
}

// quote makes untrusted text short and safe to print.
func quote(text string) string { return fmt.Sprintf("%.80q", text) }

// line returns the first line of text without control characters, cut to limit bytes. The
// result does not keep text in memory.
func line(text string, limit int) string {
	text = strings.TrimSpace(text)
	if end := strings.IndexAny(text, "\r\n"); end >= 0 {
		text = text[:end]
	}
	text, _ = cut(text, limit)
	return strings.Clone(strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)))
}

// cut returns text as valid UTF-8 of at most limit bytes, and whether it was longer. The
// result does not keep text in memory.
func cut(text string, limit int) (string, bool) {
	if len(text) <= limit {
		return strings.ToValidUTF8(text, "\uFFFD"), false
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return strings.Clone(text[:limit]), true
}

// Bounded returns the payload with the fields of one line that come from agents and
// settings in a form that [Decode] accepts: labels are cut, and invalid thread and run
// IDs are left out.
func (p Payload) Bounded() Payload {
	l := &p.Labels
	for _, label := range []*string{
		&l.WorkerProfile, &l.RequestedModel, &l.ObservedModel, &l.RequestedEffort, &l.AuthMode, &l.CredentialSourceKind,
	} {
		if !validField(*label) {
			*label = line(*label, MaxField)
		}
	}
	for _, id := range []*string{&p.ThreadID, &p.RunID} {
		if !validField(*id) {
			*id = ""
		}
	}
	if p.ThreadID == "" {
		p.ThreadRuntime, p.ThreadPlace = "", ""
	}
	return p
}

func validField(text string) bool {
	return len(text) <= MaxField && !strings.ContainsFunc(text, unicode.IsControl)
}
