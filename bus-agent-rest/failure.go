package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"
)

// class is the class of a failure; "" is any other.
type class string

const (
	authentication class = "authentication"
	quota          class = "quota"
	idleTimeout    class = "idle_timeout"
)

// A failure is the reason why there is no answer.
type failure struct {
	text   string
	class  class
	status int // of the HTTP response, if it is the failure
	// transient: the same request may succeed later, after at least the time in
	// wait, or useBackoff.
	transient bool
	wait      time.Duration
}

// after returns f with the text of an earlier failure, unless that is nil.
func (f *failure) after(last *failure) *failure {
	if last != nil {
		f.text += "; last failure: " + last.text
	}
	return f
}

// maxErrorBody is how much of the body of an error response is read, in bytes.
const maxErrorBody = 16 << 10

// readRefusal returns the failure of a response with an error status.
func (a *answer) readRefusal(response *http.Response, now time.Time) *failure {
	body, _ := io.ReadAll(io.LimitReader(response.Body, maxErrorBody)) // part of it is enough
	var c chunk
	if isUsable(json.Unmarshal(body, &c)) {
		a.addUsage(&c)
	}
	text, code := explain(body, response.Header.Get("Content-Type"), a.out)
	status, wait := response.StatusCode, retryAfter(response.Header, now)
	f := &failure{
		text:      strings.TrimSpace(fmt.Sprintf("the server returned %d %s", status, http.StatusText(status))),
		status:    status,
		class:     classify(status, code, text),
		transient: isTemporary(status) && !isExhausted(code, text, wait),
		wait:      wait,
	}
	if text != "" {
		f.text += ": " + text
	}
	return f
}

// isTemporary reports whether a request with this status may succeed later.
func isTemporary(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests:
		return true
	case http.StatusNotImplemented, http.StatusHTTPVersionNotSupported:
		return false
	}
	return status >= 500 && status < 600
}

// isExhausted reports whether the error is a quota that waiting does not renew. Texts
// about the rate of requests link to pages about billing as well.
func isExhausted(code, text string, wait time.Duration) bool {
	switch {
	case code == "insufficient_quota":
		return true
	case code == "rate_limit_exceeded", code == "rate_limit_error", wait != useBackoff:
		return false
	}
	return strings.Contains(strings.ToLower(text), "billing")
}

// classify returns the class of an error with an HTTP status, or 0, and the code and
// text of the server.
func classify(status int, code, text string) class {
	text = strings.ToLower(text)
	has := func(words ...string) bool {
		for _, word := range words {
			if strings.Contains(text, word) || code == word {
				return true
			}
		}
		return false
	}
	switch {
	case status == http.StatusUnauthorized:
		return authentication
	case status == http.StatusPaymentRequired || status == http.StatusTooManyRequests:
		return quota
	case status >= 500:
		return ""
	case code == "429", has("insufficient_quota", "rate_limit_exceeded", "rate_limit_error"),
		status == http.StatusForbidden && has("credit", "quota", "billing", "spending limit"):
		return quota
	case status == http.StatusForbidden, code == "401", has("invalid_api_key", "authentication_error", "incorrect api key", "invalid api key"):
		return authentication
	}
	return ""
}

// clipSize bounds a quotation of the server, in bytes.
const clipSize = 1000

// explain returns the error in the body of a response as one line, and its code.
func explain(body []byte, contentType string, out *output) (text, code string) {
	if text, code = readError(body, out); text != "" || code != "" {
		return text, code
	}
	if kind, _, _ := mime.ParseMediaType(contentType); kind == "text/html" {
		return "an HTML page", ""
	}
	return out.clip(string(body)), ""
}

// readError returns the error in a JSON body: an object or string in "error", or
// members of the body itself.
func readError(body []byte, out *output) (text, code string) {
	var e struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
		Detail  json.RawMessage `json:"detail"`
		Code    json.RawMessage `json:"code"`
	}
	if !isUsable(json.Unmarshal(body, &e)) {
		return "", ""
	}
	var inner struct {
		Message string          `json:"message"`
		Type    string          `json:"type"`
		Code    json.RawMessage `json:"code"`
	}
	if json.Unmarshal(e.Error, &text) != nil && isUsable(json.Unmarshal(e.Error, &inner)) {
		text, code = inner.Message, cmp.Or(toText(inner.Code), inner.Type)
	}
	code = cmp.Or(code, toText(e.Code))
	text = cmp.Or(text, e.Message, toText(e.Detail), code)
	return out.clip(text), out.clip(code)
}

// isUsable reports whether err, of json.Unmarshal, is nil or concerns the type of
// single members only. The other members are set then.
func isUsable(err error) bool {
	var mismatch *json.UnmarshalTypeError
	return err == nil || errors.As(err, &mismatch) && mismatch.Field != ""
}

// toText returns a JSON string unquoted and any other value as it is, null as "".
func toText(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}

// clip returns text as one line of printable characters, truncated at clipSize.
func clip(text string) string {
	cut := len(text) > clipSize
	if cut {
		text = strings.ToValidUTF8(text[:clipSize], "")
	}
	text = strings.Join(strings.FieldsFunc(text, func(c rune) bool { return unicode.IsSpace(c) || !unicode.IsPrint(c) }), " ")
	if cut {
		text += " …"
	}
	return text
}

// unreachable returns the failure of a request that got no response.
func unreachable(err error, out *output) *failure {
	var request *url.Error
	if errors.As(err, &request) {
		err = request.Err // without the address, which may contain a key
	}
	if redirect := (*redirectError)(nil); errors.As(err, &redirect) {
		return &failure{text: "the server redirects the request " + out.clip(redirect.to) + redirect.reason}
	}
	return &failure{text: "cannot reach the server: " + out.clip(err.Error()), transient: isTransient(err), wait: useBackoff}
}
