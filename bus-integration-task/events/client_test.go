package events_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/busdk/bus-integration-task/events"
)

func TestURL(t *testing.T) {
	t.Parallel()
	var path string
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path = r.URL.Path
		_, _ = io.WriteString(w, `{"accepted":true,"id":"evt_1","name":"a.b"}`)
	}))
	t.Cleanup(h.Close)
	for _, suffix := range []string{"", "/", "/api/v1/events", "/api/v1/events/"} {
		c := events.Client{URL: h.URL + suffix, Token: events.StaticToken("t")}
		if _, err := c.Publish(t.Context(), events.Draft{Name: "a.b"}); err != nil || path != events.Path {
			t.Error(suffix, path, err)
		}
	}
	for _, test := range []struct{ url, want string }{
		{"", "not an http"}, {"ftp://host", "not an http"}, {"127.0.0.1:8081", "not an http"},
		{"http://events.example", "clear text"}, {"http://127.0.0.1.example", "clear text"}, {"http://user:secret@127.0.0.1", "has a user"}, {"https://host?x", "query"},
		{"https://host:0", "port 0"}, {"https://host:65536", "port 65536"},
	} {
		c := events.Client{URL: test.url, Token: events.StaticToken("t")}
		err := c.Check()
		if !errors.Is(err, events.ErrInvalid) || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "secret") {
			t.Error(test.url, err)
		}
	}
}

func TestRedirectDoesNotLeakToken(t *testing.T) {
	t.Parallel()
	leaked := false
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { leaked = true }))
	t.Cleanup(other.Close)
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	})
	_, err := c.Publish(t.Context(), events.Draft{Name: "a.b"})
	if !errors.Is(err, events.ErrInvalid) || leaked {
		t.Error(err, leaked)
	}
}

func TestUnreachableServerIsUnavailable(t *testing.T) {
	t.Parallel()
	h := httptest.NewServer(nil)
	h.Close()
	c := events.Client{URL: h.URL, Token: events.StaticToken("secret-token")}
	_, err := c.Publish(t.Context(), events.Draft{Name: "a.b"})
	if !errors.Is(err, events.ErrUnavailable) || strings.Contains(err.Error(), "secret-token") {
		t.Error(err)
	}
	c.Retry.Disabled = true
	err = c.Stream(t.Context(), events.Query{Names: []string{"a.b"}}, nil)
	if !errors.Is(err, events.ErrUnavailable) || !strings.HasPrefix(err.Error(), "events server "+h.URL+" not reached: ") || strings.Contains(err.Error(), "name=") {
		t.Error(err)
	}
}

func TestTimeoutIsUnavailable(t *testing.T) {
	t.Parallel()
	c := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	})
	c.Timeout = 20 * time.Millisecond
	if _, err := c.Publish(t.Context(), events.Draft{Name: "a.b"}); !errors.Is(err, events.ErrUnavailable) {
		t.Error(err)
	}
	c.Retry.Disabled = true
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := c.Stream(ctx, events.Query{Names: []string{"a.b"}}, nil); !errors.Is(err, events.ErrUnavailable) {
		t.Error(err)
	}
}

func TestBadDraftIsNotSent(t *testing.T) {
	t.Parallel()
	c := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("sent") })
	for _, d := range []events.Draft{{}, {Name: "A.b"}, {Name: "a..b"}, {Name: "a.*"}, {Name: "a", Payload: json.RawMessage("{")}, {Name: "a", Payload: json.RawMessage(`"` + strings.Repeat("x", events.MaxEventBytes) + `"`)}} {
		if _, err := c.Publish(t.Context(), d); !errors.Is(err, events.ErrInvalid) {
			t.Error(d.Name, err)
		}
	}
}

func TestForeignAnswerIsInvalid(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"<html>", "{}", `{"accepted":false,"id":"evt_1"}`} {
		if _, err := serve(t, lines(text)).Publish(t.Context(), events.Draft{Name: "a.b"}); !errors.Is(err, events.ErrInvalid) {
			t.Error(text, err)
		}
	}
}

func write(t *testing.T, path, text string, mode os.FileMode) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestTokenIsFoundInOrder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	flag := write(t, filepath.Join(dir, "flag"), "from-flag\n", 0o600)
	variable := write(t, filepath.Join(dir, "variable"), "from-file-variable", 0o400)
	write(t, filepath.Join(dir, "config", "auth", "api-token"), "from-config", 0o600)
	write(t, filepath.Join(dir, "xdg", "bus", "auth", "api-token"), "from-xdg", 0o600)
	write(t, filepath.Join(dir, "home", ".config", "bus", "auth", "api-token"), "from-home", 0o600)
	environment := map[string]string{
		"BUS_EVENTS_TOKEN_FILE": variable, "BUS_API_TOKEN": "from-variable", "BUS_CONFIG_DIR": filepath.Join(dir, "config"),
		"XDG_CONFIG_HOME": filepath.Join(dir, "xdg"), "HOME": filepath.Join(dir, "home"),
	}
	options := events.TokenOptions{File: flag, Getenv: func(name string) string { return environment[name] }}
	for _, step := range []struct{ want, then string }{
		{"from-flag", ""}, {"from-file-variable", "BUS_EVENTS_TOKEN_FILE"}, {"from-variable", "BUS_API_TOKEN"},
		{"from-config", "BUS_CONFIG_DIR"}, {"from-xdg", "XDG_CONFIG_HOME"}, {"from-home", "HOME"},
	} {
		source, err := events.ResolveToken(options)
		if err != nil {
			t.Fatal(step.want, err)
		}
		if got, err := source(t.Context(), ""); got != step.want || err != nil {
			t.Error(got, err)
		}
		options.File = ""
		environment[step.then] = " "
	}
	if _, err := events.ResolveToken(options); !errors.Is(err, events.ErrUnauthorized) {
		t.Error(err)
	}
}

func TestUnsafeTokenFileIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "repository", ".git"), 0o700); err != nil {
		t.Fatal(err)
	}
	inside := write(t, filepath.Join(dir, "repository", ".bus", "token"), "secret-token", 0o600)
	link := filepath.Join(dir, "link")
	if err := os.Symlink(inside, link); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ path, want string }{
		{inside, "Git repository"},
		{link, "Git repository"},
		{write(t, filepath.Join(dir, "open"), "secret-token", 0o644), "chmod 600"},
		{write(t, filepath.Join(dir, "group"), "secret-token", 0o640), "chmod 600"},
		{write(t, filepath.Join(dir, "empty"), "\n", 0o600), "it is empty"},
		{write(t, filepath.Join(dir, "two"), "secret-token\nsecret-token", 0o600), "not a token"},
		{write(t, filepath.Join(dir, "long"), strings.Repeat("x", 17<<10), 0o600), "not a token"},
		{dir, "not a regular file"},
		{"/dev/null", "not a regular file"},
		{filepath.Join(dir, "missing"), "no such file"},
	} {
		_, err := events.ResolveToken(events.TokenOptions{File: test.path})
		if !errors.Is(err, events.ErrUnauthorized) || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "secret-token") {
			t.Error(test.path, err)
		}
	}
}

func TestTokenFileIsReadAnew(t *testing.T) {
	t.Parallel()
	path := write(t, filepath.Join(t.TempDir(), "token"), "old", 0o600)
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "Bearer old" {
			write(t, path, "new", 0o600) // rotated while the request was on its way
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		lines(`{"accepted":true,"id":"evt_1","name":"a.b"}`)(w, r)
	})
	c.Token = events.TokenFile(path)
	if _, err := c.Publish(t.Context(), events.Draft{Name: "a.b"}); err != nil {
		t.Error(err)
	}
}

func TestRetryFromEnvironment(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		retry, min, max string
		want            string
	}{
		{"", "", "", "1s to 30s"}, {"1", "2s", "4s", "2s to 4s"}, {"0", "", "", "no retry"},
		{"2", "", "", "not 1 or 0"}, {"", "soon", "", "not a duration"}, {"", "-1s", "", "not a duration"}, {"", "5s", "1s", "less than"}, {"", "1m", "", "1m0s to 1m0s"},
	} {
		environment := map[string]string{"BUS_EVENTS_LISTENER_RETRY": test.retry, "BUS_EVENTS_LISTENER_RETRY_MIN": test.min, "BUS_EVENTS_LISTENER_RETRY_MAX": test.max}
		r, err := events.RetryFromEnvironment(func(name string) string { return environment[name] })
		if got := r.String(); err == nil && got != test.want || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: %s, %v", test, got, err)
		}
	}
}

func TestMetadataDropsWhatIsNotText(t *testing.T) {
	t.Parallel()
	var e events.Event
	if err := json.Unmarshal([]byte(`{"metadata":{"a":"b","n":1,"o":{},"z":null},"unknown":[1]}`), &e); err != nil || len(e.Metadata) != 1 || e.Metadata["a"] != "b" {
		t.Error(e.Metadata, err)
	}
}

func TestIDs(t *testing.T) {
	t.Parallel()
	for _, n := range []uint64{0, 1, 1780620545346253915, 9999999999999999999} {
		if got, ok := events.ParseID(events.FormatID(n)); got != n || !ok {
			t.Error(n, got)
		}
	}
	for _, id := range []string{"", "evt_1", "evt_000000000000000000x", "evt_00000000000000000001", "0000000000000000001"} {
		if _, ok := events.ParseID(id); ok {
			t.Error(id)
		}
	}
}
