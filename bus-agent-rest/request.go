package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
)

// maxRedirects is how many redirects of one request are followed.
const maxRedirects = 5

// A redirectError is the reason a redirect was not followed. It quotes the address
// separately, because that is untrusted.
type redirectError struct{ to, reason string }

func (r *redirectError) Error() string { return r.to + r.reason }

// newClient returns a client that follows redirects within one host only.
func newClient() *http.Client {
	return &http.Client{
		Transport: http.DefaultTransport.(*http.Transport).Clone(),
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			from := via[0].URL
			switch {
			case r.URL.Scheme != from.Scheme || r.URL.Host != from.Host:
				return &redirectError{"to " + withoutQuery(r.URL), ", which gets neither prompt nor token; if it is right, make it the base URL"}
			case r.Method != http.MethodPost:
				return &redirectError{"to " + withoutQuery(r.URL), " without the prompt; if it is right, make it the base URL"}
			case len(via) > maxRedirects:
				return &redirectError{reason: fmt.Sprintf("more than %d times", maxRedirects)}
			}
			return nil
		},
	}
}

// body is the body of a request.
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
	if c.requestUsage {
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
