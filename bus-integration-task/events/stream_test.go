package events_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/busdk/bus-integration-task/events"
)

// quick reconnects without a wait that a test would notice.
var quick = events.Retry{Min: time.Microsecond, Max: time.Millisecond}

// serve answers the n-th request, counted from 0, with the n-th function; the last one
// answers all further ones.
func serve(t *testing.T, answers ...func(w http.ResponseWriter, r *http.Request)) *events.Client {
	t.Helper()
	var n atomic.Int64
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i := min(int(n.Add(1)-1), len(answers)-1)
		answers[i](w, r)
	}))
	t.Cleanup(h.Close)
	return &events.Client{URL: h.URL, Token: events.StaticToken("secret-token"), Retry: quick}
}

func lines(text ...string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		for _, line := range text {
			_, _ = io.WriteString(w, line)
		}
	}
}

// cut sends lines and cuts the connection.
func cut(text ...string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		lines(text...)(w, r)
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
}

func line(n int) string {
	return fmt.Sprintf(`{"version":"v1","id":"evt_%019d","name":"a.b","payload":{"n":%d}}`+"\n", n, n)
}

func follow(t *testing.T, c *events.Client, q events.Query) ([]string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	q.Names = []string{"a.b"}
	var got []string
	err := c.Stream(ctx, q, func(e events.Event) error { got = append(got, e.ID); return nil })
	return got, err
}

func idsUpTo(n int) []string {
	var want []string
	for i := range n {
		want = append(want, events.FormatID(uint64(i+1)))
	}
	return want
}

const ended = `{"control":"ended"}` + "\n"

func TestStreamContinuesAfterCut(t *testing.T) {
	t.Parallel()
	opened := `{"control":"opened","after_id":"evt_0000000000000000000","heartbeat_seconds":15}` + "\n"
	var asked []string
	ask := func(next func(http.ResponseWriter, *http.Request)) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, r *http.Request) {
			asked = append(asked, r.URL.Query().Get("after_id"))
			next(w, r)
		}
	}
	status := func(code int) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	c := serve(t,
		ask(cut(opened)), // before the first event
		ask(cut(opened, line(1), "\n", line(2)[:20])), // in the middle of a line
		ask(status(http.StatusBadGateway)),
		ask(status(http.StatusTooManyRequests)),
		ask(lines(opened, line(1), line(2), line(3))), // sent again, and closed without an end
		ask(lines(opened, line(4), `{"control":"ended","status":503,"error":{"type":"unavailable","message":"stopping"}}`+"\n")),
		ask(lines(opened, line(5), ended)))
	var waits int
	got, err := follow(t, c, events.Query{Once: true, Disconnected: func(error, time.Duration) { waits++ }})
	if err != nil || !slices.Equal(got, idsUpTo(5)) || waits != 6 {
		t.Error(got, waits, err)
	}
	want := []string{"", events.FormatID(0), events.FormatID(1), events.FormatID(1), events.FormatID(1), events.FormatID(3), events.FormatID(4)}
	if !slices.Equal(asked, want) {
		t.Errorf("asked for events after %q, not %q", asked, want)
	}
}

func TestStreamErrors(t *testing.T) {
	t.Parallel()
	status := func(code int) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(code)
			_, _ = io.WriteString(w, `{"error":{"type":"t","message":"line one\nline two\u001b[31m","action":"do this"}}`)
		}
	}
	long := strings.Repeat("x", events.MaxEventBytes)
	for _, test := range []struct {
		name   string
		answer func(http.ResponseWriter, *http.Request)
		kind   error
		text   string
	}{
		{"400", status(400), events.ErrInvalid, "do this"},
		{"401", status(401), events.ErrUnauthorized, "line one line two"},
		{"403", status(403), events.ErrForbidden, ""},
		{"404", status(404), events.ErrInvalid, ""},
		{"redirect", status(307), events.ErrInvalid, "redirects are not followed"},
		{"expired", lines(`{"control":"ended","status":401,"error":{"type":"invalid_auth","message":"expired"}}` + "\n"), events.ErrUnauthorized, "expired"},
		{"too long", lines(`{"id":"evt_0000000000000000007","name":"a.b","payload":"`, long, "\"}\n"), events.ErrInvalid, "evt_0000000000000000007"},
		{"never ends", lines(`{"id":"evt_0000000000000000008",`, long, long), events.ErrInvalid, "evt_0000000000000000008"},
		{"not JSON", lines("<html>\n"), events.ErrInvalid, "not an event"},
		{"no name", lines(`{"id":"evt_0000000000000000009"}` + "\n"), events.ErrInvalid, "evt_0000000000000000009"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := serve(t, test.answer)
			c.Retry.Disabled = test.name == "expired"
			got, err := follow(t, c, events.Query{})
			if !errors.Is(err, test.kind) || !strings.Contains(err.Error(), test.text) || len(got) != 0 {
				t.Error(err, got)
			}
			if strings.ContainsAny(err.Error(), "\n\x1b") || strings.Contains(err.Error(), "secret-token") {
				t.Errorf("%q", err)
			}
		})
	}
}

// The largest event that a server accepts passes.
func TestStreamReadsLargestLine(t *testing.T) {
	t.Parallel()
	text := `{"id":"` + events.FormatID(1) + `","name":"a.b","payload":"`
	text += strings.Repeat("x", events.MaxEventBytes-len(text)-2) + `"}`
	got, err := follow(t, serve(t, lines(text, "\n")), events.Query{Once: true})
	if err != nil || len(got) != 1 {
		t.Error(err)
	}
}

func TestStreamTakesRotatedToken(t *testing.T) {
	t.Parallel()
	var sent []string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		sent = append(sent, r.Header.Get("Authorization"))
		switch len(sent) {
		case 1:
			lines(line(1), `{"control":"ended","status":401,"error":{"type":"invalid_auth","message":"expired"}}`+"\n")(w, r)
		case 2:
			w.WriteHeader(http.StatusUnauthorized)
		default:
			lines(line(2), ended)(w, r)
		}
	})
	c.Token = func(_ context.Context, rejected string) (string, error) {
		if rejected == "" {
			return "old", nil
		}
		return "new", nil
	}
	got, err := follow(t, c, events.Query{Once: true})
	if err != nil || !slices.Equal(got, idsUpTo(2)) || !slices.Equal(sent, []string{"Bearer old", "Bearer old", "Bearer new"}) {
		t.Error(got, sent, err)
	}
}

// A client whose token has expired says so without the wait for a reconnect.
func TestExpiredTokenFailsAtOnce(t *testing.T) {
	t.Parallel()
	c := serve(t, lines(`{"control":"ended","status":401,"error":{"type":"invalid_auth","message":"the token has expired"}}`+"\n"),
		func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	c.Retry = events.Retry{Min: time.Hour}
	if _, err := follow(t, c, events.Query{}); !errors.Is(err, events.ErrUnauthorized) {
		t.Error(err)
	}
}

func TestStreamEndsWithCaller(t *testing.T) {
	t.Parallel()
	stop := errors.New("stop")
	c := serve(t, lines(line(1), line(2)))
	err := c.Stream(t.Context(), events.Query{Names: []string{"a.b"}}, func(events.Event) error { return stop })
	if err != stop {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err = c.Stream(ctx, events.Query{Names: []string{"a.b"}}, func(events.Event) error { cancel(); return nil })
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestSilentServerIsLeft(t *testing.T) {
	t.Parallel()
	opened := `{"control":"opened","after_id":"evt_0000000000000000000","heartbeat_seconds":1}` + "\n"
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		lines(opened, line(1))(w, r)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}, lines(opened, line(2), ended))
	var why error
	got, err := follow(t, c, events.Query{Once: true, Disconnected: func(err error, _ time.Duration) { why = err }})
	if err != nil || !slices.Equal(got, idsUpTo(2)) || why == nil || !strings.Contains(why.Error(), "silent") {
		t.Error(got, why, err)
	}
}

func TestQueryIsChecked(t *testing.T) {
	t.Parallel()
	c := serve(t, lines(ended))
	for _, q := range []events.Query{{}, {Names: []string{"a.*"}}, {Names: []string{"a.b", "A"}}, {Names: []string{"a"}, Delivery: events.Unicast, AfterID: "evt_0000000000000000001"}} {
		if err := c.Stream(t.Context(), q, nil); !errors.Is(err, events.ErrInvalid) {
			t.Errorf("%+v: %v", q, err)
		}
	}
}

// A client that loses a scope fails without the wait for a reconnect, also in the middle of
// a stream.
func TestForbiddenFailsAtOnce(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.Method == http.MethodPost {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		lines(line(1), `{"control":"ended","status":403,"error":{"type":"forbidden","message":"the token lacks a scope"}}`+"\n")(w, r)
	})
	c.Retry = events.Retry{Min: time.Hour}
	if got, err := follow(t, c, events.Query{}); !errors.Is(err, events.ErrForbidden) || !slices.Equal(got, idsUpTo(1)) {
		t.Error(got, err)
	}
	if _, err := c.Append(t.Context(), events.Draft{Name: "a.b"}, ""); !errors.Is(err, events.ErrForbidden) {
		t.Error(err)
	}
	if n := asked.Load(); n != 2 {
		t.Errorf("%d requests", n)
	}
}
