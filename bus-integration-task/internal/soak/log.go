// Package soak checks what many workers have done while they and the servers failed: the
// log of events, the repositories, and what is left on the disk. It reads the log and the
// repositories itself and shares no code with clients and workers. Its test, behind the
// build tag soak, runs the program.
package soak

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/busdk/bus-integration-task/task"
)

// An Entry is an event of the log.
type Entry struct {
	ID      string
	Name    string
	Time    time.Time
	WorkRef string
	Attempt string
	Over    string // attempt that a claim supersedes
	Commit  string
	Text    string
	Lease   time.Duration

	payload json.RawMessage
}

// Names are the names of the events in the log.
var Names = []string{
	"bus.task.created", "bus.task.approved", "bus.task.assigned", "bus.task.reopened", "bus.task.claimed", "bus.task.progress",
	"bus.task.released", "bus.task.message", "bus.task.approval.requested", "bus.task.approval.answered", "bus.task.done",
	"bus.task.blocked", "bus.task.failed", "bus.task.canceled", "bus.task.closed",
}

// Read calls each for the events after the one with the ID after, "" for all, in the order
// in which the server at url sends them. Without follow it returns nil after the events
// that are in the log. It does not connect again.
func Read(ctx context.Context, address, token, after string, follow bool, each func(Entry)) error {
	query := url.Values{"name": Names, "replay": {"true"}, "control": {"true"}, "follow": {fmt.Sprint(follow)}}
	if after != "" {
		query.Set("after_id", after)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address+"/api/v1/events/stream?"+query.Encode(), nil)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the server answers %s", response.Status)
	}
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		if len(lines.Bytes()) == 0 {
			continue
		}
		entry, control, err := parse(lines.Bytes())
		switch {
		case err != nil:
			return err
		case control == "ended" && !follow:
			return nil
		case control == "":
			each(entry)
		}
	}
	return errors.Join(errors.New("the stream was cut off"), lines.Err())
}

// parse reads a line of a stream: an event or a control line.
func parse(line []byte) (e Entry, control string, err error) {
	var outer struct {
		Control   string          `json:"control"`
		Error     json.RawMessage `json:"error"`
		ID        string          `json:"id"`
		Name      string          `json:"name"`
		Timestamp time.Time       `json:"timestamp"`
		Payload   json.RawMessage `json:"payload"`
	}
	if err := json.Unmarshal(line, &outer); err != nil {
		return e, "", fmt.Errorf("line %.100q: %w", line, err)
	}
	if outer.Control != "" {
		if outer.Error != nil {
			return e, "", fmt.Errorf("the server ends the stream: %s", outer.Error)
		}
		return e, outer.Control, nil
	}
	var inner struct {
		WorkRef string `json:"work_ref"`
		Attempt string `json:"attempt_id"`
		Over    string `json:"supersedes"`
		Commit  string `json:"commit"`
		Text    string `json:"text"`
		Lease   int    `json:"lease_seconds"`
	}
	if err := json.Unmarshal(outer.Payload, &inner); err != nil {
		return e, "", fmt.Errorf("event %s: %w", outer.ID, err)
	}
	return Entry{
		ID: outer.ID, Name: outer.Name, Time: outer.Timestamp, WorkRef: inner.WorkRef, Attempt: inner.Attempt, Over: inner.Over,
		Commit: inner.Commit, Text: inner.Text, Lease: time.Duration(inner.Lease) * time.Second, payload: outer.Payload,
	}, "", nil
}

// event returns the entry as package task reads it.
func (e Entry) event() (task.Event, error) {
	return task.Decode(e.ID, e.Name, "", e.Time, e.payload)
}
