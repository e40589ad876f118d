package board

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/busdk/bus-integration-task/task"
)

// action is what a user does on the page.
type action struct {
	Do       string `json:"do"` // say, answer, approve, cancel or reopen
	Ref      string `json:"ref"`
	Text     string `json:"text,omitempty"`
	Approval string `json:"approval,omitempty"` // answer: ID of the approval request
	Decision string `json:"decision,omitempty"` // answer
}

// refusal is an action that is refused, with its status code.
type refusal struct {
	code int
	why  string
}

func (r *refusal) Error() string { return r.why }

// act publishes the event of an action. The log decides whether the event has an effect:
// an answer that arrives after another one has none.
func (s *server) act(w http.ResponseWriter, r *http.Request) {
	a, err := readAction(w, r)
	var name string
	var payload task.Payload
	if err == nil {
		name, payload, err = s.eventOf(r.Context(), a)
	}
	if refused, ok := errors.AsType[*refusal](err); ok {
		refuse(w, refused.code, refused.why)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), askTimeout)
	defer cancel()
	if err := s.o.Log.Publish(ctx, name, payload); err != nil {
		refuse(w, http.StatusBadGateway, "not published: "+line(err.Error(), maxTitle))
		return
	}
	answer(w, http.StatusAccepted, map[string]bool{"accepted": true})
}

func readAction(w http.ResponseWriter, r *http.Request) (a action, err error) {
	if media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); media != "application/json" {
		return a, &refusal{http.StatusUnsupportedMediaType, "an action is application/json"}
	}
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxActionSize))
	if err != nil {
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			return a, &refusal{http.StatusRequestEntityTooLarge, fmt.Sprintf("the text is too long; the limit is %d KiB", maxActionSize>>10)}
		}
		return a, &refusal{http.StatusBadRequest, "the request ended early"}
	}
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&a); err != nil || decoder.More() {
		return a, &refusal{http.StatusBadRequest, "the action is not valid JSON of an action"}
	}
	return a, nil
}

// eventOf checks an action against what the board has seen and returns its event.
func (s *server) eventOf(ctx context.Context, a action) (name string, p task.Payload, err error) {
	state, known := s.tasks.find(a.Ref)
	if !known {
		if state, err = s.stateOf(ctx, a.Ref); err != nil {
			return "", p, err
		}
	}
	status, recipient := state.Status, state.Recipient
	p = task.Payload{WorkRef: a.Ref, Sender: s.o.Sender}
	p.Text, p.Body = summary(a.Text)
	conflict := func(when string) error { return &refusal{http.StatusConflict, "the task " + when} }
	switch a.Do {
	case "say":
		if p.Text == "" {
			return "", p, &refusal{http.StatusBadRequest, "the message is empty"}
		}
		if status.Ended() {
			return "", p, conflict("has ended; reopen it with the message")
		}
		return task.Message, p, nil
	case "answer":
		if !slices.Contains(decisions, a.Decision) {
			return "", p, &refusal{http.StatusBadRequest, "the decision must be one of " + strings.Join(decisions, ", ")}
		}
		if !asks(&state, a.Approval) {
			return "", p, conflict("does not wait for this answer any more")
		}
		p.ApprovalID, p.Decision = a.Approval, a.Decision
		return task.ApprovalAnswered, p, nil
	case "approve":
		if status != task.StatusPending {
			return "", p, conflict("does not wait for approval")
		}
		p.Recipient = recipient
		return task.Approved, p, nil
	case "cancel":
		if status.Ended() {
			return "", p, conflict("has ended already")
		}
		return task.Canceled, p, nil
	case "reopen":
		if !status.Ended() {
			return "", p, conflict("has not ended")
		}
		p.Recipient = recipient
		return task.Reopened, p, nil
	}
	return "", p, &refusal{http.StatusBadRequest, "unknown action"}
}

// stateOf reads the state of a task that the board does not keep.
func (s *server) stateOf(ctx context.Context, ref string) (state task.State, err error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	if ref == "" || len(ref) > maxRef {
		return state, &refusal{http.StatusBadRequest, "ref: it must be the reference of a task"}
	}
	if err := s.o.Log.Task(ctx, ref, func(e task.Event) { state.Apply(e) }); err != nil {
		return state, &refusal{http.StatusBadGateway, "cannot read the task from the log: " + line(err.Error(), maxTitle)}
	}
	if state.Status == task.StatusUnknown {
		return state, &refusal{http.StatusNotFound, "the log has no task with this reference"}
	}
	return state, nil
}

var decisions = []string{"accept", "accept_for_session", "decline", "cancel"}

// summary splits a message into the one line that a summary has, and the whole text if it
// has more.
func summary(text string) (first, body string) {
	text = strings.TrimSpace(text)
	first, rest, more := strings.Cut(text, "\n")
	if more && strings.TrimSpace(rest) != "" {
		return strings.TrimSpace(first), text
	}
	return first, ""
}
