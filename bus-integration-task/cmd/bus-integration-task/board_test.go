package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/busdk/bus-integration-task/board"
	"github.com/busdk/bus-integration-task/events"
	"github.com/busdk/bus-integration-task/tasklog"
)

// The board reports that it has lost the events server, and that it has it again, though the
// log has no new events.
func TestBoardReportsLostServer(t *testing.T) {
	t.Parallel()
	var down atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if down.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, `{"control":"opened","after_id":"evt_0000000000000000000","heartbeat_seconds":60}`+"\n"+`{"control":"caught_up"}`+"\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	defer server.Close()
	defer server.CloseClientConnections()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	client := &events.Client{URL: server.URL, Token: events.StaticToken("t"), Retry: events.Retry{Min: time.Millisecond, Max: 10 * time.Millisecond}}
	started, ended := make(chan string, 1), make(chan error, 1)
	var reported atomic.Int64
	log := &tasklog.Log{Client: client, Disconnected: func(error) { reported.Add(1) }}
	go func() {
		ended <- board.Serve(ctx, board.Options{Log: boardLog{log}, Started: func(url string) { started <- url }})
	}()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, <-started+"events", nil)
	if err != nil {
		t.Fatal(err)
	}
	page, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer page.Body.Close()
	lines := bufio.NewScanner(page.Body)
	await := func(what string, holds func(problem string) bool) {
		t.Helper()
		for lines.Scan() {
			data, ok := strings.CutPrefix(lines.Text(), "data: ")
			var update struct{ Problem string }
			if ok && json.Unmarshal([]byte(data), &update) == nil && holds(update.Problem) {
				return
			}
		}
		t.Fatalf("%s: %v", what, lines.Err())
	}
	await("at first", func(problem string) bool { return problem == "" })
	for range 2 {
		down.Store(true)
		server.CloseClientConnections()
		await("without the server", func(problem string) bool { return problem != "" })
		down.Store(false)
		await("with the server", func(problem string) bool { return problem == "" })
	}
	if reported.Load() == 0 {
		t.Error("Disconnected of the log was not called")
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
