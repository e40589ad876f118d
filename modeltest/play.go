package modeltest

import (
	"context"
	"net/http"
	"strings"
)

// A dialect is a provider's form of model requests and answers.
type dialect interface {
	name() string
	// matches reports whether r asks a model in this form.
	matches(r *Request) bool
	parse(r *Request) (content, error)
	// answer starts an answer to r on w that reports u. Nothing is sent before
	// the first call of one of its methods.
	answer(w http.ResponseWriter, r *Request, u Usage) answer
	// refuse sends an error instead of an answer.
	refuse(w http.ResponseWriter, e HTTPError)
}

// An answer sends the content of one reply.
type answer interface {
	text(deltas []string)
	thinking(deltas []string)
	tool(call ToolCall)
	fail(f Fail)
	finish()
}

var dialects = []dialect{responses{}, chat{}, messages{}, generate{}}

// dialectOf returns the form of a request, nil if it does not ask a model, or asks aside.
func dialectOf(r *Request) dialect {
	d := formOf(r)
	if d != nil && asideReply(d, r) != "" {
		return nil
	}
	return d
}

func formOf(r *Request) dialect {
	if r.Method != http.MethodPost {
		return nil
	}
	for _, d := range dialects {
		if d.matches(r) {
			return d
		}
	}
	return nil
}

// play sends the reply to r, step by step.
func (s *Server) play(w http.ResponseWriter, client context.Context, d dialect, r *Request, reply Reply) {
	a := d.answer(w, r, reply.usage())
	for _, step := range reply {
		switch step := step.(type) {
		case Text:
			a.text(step)
		case Thinking:
			a.thinking(step)
		case ToolCall:
			a.tool(step)
		case Wait:
			if !s.hold(client, step) {
				panic(http.ErrAbortHandler)
			}
		case Silence:
			s.hold(client, nil)
			panic(http.ErrAbortHandler)
		case Fail:
			a.fail(step)
			return
		case Cut:
			panic(http.ErrAbortHandler)
		case HTTPError:
			d.refuse(w, step)
			return
		}
	}
	a.finish()
}

// hold waits for release and reports whether it came; false means that the
// client or the server goes away.
func (s *Server) hold(client context.Context, release <-chan struct{}) bool {
	select {
	case <-release:
		return true
	case <-client.Done():
		return false
	case <-s.closing.Done():
		return false
	}
}

// sendError sends an error status with the given JSON document, or with the
// body of e where it has one.
func sendError(w http.ResponseWriter, e HTTPError, document []byte) {
	for name, values := range e.Header {
		w.Header()[http.CanonicalHeaderKey(name)] = values
	}
	body := document
	if e.Body != "" {
		body = []byte(e.Body)
	}
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "application/json")
		if e.Body != "" && !strings.HasPrefix(e.Body, "{") {
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		}
	}
	w.WriteHeader(e.status())
	_, _ = w.Write(body) // a client that is gone needs no answer
}

func (e HTTPError) status() int {
	if e.Status == 0 {
		return http.StatusInternalServerError
	}
	return e.Status
}
