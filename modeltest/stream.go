package modeltest

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// beginStream sets the headers of a stream of server-sent events.
func beginStream(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
}

// sendEvent sends one event at once; unnamed when name is empty. A client that
// is gone needs no answer, so write errors are left to the connection.
func sendEvent[T any](w http.ResponseWriter, name string, document T) {
	data, err := json.Marshal(document)
	if err != nil {
		panic(err) // strings and numbers always marshal
	}
	if name != "" {
		fmt.Fprintf(w, "event: %s\n", name)
	}
	fmt.Fprintf(w, "data: %s\n\n", data)
	_ = http.NewResponseController(w).Flush()
}
