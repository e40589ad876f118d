package main

import (
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

// class is what kind of failure it was; empty is any other.
type class string

const (
	authentication class = "authentication"
	quota          class = "quota"
)

// A failure says why there is no answer.
type failure struct {
	text   string
	class  class
	status int // of HTTP, where that says it
	// again says that the same request can succeed later, after at least the
	// time in after.
	again bool
	after time.Duration
}

// errorBodySize is as much of the body of a refusal as is read, in bytes.
const errorBodySize = 16 << 10

// refused returns the failure that a response which is no answer stands for.
func refused(response *http.Response, now time.Time, out *output) *failure {
	body, _ := io.ReadAll(io.LimitReader(response.Body, errorBodySize)) // what there is of it is enough
	text, code := explain(body, response.Header.Get("Content-Type"), out)
	status := response.StatusCode
	f := &failure{
		text:   fmt.Sprintf("the server answers %d %s", status, http.StatusText(status)),
		status: status,
		class:  classify(status, code, text),
	}
	f.text = strings.TrimSpace(f.text)
	if text != "" {
		f.text += ": " + text
	}
	f.again = isTemporary(status) && !isSpent(code, text)
	f.after = retryAfter(response.Header.Get("Retry-After"), now)
	return f
}

// isTemporary reports whether a request with this answer can succeed later.
func isTemporary(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests:
		return true
	case http.StatusNotImplemented, http.StatusHTTPVersionNotSupported:
		return false
	}
	return status >= 500 && status < 600
}

// isSpent reports whether what is used up does not come back by waiting.
func isSpent(code, text string) bool {
	return code == "insufficient_quota" || strings.Contains(strings.ToLower(text), "billing")
}

// classify reads the class of a failure from its status, which is 0 where there is
// none, its code and its text.
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
	case has("insufficient_quota", "rate_limit_exceeded", "rate_limit_error", "429"),
		status == http.StatusForbidden && has("credit", "quota", "billing", "spending limit"):
		return quota
	case status == http.StatusForbidden, has("invalid_api_key", "authentication_error", "incorrect api key", "invalid api key", "401"):
		return authentication
	}
	return ""
}

// clipSize bounds what is quoted of a server, in bytes.
const clipSize = 1000

// explain returns what a body says went wrong, on one line, and the word for it.
func explain(body []byte, contentType string, out *output) (text, code string) {
	if text, code = readError(body, out); text != "" || code != "" {
		return text, code
	}
	if kind, _, _ := mime.ParseMediaType(contentType); kind == "text/html" {
		return "a page of HTML", ""
	}
	return out.clip(string(body)), ""
}

// readError reads the forms in which servers say that something went wrong: an
// object or a text in "error", or the words at the top.
func readError(body []byte, out *output) (text, code string) {
	var e struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
		Detail  json.RawMessage `json:"detail"`
		Code    json.RawMessage `json:"code"`
	}
	if !readable(json.Unmarshal(body, &e)) {
		return "", ""
	}
	var inner struct {
		Message string          `json:"message"`
		Type    string          `json:"type"`
		Code    json.RawMessage `json:"code"`
	}
	if json.Unmarshal(e.Error, &text) != nil && readable(json.Unmarshal(e.Error, &inner)) {
		text, code = inner.Message, word(inner.Code)
		if code == "" {
			code = inner.Type
		}
	}
	if code == "" {
		code = word(e.Code)
	}
	if text == "" {
		text = e.Message
	}
	if text == "" {
		text = word(e.Detail)
	}
	if text == "" {
		text = code
	}
	return out.clip(text), out.clip(code)
}

// readable reports whether err is nil or says of a member alone that it is not
// what it should be; the others have been read then.
func readable(err error) bool {
	var wrong *json.UnmarshalTypeError
	return err == nil || errors.As(err, &wrong) && wrong.Field != ""
}

// word returns a text or number as text.
func word(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	if text = string(raw); text == "null" {
		return ""
	}
	return text
}

// clip returns text on one line, without what is not for the eye, and cut where
// it is long.
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

// unreachable returns the failure that an error of a request stands for.
func unreachable(err error, out *output) *failure {
	var sent *url.Error
	if errors.As(err, &sent) {
		err = sent.Err // its own text has the whole address
	}
	if elsewhere := (*redirection)(nil); errors.As(err, &elsewhere) {
		return &failure{text: "the server redirects the request: it leads " + out.clip(elsewhere.to) + elsewhere.words}
	}
	return &failure{text: "the server cannot be reached: " + out.clip(err.Error()), again: isTransient(err), after: notNamed}
}
