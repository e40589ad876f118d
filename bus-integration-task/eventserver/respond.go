package eventserver

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/busdk/bus-integration-task/events"
)

// problem is an answer that is an error.
type problem struct {
	status  int
	kind    string
	message string
	action  string
}

func (p problem) Error() string { return p.message }

func (p problem) detail() events.ErrorDetail {
	return events.ErrorDetail{Type: p.kind, Message: p.message, Action: p.action}
}

func badRequest(message, action string) problem {
	return problem{http.StatusBadRequest, "bad_request", message, action}
}

func forbidden(err error) problem {
	return problem{http.StatusForbidden, "forbidden", err.Error(), "use a token with this scope"}
}

func unauthorized(err error) problem {
	return problem{http.StatusUnauthorized, "invalid_auth", err.Error(), "use a valid bearer token"}
}

var (
	errStopping  = problem{http.StatusServiceUnavailable, "unavailable", "the server is stopping", "try again"}
	errBusy      = problem{http.StatusServiceUnavailable, "unavailable", "too many events are being published", "try again"}
	errStore     = problem{http.StatusServiceUnavailable, "unavailable", "the event store did not answer; the event may have been stored", "read the log before publishing it again"}
	errRead      = problem{http.StatusServiceUnavailable, "unavailable", "the event store cannot be read now", "try again"}
	errFull      = problem{http.StatusServiceUnavailable, "storage_full", "the event store is full; the event was not stored", "free space on the server or raise its limit"}
	errSlow      = problem{http.StatusRequestTimeout, "timeout", "the event was sent too slowly; it was not stored", "try again"}
	errGroups    = badRequest("group: this identity has too many unicast groups", "use one that exists")
	errTooLarge  = problem{http.StatusRequestEntityTooLarge, "too_large", "the event is larger than 4 MiB of payload and 60 KiB of everything else", "publish a smaller event"}
	errManyOpen  = problem{http.StatusTooManyRequests, "too_many_streams", "this identity has too many open streams", "close one, or raise the limit of the server"}
	errExpired   = unauthorized(errors.New("the token has expired"))
	errConflict  = problem{http.StatusConflict, "conflict", "the task has another latest event than last_id; nothing was stored", "read the task and decide again"}
	errConverted = badRequest("the body is not an event in JSON, in UTF-8", "")
)

func respondError(w http.ResponseWriter, p problem) {
	respond(w, p.status, events.ErrorBody{Error: p.detail()})
}

func respondConflict(w http.ResponseWriter, lastID *string) {
	detail := errConflict.detail()
	detail.LastID = lastID
	respond(w, errConflict.status, events.ErrorBody{Error: detail})
}

func respond(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // a client that is gone needs no answer
}
