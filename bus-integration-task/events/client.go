package events

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Path is where the API is below the origin of a server.
const Path = "/api/v1/events"

// Client publishes and reads events. Only URL and Token are required. Its fields must not
// change once it is used; its methods can be called at the same time.
type Client struct {
	// URL is the origin of the server, or the full URL of its API ending in [Path].
	URL string
	// Token returns the bearer token.
	Token TokenSource
	// HTTP sends the requests; nil for a client with the default transport. Its Timeout
	// and CheckRedirect are not used.
	HTTP *http.Client
	// AllowInsecure allows http for other hosts than the loopback. Everything, the
	// token included, is then sent in clear text.
	AllowInsecure bool
	// Source names the program in the events that it publishes.
	Source string
	// Timeout limits each Publish and Append, and the wait for the answer to a stream; 0
	// for 30 seconds.
	Timeout time.Duration
	// Retry says how Stream reconnects.
	Retry Retry
}

// Publish stores an event. It does not retry: after an [ErrUnavailable] the event may or
// may not have been stored.
func (c *Client) Publish(ctx context.Context, d Draft) (Published, error) {
	return c.publish(ctx, "", draftBody{Draft: d})
}

// Append stores an event of a task if the latest event of the task has the ID lastID, ""
// if the task has no event. Otherwise it stores nothing and fails with [ErrConflict]. Of
// any number of concurrent calls with the same lastID at most one succeeds. The task is
// the work_ref of the payload.
//
// It does not retry. After an [ErrUnavailable] the event may have been stored: read the
// task again, or call Append again with the same lastID, which cannot store it twice.
// Servers without conditional append fail with [ErrInvalid] and store nothing.
func (c *Client) Append(ctx context.Context, d Draft, lastID string) (Published, error) {
	return c.publish(ctx, "/append", draftBody{Draft: d, LastID: &lastID})
}

type draftBody struct {
	Draft
	LastID *string `json:"last_id,omitempty"`
}

type answer struct {
	Accepted bool   `json:"accepted"`
	ID       string `json:"id"`
	Name     string `json:"name"`
}

func (c *Client) publish(ctx context.Context, path string, d draftBody) (Published, error) {
	body, err := c.encode(d)
	if err != nil {
		return Published{}, err
	}
	bounded, cancel := context.WithTimeout(ctx, c.timeout())
	defer cancel()

	response, err := c.send(bounded, http.MethodPost, path, nil, body)
	if err != nil {
		if ctx.Err() != nil {
			return Published{}, ctx.Err()
		}
		return Published{}, err
	}
	defer response.Body.Close()
	var a answer
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswerBytes))
	if err != nil {
		return Published{}, unavailable("events server: the answer was cut off", err)
	}
	if err := json.Unmarshal(text, &a); err != nil || !a.Accepted || a.ID == "" {
		return Published{}, invalid("events server: the answer is not that of a Bus Events API; check the URL")
	}
	return Published{ID: a.ID, Name: a.Name}, nil
}

func (c *Client) timeout() time.Duration {
	if c.Timeout <= 0 {
		return 30 * time.Second
	}
	return c.Timeout
}

func (c *Client) encode(d draftBody) ([]byte, error) {
	if !ValidName(d.Name) {
		return nil, invalid("event name %q: not words of a-z, 0-9, - and _ joined by dots", oneLine(d.Name))
	}
	if d.Source == "" {
		d.Source = c.Source
	}
	if len(d.Payload) == 0 {
		d.Payload = json.RawMessage("null")
	}
	var body bytes.Buffer
	body.Grow(len(d.Payload) + 4<<10)
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(d); err != nil {
		return nil, &Error{Kind: ErrInvalid, Message: "event " + d.Name, cause: err}
	}
	if body.Len() > MaxEventBytes {
		return nil, invalid("event %s: %d bytes: more than %d", d.Name, body.Len(), MaxEventBytes)
	}
	return body.Bytes(), nil
}

const maxAnswerBytes = 64 << 10

// send sends a request and returns the answer if it is a success. After a 401 it asks
// once for another token.
func (c *Client) send(ctx context.Context, method, path string, query url.Values, body []byte) (*http.Response, error) {
	endpoint, err := c.endpoint()
	if err != nil {
		return nil, err
	}
	if c.Token == nil {
		return nil, &Error{Kind: ErrUnauthorized, Message: "events client: it has no token"}
	}
	target := endpoint + path
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	token, err := c.Token(ctx, "")
	if err != nil {
		return nil, tokenError(err)
	}
	response, err := c.sendOnce(ctx, method, target, token, body)
	if !errors.Is(err, ErrUnauthorized) {
		return response, err
	}
	other, tokenErr := c.Token(ctx, token)
	if tokenErr != nil || other == token || other == "" {
		return nil, err
	}
	return c.sendOnce(ctx, method, target, other, body)
}

func (c *Client) sendOnce(ctx context.Context, method, target, token string, body []byte) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, target, bytes.NewReader(body))
	if err != nil {
		return nil, &Error{Kind: ErrInvalid, Message: "events URL", cause: err}
	}
	if !validToken(token) {
		return nil, &Error{Kind: ErrUnauthorized, Message: "token: not one line of printable characters"}
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Accept", "application/json, application/x-ndjson")
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	client := http.Client{}
	if c.HTTP != nil {
		client = *c.HTTP
	}
	client.Timeout = 0 // the context limits each request; a stream has no limit
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	response, err := client.Do(request)
	if err != nil {
		if wrapped, ok := errors.AsType[*url.Error](err); ok {
			err = wrapped.Err // without the whole URL, whose query is long
		}
		return nil, unavailable("events server "+request.URL.Scheme+"://"+request.URL.Host+" not reached", err)
	}
	if response.StatusCode == http.StatusOK || response.StatusCode == http.StatusAccepted {
		return response, nil
	}
	defer response.Body.Close()
	if response.StatusCode >= 300 && response.StatusCode < 400 {
		return nil, &Error{Kind: ErrInvalid, Status: response.StatusCode, Message: fmt.Sprintf("events server: %d: redirects are not followed, since the token would be sent elsewhere; use the final URL", response.StatusCode)}
	}
	var e ErrorBody
	text, _ := io.ReadAll(io.LimitReader(response.Body, maxAnswerBytes)) // the status alone is an answer too
	_ = json.Unmarshal(text, &e)
	return nil, failed(response.StatusCode, e.Error)
}

// Check returns an [ErrInvalid] error if c.URL is not one that requests can go to. It
// sends nothing.
func (c *Client) Check() error {
	_, err := c.endpoint()
	return err
}

// endpoint returns the URL of the API, without a slash at its end.
func (c *Client) endpoint() (string, error) {
	u, err := url.Parse(strings.TrimSpace(c.URL))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", invalid("events URL: not an http or https URL; use for example http://127.0.0.1:8081")
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", invalid("events URL: it has a user, query or fragment; use only scheme, host and path")
	}
	if u.Scheme == "http" && !c.AllowInsecure && !isLoopback(u.Hostname()) {
		return "", invalid("events URL: http to %s would send the token in clear text; use https", oneLine(u.Host))
	}
	if port := u.Port(); port != "" {
		if number, err := strconv.ParseUint(port, 10, 16); err != nil || number == 0 {
			return "", invalid("events URL: port %s is not a number from 1 to 65535", oneLine(port))
		}
	}
	path := strings.TrimRight(u.Path, "/")
	if !strings.HasSuffix(path, Path) {
		path += Path
	}
	u.Path, u.RawPath = path, ""
	return u.String(), nil
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
