package backendtest

import (
	"strings"
)

var sessionRules = []rule{
	{name: "session", test: session, spoken: true,
		applies: func(h *Harness) bool { return h.Lines.Session != "" },
		text:    "A run reports the ID of its session."},
	{name: "resume", test: resume, spoken: true,
		applies: func(h *Harness) bool { return h.Runtime.Run.Options.Resume },
		text:    "A session is resumed by its ID, which reaches the CLI; what is kept for that is named by Instructions.Owned and goes when it is cleaned."},
	{name: "continue", test: continued, spoken: true,
		applies: func(h *Harness) bool { return h.Runtime.Run.Options.Continue },
		text:    "The latest session of the workdir is continued, and that reaches the CLI."},
}

// begin runs a session that can be resumed, and returns its ID.
func (w *world) begin() string {
	steps := w.answer("fine")
	if w.SessionFile != "" {
		steps = append([]Step{WriteFile(w.SessionFile, "{}\n")}, steps...)
	}
	o := w.succeed(w.request(), steps...)
	if w.Lines.Session != "" && o.result.SessionID == "" {
		w.fatalf("the run reports no session")
	}
	return w.sessionID()
}

func session(w *world) {
	id := w.sessionID()
	o := w.succeed(w.request(), w.answer("fine")...)
	if id == "" || o.result.SessionID != id {
		w.failf("the session is %q", o.result.SessionID)
	}
}

func resume(w *world) {
	before := w.snapshot(w.root)
	id := w.begin()
	if list := before.changes(w.snapshot(w.root), w.root, w.keeps); len(list) > 0 {
		w.failf("the first run left what Instructions.Owned does not name: %s", strings.Join(list, ", "))
	}
	for _, token := range w.tokens() {
		req := w.request()
		req.Runtime, req.Resume = token, id
		req.Args = []string{"--backendtest-own"}
		o := w.arrived(req)
		if o.err != nil {
			w.failf("the resumed run of %s fails: %v", token, o.err)
		}
		if !strings.Contains(strings.Join(o.seen.Args, "\x00"), id) {
			w.failf("%s was started with %s", token, quoted(o.seen.Args))
		}
		if !containsRun(o.seen.Args, req.Args) {
			w.failf("the caller's arguments do not arrive: %s", quoted(o.seen.Args))
		}
	}
	w.clean("after resuming", before)
}

func continued(w *world) {
	before := w.snapshot(w.root)
	w.begin()
	plain := w.difference(w.request())
	req := w.request()
	req.Continue = true
	if w.difference(req) == plain {
		w.failf("it is the same to the CLI as a new session")
	}
	if o := w.arrived(req); o.err != nil {
		w.failf("the continued run fails: %v", o.err)
	}
	w.clean("after continuing", before)
}
