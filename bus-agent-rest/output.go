package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"
	"unicode/utf8"
)

// A line is one line of output. The package comment says which members a type
// has.
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

	*Tokens

	Error   string `json:"error,omitempty"`
	Failure class  `json:"failure,omitempty"`
	Status  int    `json:"status,omitempty"`
}

// Tokens is what an answer cost.
type Tokens struct {
	Input     int64    `json:"input"`
	Cached    int64    `json:"cached"`
	Output    int64    `json:"output"`
	Reasoning int64    `json:"reasoning"`
	CostUSD   *float64 `json:"cost_usd,omitempty"`
}

// output writes lines, each with one write. It is used by one goroutine.
type output struct {
	to    io.Writer
	token string
	// fail is told when a line cannot be written; then none is any more.
	fail context.CancelCauseFunc
	err  error
	// buffer is reused.
	buffer bytes.Buffer
}

func (o *output) write(l *line) {
	if o.err != nil {
		return
	}
	o.mask(l)
	o.buffer.Reset()
	encoder := json.NewEncoder(&o.buffer)
	encoder.SetEscapeHTML(false)
	if o.err = encoder.Encode(l); o.err == nil {
		_, o.err = o.to.Write(o.buffer.Bytes())
	}
	if o.err != nil {
		o.fail(o.err)
	}
}

// What is shorter is a word that local servers want in place of a token, which an
// answer may well hold.
const (
	secretSize = 8
	answerSize = 16
)

// mask takes the token out of what a server may have sent back.
func (o *output) mask(l *line) {
	if len(o.token) < secretSize {
		return
	}
	hide := func(s *string) { *s = o.hide(*s, secretSize) }
	hide(&l.Error)
	if len(o.token) >= answerSize || l.Type != "text" && l.Type != "thinking" && l.Type != "result" {
		for _, s := range []*string{&l.Text, &l.ID, &l.Model, &l.Endpoint, &l.FinishReason} {
			hide(s)
		}
		for i := range l.Citations {
			hide(&l.Citations[i])
		}
	}
}

// hide returns text without the token, when that has so many bytes.
func (o *output) hide(text string, size int) string {
	if len(o.token) < size {
		return text
	}
	return strings.ReplaceAll(text, o.token, "***")
}

// clip returns a text for a line, as [clip] does. The token is taken out first: of
// one that is cut, a part would remain.
func (o *output) clip(text string) string { return clip(o.hide(text, secretSize)) }

// clipSaid is clip for what belongs to the answer; see answerSize.
func (o *output) clipSaid(text string) string { return clip(o.hide(text, answerSize)) }

// pieceSize bounds the text of one line, in bytes, so that no reader finds a line
// too long.
const pieceSize = 1 << 20

// say writes a text of any length.
func (o *output) say(kind, text string) {
	for len(text) > 0 {
		piece := text
		if len(piece) > pieceSize {
			piece = piece[:pieceSize]
			for len(piece) > pieceSize-utf8.UTFMax && !utf8.RuneStart(text[len(piece)]) {
				piece = piece[:len(piece)-1]
			}
		}
		text = text[len(piece):]
		o.write(&line{Type: kind, Text: piece})
	}
}
