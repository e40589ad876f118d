package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"strings"
	"unicode/utf8"
)

// A line is one line of output. The package comment lists the members of each type.
type line struct {
	Type string `json:"type"`

	Agent    string `json:"agent,omitempty"`
	Provider string `json:"provider,omitempty"`
	ID       string `json:"id,omitempty"`
	Model    string `json:"model,omitempty"`
	Access   string `json:"access,omitempty"`
	Endpoint string `json:"endpoint,omitempty"`

	Text         string   `json:"text,omitempty"`
	Citations    []string `json:"citations,omitempty"`
	FinishReason string   `json:"finish_reason,omitempty"`

	Attempt     int      `json:"attempt,omitempty"`
	MaxAttempts int      `json:"max_attempts,omitempty"`
	WaitSeconds *float64 `json:"wait_seconds,omitempty"`

	*Usage

	Error   string `json:"error,omitempty"`
	Failure class  `json:"failure,omitempty"`
	Status  int    `json:"status,omitempty"`
}

// Usage is the consumption of an answer. It is exported because encoding/json
// requires that of an embedded pointer.
type Usage struct {
	Input     int64    `json:"input"`
	Cached    int64    `json:"cached"`
	Output    int64    `json:"output"`
	Reasoning int64    `json:"reasoning"`
	CostUSD   *float64 `json:"cost_usd,omitempty"`
}

// plus returns the sum of u and v, each of which may be nil. An unknown cost counts as
// nothing.
func (u *Usage) plus(v *Usage) *Usage {
	if u == nil || v == nil {
		return cmp.Or(u, v)
	}
	sum := Usage{
		Input: u.Input + v.Input, Cached: u.Cached + v.Cached,
		Output: u.Output + v.Output, Reasoning: u.Reasoning + v.Reasoning,
		CostUSD: cmp.Or(u.CostUSD, v.CostUSD),
	}
	if u.CostUSD != nil && v.CostUSD != nil {
		cost := *u.CostUSD + *v.CostUSD
		sum.CostUSD = &cost
	}
	return &sum
}

// An output writes lines, each in one call of Write. It is not safe for concurrent
// use.
type output struct {
	to    io.Writer
	token string
	// fail is called with the first error; later lines are discarded.
	fail context.CancelCauseFunc
	err  error
	buf  bytes.Buffer // reused
}

func (o *output) write(l *line) {
	if o.err != nil {
		return
	}
	o.mask(l)
	o.buf.Reset()
	encoder := json.NewEncoder(&o.buf)
	encoder.SetEscapeHTML(false)
	if o.err = encoder.Encode(l); o.err == nil {
		_, o.err = o.to.Write(o.buf.Bytes())
	}
	if o.err != nil {
		o.fail(o.err)
	}
}

// A token of fewer bytes is not masked: it is a placeholder for a local server, and
// may well occur in a text. Answers may contain longer ones than errors do.
const (
	minToken         = 8
	minTokenInAnswer = 16
)

// mask masks the token in l: a server may have sent it back.
func (o *output) mask(l *line) {
	size := minToken
	switch l.Type {
	case "text", "thinking", "result":
		size = minTokenInAnswer
	}
	l.Error = o.hide(l.Error, minToken)
	for _, s := range []*string{&l.Text, &l.ID, &l.Model, &l.Endpoint, &l.FinishReason} {
		*s = o.hide(*s, size)
	}
	for i, s := range l.Citations {
		l.Citations[i] = o.hide(s, size)
	}
}

// hide masks a token of at least size bytes in text.
func (o *output) hide(text string, size int) string {
	if len(o.token) < size {
		return text
	}
	return strings.ReplaceAll(text, o.token, "***")
}

// clip is [clip] for the text of a server. It masks the token first, because part
// of a truncated token would remain.
func (o *output) clip(text string) string { return clip(o.hide(text, minToken)) }

// clipAnswer is clip for part of an answer.
func (o *output) clipAnswer(text string) string { return clip(o.hide(text, minTokenInAnswer)) }

// maxText is the length of the text of one line, in bytes.
const maxText = 1 << 20

// writeText writes text in lines of type kind.
func (o *output) writeText(kind, text string) {
	for len(text) > 0 {
		n := len(text)
		if n > maxText {
			n = maxText
			for n > maxText-utf8.UTFMax && !utf8.RuneStart(text[n]) {
				n--
			}
		}
		o.write(&line{Type: kind, Text: text[:n]})
		text = text[n:]
	}
}
