package eventserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/busdk/bus-integration-task/events"
)

const (
	nameHeader = "Bus-Name" // of a message: the name of its event
	// conditionalHeader marks an event whose writer knew the state of its task.
	conditionalHeader = "Bus-Conditional"
	identityLabel     = "identity_id"
	maxLabelsBytes    = 60 << 10 // all of an event but its payload
)

// record is an event as it is stored: without its ID, which is its place in the log.
type record struct {
	Version       string          `json:"version"`
	Name          string          `json:"name"`
	CorrelationID string          `json:"correlationId,omitempty"`
	Source        string          `json:"source,omitempty"`
	Timestamp     time.Time       `json:"timestamp"`
	Metadata      events.Metadata `json:"metadata,omitempty"`
	Error         *events.Failure `json:"error,omitempty"`
	// The payload follows.
}

// draft is the body of a request.
type draft struct {
	events.Draft
	LastID *string `json:"last_id"`
}

// publish stores an event and answers when JetStream has acknowledged it.
func (s *Server) publish(w http.ResponseWriter, r *http.Request) {
	who, err := s.authenticate(r)
	if err != nil {
		respondError(w, unauthorized(err))
		return
	}
	if !who.has(ScopeSend) { // known before the body is read
		respondError(w, forbidden(fmt.Errorf("the token lacks the scope %s", ScopeSend)))
		return
	}
	waiting, cancel := context.WithTimeout(r.Context(), slotWait)
	release, free := s.bodies.take(waiting, who.name)
	cancel()
	if !free {
		respondError(w, errBusy)
		return
	}
	defer release()
	message, err := s.message(w, r, who)
	if err != nil {
		var p problem
		if !errors.As(err, &p) {
			p = badRequest(err.Error(), "")
		}
		respondError(w, p)
		return
	}
	size := message.Size()
	if !s.disk.take(size) {
		s.config.Log("store: the disk has too little free space; events are refused")
		respondError(w, errFull)
		return
	}
	defer s.disk.give(size)
	s.store(w, r.Context(), message)
}

// message reads an event and makes it the message that is stored.
func (s *Server) message(w http.ResponseWriter, r *http.Request, who identity) (*nats.Msg, error) {
	body, err := s.body(w, r)
	if err != nil {
		return nil, err
	}
	var d draft
	if !utf8.Valid(body) || json.Unmarshal(body, &d) != nil {
		return nil, errConverted
	}
	workRef, err := s.check(d, who)
	if err != nil {
		return nil, err
	}
	data, err := s.encode(d, who)
	if err != nil {
		return nil, err
	}
	message := nats.NewMsg(subjectOf(s.config.Prefix, who.name, d.Name, workRef))
	message.Data = data
	message.Header.Set(nameHeader, d.Name)
	if conditional := strings.HasSuffix(r.URL.Path, "/append"); conditional {
		if err := setCondition(message, d.LastID, workRef); err != nil {
			return nil, err
		}
		message.Header.Set(conditionalHeader, "1")
	} else if d.LastID != nil {
		return nil, badRequest("last_id is a condition", "use POST "+events.Path+"/append")
	}
	return message, nil
}

func (s *Server) body(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(s.config.ReadTimeout)) // not all handlers of tests have one
	// Escapes such as \u003c make a body longer than the payload that it stands for.
	const most = 2 * events.MaxEventBytes
	if r.ContentLength > most {
		return nil, errTooLarge
	}
	var body bytes.Buffer
	body.Grow(int(max(r.ContentLength, 0)) + bytes.MinRead)
	_, err := body.ReadFrom(http.MaxBytesReader(w, r.Body, most))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, errTooLarge
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, errSlow
	case err != nil:
		return nil, errConverted
	}
	return body.Bytes(), nil
}

// check validates an event and returns the task that it is of.
func (s *Server) check(d draft, who identity) (workRef string, err error) {
	if !events.ValidName(d.Name) {
		return "", badRequest("name: not words of a-z, 0-9, - and _ joined by dots, or too long", "")
	}
	if err := who.allow(d.Name, false); err != nil {
		return "", forbidden(err)
	}
	if d.Source != "" && !validLabel(d.Source) {
		return "", badRequest("source: not 1 to 128 letters, digits or . _ - @ # : /", "")
	}
	if !isTaskName(d.Name) || len(d.Payload) == 0 || d.Payload[0] != '{' {
		return "", nil
	}
	var payload struct {
		WorkRef string `json:"work_ref"`
	}
	if json.Unmarshal(d.Payload, &payload) != nil {
		return "", badRequest("payload: work_ref is not a string", "")
	}
	if payload.WorkRef != "" && !validRef(payload.WorkRef) {
		return "", badRequest("payload: work_ref is not 1 to 200 letters, digits or . _ - # : /", "")
	}
	return payload.WorkRef, nil
}

// encode returns the event as it is stored, on one line. The payload is copied once.
func (s *Server) encode(d draft, who identity) ([]byte, error) {
	labels := events.Metadata{}
	for key, value := range d.Metadata {
		labels[key] = value
	}
	delete(labels, "owner_identity_id") // an older name
	labels[identityLabel] = who.name
	source := d.Source
	if source == "" {
		source = "unknown"
	}
	payload := d.Payload
	if len(payload) == 0 {
		payload = json.RawMessage("null")
	}
	const before, after = `,"payload":`, `}`
	var line bytes.Buffer
	line.Grow(len(payload) + 4<<10)
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(record{"v1", d.Name, d.CorrelationID, source, s.config.Now().UTC(), labels, d.Error}); err != nil {
		return nil, errConverted
	}
	line.Truncate(line.Len() - len("}\n"))
	line.WriteString(before)
	rest := line.Len()
	if err := json.Compact(&line, payload); err != nil {
		return nil, errConverted
	}
	if line.Len()-rest > events.MaxPayloadBytes || rest+len(after) > maxLabelsBytes {
		return nil, errTooLarge
	}
	line.WriteString(after)
	return line.Bytes(), nil
}

// setCondition makes JetStream store a message only if lastID is the latest event of its
// task.
func setCondition(m *nats.Msg, lastID *string, workRef string) error {
	if lastID == nil {
		return badRequest("last_id: missing", `give the ID of the latest event of the task, or "" if it has none`)
	}
	if workRef == "" {
		return badRequest("payload: no work_ref", "append only events of a task; publish others")
	}
	last := uint64(0)
	if *lastID != "" {
		position, ok := events.ParseID(*lastID)
		if !ok {
			return badRequest("last_id: not the ID of an event", "")
		}
		last = position
	}
	m.Header.Set(jetstream.ExpectedLastSubjSeqHeader, strconv.FormatUint(last, 10))
	return nil
}
