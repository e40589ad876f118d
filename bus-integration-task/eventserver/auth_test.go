package eventserver_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/busdk/bus-integration-task/events"
	"github.com/busdk/bus-integration-task/eventserver"
)

// request sends a request and returns the status and the error of the answer.
func request(t *testing.T, method, url, token, body string) (int, events.ErrorDetail) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	var e events.ErrorBody
	if response.StatusCode >= 400 {
		if err := json.Unmarshal(text, &e); err != nil || e.Error.Message == "" || response.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%d with the body %q", response.StatusCode, text)
		}
	}
	if token != "" && bytes.Contains(text, []byte(token)) {
		t.Error("the answer has the token")
	}
	return response.StatusCode, e.Error
}

func TestTokensAreVerified(t *testing.T) {
	t.Parallel()
	now := time.Now()
	config := fast(t)
	config.Now = func() time.Time { return now }
	h := start(t, config)
	sign := func(method jwt.SigningMethod, key any, change func(jwt.MapClaims)) string {
		c := jwt.MapClaims{"sub": "alice", "aud": eventserver.DefaultAudience, "scope": "events:send", "iat": now.Unix(), "exp": now.Add(time.Hour).Unix()}
		change(c)
		text, err := jwt.NewWithClaims(method, c).SignedString(key)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	claim := func(name string, value any) string {
		return sign(jwt.SigningMethodHS256, secret, func(c jwt.MapClaims) {
			if c[name] = value; value == nil {
				delete(c, name)
			}
		})
	}
	same := func(jwt.MapClaims) {}
	for _, test := range []struct {
		name, token string
		want        int
		text        string
	}{
		{"good", claim("sub", "alice"), 202, ""},
		{"several audiences", claim("aud", []string{"other", eventserver.DefaultAudience}), 202, ""},
		{"within leeway", claim("exp", now.Add(-2*time.Second).Unix()), 202, ""},
		{"beyond leeway", claim("exp", now.Add(-6*time.Second).Unix()), 401, "expired"},
		{"issued within leeway", claim("iat", now.Add(3*time.Second).Unix()), 202, ""},
		{"issued beyond leeway", claim("iat", now.Add(7*time.Second).Unix()), 401, "not valid"},
		{"valid within leeway", claim("nbf", now.Add(3*time.Second).Unix()), 202, ""},
		{"no token", "", 401, "no bearer token"},
		{"not a token", "abc", 401, "not valid"},
		{"algorithm none", sign(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, same), 401, "not valid"},
		{"algorithm HS512", sign(jwt.SigningMethodHS512, secret, same), 401, "not valid"},
		{"other secret", sign(jwt.SigningMethodHS256, []byte("another secret of thirty-two byte"), same), 401, "not valid"},
		{"expired", claim("exp", now.Add(-time.Minute).Unix()), 401, "expired"},
		{"no expiry", claim("exp", nil), 401, "no expiry"},
		{"other audience", claim("aud", "other"), 401, "audience"},
		{"no audience", claim("aud", nil), 401, "audience"},
		{"issued later", claim("iat", now.Add(time.Hour).Unix()), 401, "not valid"},
		{"not yet", claim("nbf", now.Add(time.Hour).Unix()), 401, "not valid"},
		{"no subject", claim("sub", nil), 401, "subject"},
		{"subject with spaces", claim("sub", "a b"), 401, "subject"},
		{"subject not text", claim("sub", 7), 401, "not valid"},
		{"no scope", claim("scope", nil), 403, "events:send"},
		{"part of a scope", claim("scope", "events:sendx xevents:send"), 403, "events:send"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			status, e := request(t, "POST", h.URL+events.Path, test.token, `{"name":"example.ping"}`)
			if status != test.want || !strings.Contains(e.Message, test.text) {
				t.Error(status, e)
			}
		})
	}
}

func TestScopes(t *testing.T) {
	t.Parallel()
	h := start(t, fast(t))
	send := map[string]string{
		"example.ping":                  "",
		"bus.taskforce":                 "",
		"bus.task.created":              "task:send",
		"bus.task.approved":             "task:send",
		"bus.task.assigned":             "task:send",
		"bus.task.reopened":             "task:send",
		"bus.task.approval.answered":    "task:send",
		"bus.task.canceled":             "task:send task:reply",
		"bus.task.message":              "task:send task:reply",
		"bus.task.claimed":              "task:claim",
		"bus.task.progress":             "task:reply",
		"bus.task.released":             "task:reply",
		"bus.task.approval.requested":   "task:reply",
		"bus.task.done":                 "task:reply",
		"bus.task.blocked":              "task:reply",
		"bus.task.failed":               "task:reply",
		"bus.task.closed":               "task:reply",
		"bus.task.new-kind":             "none",
		"bus.containers.run.request":    "container:run",
		"bus.containers.input.request":  "container:run",
		"bus.containers.status.request": "container:read",
		"bus.containers.delete.request": "container:delete",
		"bus.containers.runner.x":       "none",
	}
	special := strings.Fields("task:send task:read task:reply task:claim task:admin container:run container:read container:delete container:admin")
	for name, needs := range send {
		for _, scope := range special {
			admin := scope == "task:admin" && strings.HasPrefix(name, "bus.task.") || scope == "container:admin" && strings.HasPrefix(name, "bus.containers.")
			want := http.StatusForbidden
			if needs == "" || admin || strings.Contains(" "+needs+" ", " "+scope+" ") {
				want = http.StatusAccepted
			}
			if got, e := request(t, "POST", h.URL+events.Path, mint(t, "alice", "events:send", scope), `{"name":"`+name+`"}`); got != want {
				t.Errorf("publish %s with %s: %d %v", name, scope, got, e)
			}
		}
		if got, _ := request(t, "POST", h.URL+events.Path, mint(t, "alice", special...), `{"name":"`+name+`"}`); got != http.StatusForbidden {
			t.Errorf("publish %s without events:send: %d", name, got)
		}
	}
	// Without the scope, the body is not read.
	if got, _ := request(t, "POST", h.URL+events.Path, mint(t, "alice", special...), "{"); got != http.StatusForbidden {
		t.Errorf("publish without events:send: %d", got)
	}
	for _, test := range []struct {
		name, scopes string
		want         int
	}{
		{"example.ping", "events:listen", 200}, {"example.ping", "events:send", 403},
		{"bus.task.done", "events:listen", 403}, {"bus.task.done", "events:listen task:read", 200}, {"bus.task.done", "events:listen task:admin", 200}, {"bus.task.done", "task:admin", 403},
		{"bus.containers.x", "events:listen", 403}, {"bus.containers.x", "events:listen container:run", 200}, {"bus.containers.x", "events:listen container:read", 200},
	} {
		got, e := request(t, "GET", h.URL+events.Path+"/stream?follow=false&name=example.ping&name="+test.name, mint(t, "alice", strings.Fields(test.scopes)...), "")
		if got != test.want {
			t.Errorf("stream of %s with %s: %d %v", test.name, test.scopes, got, e)
		}
	}
}

func TestBadRequests(t *testing.T) {
	t.Parallel()
	h := start(t, fast(t))
	token := mint(t, "alice", allScopes...)
	const path, app, stream = events.Path, events.Path + "/append", events.Path + "/stream"
	for _, test := range []struct {
		method, path, body string
		want               int
		text               string
	}{
		{"POST", path, "", 400, "JSON"},
		{"POST", path, "[]", 400, "JSON"},
		{"POST", path, `{"name":"a"} {}`, 400, "JSON"},
		{"POST", path, "{\"name\":\"a\",\"payload\":\"\xff\"}", 400, "UTF-8"},
		{"POST", path, `{"name":""}`, 400, "name"},
		{"POST", path, `{"name":"a.*"}`, 400, "name"},
		{"POST", path, `{"name":"a.>"}`, 400, "name"},
		{"POST", path, `{"name":"A"}`, 400, "name"},
		{"POST", path, `{"name":"` + strings.Repeat("a", 201) + `"}`, 400, "name"},
		{"POST", path, `{"name":"a","source":"a b"}`, 400, "source"},
		{"POST", path, `{"name":"a","last_id":""}`, 400, "append"},
		{"POST", path, `{"name":"bus.task.created","payload":{"work_ref":7}}`, 400, "work_ref"},
		{"POST", path, `{"name":"bus.task.created","payload":{"work_ref":"a b"}}`, 400, "work_ref"},
		{"POST", path, `{"name":"bus.task.created","payload":{"work_ref":"` + strings.Repeat("a", 201) + `"}}`, 400, "work_ref"},
		{"POST", path, `{"name":"a","correlationId":"` + strings.Repeat("a", 61<<10) + `"}`, 413, "larger"},
		{"POST", app, `{"name":"bus.task.created","payload":{"work_ref":"a"}}`, 400, "last_id"},
		{"POST", app, `{"name":"bus.task.created","payload":{"work_ref":"a"},"last_id":"7"}`, 400, "last_id"},
		{"POST", app, `{"name":"bus.task.created","payload":{"work_ref":"a"},"last_id":"evt_0000000000000000007"}`, 409, "latest"},
		{"POST", app, `{"name":"example.ping","last_id":""}`, 400, "work_ref"},
		{"GET", stream, "", 400, "name"},
		{"GET", stream + "?name=a.*", "", 400, "wildcards"},
		{"GET", stream + "?name=%3E", "", 400, "wildcards"},
		{"GET", stream + "?name=a" + strings.Repeat("&name=b&name=c", 1) + manyNames(), "", 400, "more than 64"},
		{"GET", stream + "?name=a&delivery=all", "", 400, "delivery"},
		{"GET", stream + "?name=a&replay=maybe", "", 400, "replay"},
		{"GET", stream + "?name=a&follow=maybe", "", 400, "follow"},
		{"GET", stream + "?name=a&group=a%20b", "", 400, "group"},
		{"GET", stream + "?name=a&consumer=*", "", 400, "consumer"},
		{"GET", stream + "?name=a&after_id=7", "", 400, "after_id"},
		{"GET", stream + "?name=a&after_id=evt_0000000000000000007", "", 400, "log ends"},
		{"GET", stream + "?name=a&work_ref=b", "", 400, "work_ref"},
		{"GET", stream + "?name=bus.task.done&work_ref=*%20", "", 400, "work_ref"},
		{"GET", path, "", 404, "no such"},
		{"DELETE", path, "", 404, "no such"},
		{"GET", "/", "", 404, "no such"},
	} {
		if status, e := request(t, test.method, h.URL+test.path, token, test.body); status != test.want || !strings.Contains(e.Message+e.Action, test.text) {
			t.Errorf("%s %s %.80q: %d %+v", test.method, test.path, test.body, status, e)
		}
	}
}

func manyNames() string {
	var b strings.Builder
	for i := range 64 {
		b.WriteString("&name=n" + strings.Repeat("x", i))
	}
	return b.String()
}

func TestMintRefusesBadOptions(t *testing.T) {
	t.Parallel()
	good := eventserver.MintOptions{Subject: "alice", Scopes: []string{"events:send"}, Lifetime: time.Hour}
	if _, err := eventserver.Mint(secret[:31], good); err == nil {
		t.Error("short secret")
	}
	for name, change := range map[string]func(*eventserver.MintOptions){
		"subject":  func(o *eventserver.MintOptions) { o.Subject = "" },
		"spaces":   func(o *eventserver.MintOptions) { o.Subject = "a b" },
		"lifetime": func(o *eventserver.MintOptions) { o.Lifetime = 0 },
		"scopes":   func(o *eventserver.MintOptions) { o.Scopes = nil },
		"scope":    func(o *eventserver.MintOptions) { o.Scopes = []string{"a b"} },
	} {
		o := good
		change(&o)
		if _, err := eventserver.Mint(secret, o); err == nil {
			t.Error(name)
		}
	}
}
