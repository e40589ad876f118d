package containers_test

import (
	"bytes"
	"context"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/busdk/bus-integration-task/events"
	"github.com/busdk/bus-integration-task/eventserver"
	"github.com/busdk/bus-integration-task/internal/testwait"
	"github.com/busdk/bus-integration-task/worker/backend"
	"github.com/busdk/bus-integration-task/worker/backend/containers"
)

var _ containers.Bus = (*events.Client)(nil)

// The backend and the integration meet through a real server of events, with no more
// rights than they need.
func TestRunOverTheEventsAPI(t *testing.T) {
	t.Parallel()
	secret := bytes.Repeat([]byte("s"), eventserver.MinSecretBytes)
	server, err := eventserver.Open(t.Context(), eventserver.Config{Secret: secret, Store: t.TempDir(), SyncEvery: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	web := httptest.NewServer(server)
	t.Cleanup(web.Close)
	token, err := eventserver.Mint(secret, eventserver.MintOptions{
		Subject: "me", Audience: eventserver.DefaultAudience, Lifetime: time.Hour,
		Scopes: []string{"events:send", "events:listen", "container:run", "container:delete"},
	})
	if err != nil {
		t.Fatal(err)
	}
	bus := &events.Client{URL: web.URL, Token: events.StaticToken(token), Source: "test"}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	i := &containers.Integration{Bus: bus, Engine: &containers.Process{Path: "/usr/bin:/bin"}, Profiles: map[string]string{"shell": ""}, Failed: func(err error) { t.Error(err) }}
	go func() { ended <- i.Serve(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })

	b := &backend.Container{Bus: bus, Profile: "shell"}
	r, err := b.Start(t.Context(), backend.Attempt{
		Workdir: t.TempDir(), Timeout: testwait.Limit, Commands: backend.Commands{Main: []string{"echo", "over the bus"}},
	}, backend.Listener{})
	if err != nil {
		t.Fatal(err)
	}
	if o := r.Outcome(); o.Result != backend.Completed || o.Text != "over the bus" {
		t.Errorf("%+v", o)
	}
	r.Stop(t.Context(), "done")
}
