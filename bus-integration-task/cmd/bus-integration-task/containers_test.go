package main

import (
	"context"
	"errors"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/busdk/bus-integration-task/events"
	"github.com/busdk/bus-integration-task/eventserver"
	"github.com/busdk/bus-integration-task/internal/testwait"
	"github.com/busdk/bus-integration-task/worker/backend"
	"github.com/busdk/bus-integration-task/worker/backend/containers"
)

// The tokens of workers and of container integrations have the scopes to run a container
// and to end it.
func TestContainersServe(t *testing.T) {
	t.Parallel()
	secret := []byte(strings.Repeat("s", eventserver.MinSecretBytes))
	s, err := eventserver.Open(t.Context(), eventserver.Config{Secret: secret, Store: t.TempDir(), SyncEvery: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(s)
	t.Cleanup(func() { s.Close(); h.Close() })
	token := func(kind string) string {
		text, err := eventserver.Mint(secret, eventserver.MintOptions{Subject: "local", Scopes: scopes[kind], Lifetime: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "token")
	if err := os.WriteFile(file, []byte(token("containers")), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan int, 1)
	var stderr strings.Builder
	go func() {
		ended <- run(ctx, []string{"bus-integration-task", "containers", "serve", "--events-url", h.URL, "--token-file", file,
			"--profile", "shell=any", "--process-sandbox"}, nil, io.Discard, &stderr)
	}()

	bus := &events.Client{URL: h.URL, Token: events.StaticToken(token("worker"))}
	b := &backend.Container{Bus: bus, Profile: "shell"}
	attempt, err := b.Start(t.Context(), backend.Attempt{
		Workdir: dir, Timeout: testwait.Limit, Commands: backend.Commands{Main: []string{"sh", "-c", "touch started; sleep 1000"}},
	}, backend.Listener{})
	if err != nil {
		t.Fatal(err)
	}
	testwait.Exists(t, filepath.Join(dir, "started"))
	attempt.Stop(t.Context(), "no longer needed")
	waiting, stop := context.WithTimeout(t.Context(), testwait.Limit)
	defer stop()
	deleted := errors.New("deleted")
	err = bus.Stream(waiting, events.Query{Names: []string{containers.NameDeleteResponse}, Replay: true}, func(events.Event) error { return deleted })
	if !errors.Is(err, deleted) {
		t.Error(err)
	}
	cancel()
	if code := <-ended; code != 0 || stderr.Len() > 0 {
		t.Errorf("exit code %d: %s", code, stderr.String())
	}
}
