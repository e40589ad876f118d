package events

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/busdk/bus-agent/jsonline"
)

// Kinds of errors.
var (
	// ErrInvalid: the request, or what the server sent, is malformed or too large.
	ErrInvalid = errors.New("invalid")
	// ErrUnauthorized: the token is missing, invalid or expired.
	ErrUnauthorized = errors.New("unauthorized")
	// ErrForbidden: the token lacks a scope.
	ErrForbidden = errors.New("forbidden")
	// ErrConflict: the log has another latest event than [Client.Append] expected. Nothing
	// was stored.
	ErrConflict = errors.New("conflict")
	// ErrUnavailable: the server was not reached, or cannot serve now. After Publish and
	// Append the event may have been stored.
	ErrUnavailable = errors.New("unavailable")
)

// Error is the error of a call.
type Error struct {
	Kind    error  // one of the kinds of this package
	Status  int    // HTTP status; 0 if there was no answer
	Message string // one line
	LastID  string // ErrConflict: the latest event, if the server knows; "" also if there is none
	cause   error
}

func (e *Error) Error() string {
	if e.cause != nil {
		return e.Message + ": " + e.cause.Error()
	}
	return e.Message
}

// Unwrap returns the kind and the cause.
func (e *Error) Unwrap() []error {
	if e.cause == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.cause}
}

func invalid(format string, args ...any) error {
	return &Error{Kind: ErrInvalid, Message: fmt.Sprintf(format, args...)}
}

func unavailable(what string, cause error) error {
	return &Error{Kind: ErrUnavailable, Message: what, cause: cause}
}

// ErrorBody is the body of an answer that is an error.
type ErrorBody struct {
	Error ErrorDetail `json:"error"`
}

// ErrorDetail describes an error to a client. LastID comes with a conflict.
type ErrorDetail struct {
	Type    string  `json:"type"`
	Message string  `json:"message"`
	Action  string  `json:"action,omitempty"` // what to do about it
	LastID  *string `json:"last_id,omitempty"`
}

// kindOf returns the kind of an HTTP status that is not a success.
func kindOf(status int) error {
	switch {
	case status == http.StatusUnauthorized:
		return ErrUnauthorized
	case status == http.StatusForbidden:
		return ErrForbidden
	case status == http.StatusConflict:
		return ErrConflict
	case status >= 500 || status == http.StatusTooManyRequests || status == http.StatusRequestTimeout:
		return ErrUnavailable
	}
	return ErrInvalid
}

// failed returns the error for an answer.
func failed(status int, detail ErrorDetail) *Error {
	text := strings.TrimSpace(detail.Message)
	if text == "" {
		text = http.StatusText(status)
	}
	if detail.Action != "" {
		text += "; " + detail.Action
	}
	e := &Error{Kind: kindOf(status), Status: status, Message: fmt.Sprintf("events server: %d: %s", status, oneLine(text))}
	if detail.LastID != nil {
		e.LastID = *detail.LastID
	}
	return e
}

// oneLine makes text of a server safe to print: one bounded line without controls.
func oneLine(text string) string {
	const most = 500
	if len(text) > most {
		text = text[:most] + "..."
	}
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || jsonline.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
}
