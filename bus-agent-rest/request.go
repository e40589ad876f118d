package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
)

// maxRedirections is how many addresses of one host a request is led through.
const maxRedirections = 5

// A redirection is one that is not followed.
type redirection struct{ to, words string }

func (r *redirection) Error() string { return r.to + r.words }

// newClient returns a client that takes prompt and token to one host only. A
// proxy of the environment counts.
func newClient() *http.Client {
	return &http.Client{
		Transport: http.DefaultTransport.(*http.Transport).Clone(),
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			from := via[0].URL
			switch {
			case r.URL.Scheme != from.Scheme || r.URL.Host != from.Host:
				return &redirection{"to " + shown(r.URL), ", where neither prompt nor token is sent; if it is right, make it the base URL"}
			case r.Method != http.MethodPost:
				return &redirection{"to " + shown(r.URL), " without the prompt; if it is right, make it the base URL"}
			case len(via) > maxRedirections:
				return &redirection{words: fmt.Sprintf("through more than %d addresses", maxRedirections)}
			}
			return nil
		},
	}
}

// body is what is sent.
type body struct {
	Model         string         `json:"model,omitempty"`
	Messages      []message      `json:"messages"`
	Stream        bool           `json:"stream"`
	StreamOptions *streamOptions `json:"stream_options,omitempty"`
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

// newRequest returns the request for an answer to prompt.
func (c *conversation) newRequest(ctx context.Context, prompt string) (*http.Request, error) {
	b := body{Model: c.model, Messages: []message{{Role: "user", Content: prompt}}, Stream: true}
	if c.asksUsage {
		b.StreamOptions = &streamOptions{IncludeUsage: true}
	}
	text, err := json.Marshal(b)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.endpoint.String(), bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "text/event-stream, application/json;q=0.9")
	r.Header.Set("User-Agent", "bus-agent-rest/"+programVersion())
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	return r, nil
}
