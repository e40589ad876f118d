package eventserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http/httptest"
	"os"
	"time"

	"github.com/busdk/bus-integration-task/events"
	"github.com/busdk/bus-integration-task/eventserver"
)

// An event is published, and read from the beginning of the log.
func Example() {
	store, err := os.MkdirTemp("", "events")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(store)
	secret := []byte("at least thirty-two random bytes")
	ctx := context.Background()
	server, err := eventserver.Open(ctx, eventserver.Config{Secret: secret, Store: store})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	front := httptest.NewServer(server) // programs use server.Serve
	defer front.Close()

	token, err := eventserver.Mint(secret, eventserver.MintOptions{Subject: "alice", Scopes: []string{"events:send", "events:listen"}, Lifetime: time.Hour})
	if err != nil {
		log.Fatal(err)
	}
	client := &events.Client{URL: front.URL, Token: events.StaticToken(token)}
	if _, err := client.Publish(ctx, events.Draft{Name: "example.ping", Payload: json.RawMessage(`{"ok":true}`)}); err != nil {
		log.Fatal(err)
	}
	err = client.Stream(ctx, events.Query{Names: []string{"example.ping"}, Replay: true, Once: true}, func(e events.Event) error {
		fmt.Println(e.ID, e.Name, string(e.Payload))
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: evt_0000000000000000001 example.ping {"ok":true}
}
