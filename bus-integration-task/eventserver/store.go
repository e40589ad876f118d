package eventserver

import (
	"context"
	cryptorand "crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/busdk/bus-integration-task/events"
)

const (
	// storeLimit bounds the time in which an event is stored or refused.
	storeLimit = 15 * time.Second
	// storeTry bounds one attempt. What is sent to a leader that is paused or lost is
	// never answered, also after the servers have chosen another.
	storeTry = 2 * time.Second
	// undecidedLimit bounds the time in which a refusal that decides nothing is tried
	// again.
	undecidedLimit = time.Second
)

// errNoAnswer is the error of a message of which it is unknown whether it will be stored.
var errNoAnswer = errors.New("the store has not answered")

// store stores a message and answers.
func (s *Server) store(w http.ResponseWriter, ctx context.Context, m *nats.Msg) {
	position, err := s.storeOnce(ctx, m)
	if err == nil {
		respond(w, http.StatusAccepted, struct {
			Accepted bool   `json:"accepted"`
			ID       string `json:"id"`
			Name     string `json:"name"`
		}{true, events.FormatID(position), m.Header.Get(nameHeader)})
		return
	}
	var refused *jetstream.APIError
	switch {
	case isUndecided(err):
		respondConflict(w, nil)
	case isConflict(err):
		respondConflict(w, lastID(err.Error()))
	case errors.As(err, &refused) && isFull(refused):
		s.config.Log("store: " + refused.Description)
		respondError(w, errFull)
	default:
		s.config.Log(fmt.Sprintf("store: %v", err))
		respondError(w, errStore)
	}
}

// storeOnce stores a message once and returns its position. A message without an answer
// is sent again with the same ID, by which JetStream recognizes it.
func (s *Server) storeOnce(ctx context.Context, m *nats.Msg) (position uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, storeLimit)
	defer cancel()
	m.Header.Set(jetstream.MsgIDHeader, cryptorand.Text())
	undecided := time.Duration(0)
	for lost, wait := false, time.Millisecond; ; wait = min(2*wait, storeTry/8) {
		ack, err := s.send(ctx, m)
		var refused *jetstream.APIError
		switch {
		case err == nil:
			return ack.Sequence, nil
		case isUndecided(err):
			if lost { // this one can be what is in flight
				err = errNoAnswer
			}
			if undecided += wait; undecided >= undecidedLimit {
				return 0, err
			}
		case lost && isConflict(err):
			return s.stored(ctx, m, err)
		case errors.As(err, &refused):
			return 0, err
		default: // no answer
			lost = true
		}
		select {
		case <-ctx.Done():
			return 0, err
		case <-time.After(wait):
		}
	}
}

func (s *Server) send(ctx context.Context, m *nats.Msg) (*jetstream.PubAck, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTry)
	defer cancel()
	return s.broker.js.PublishMsg(ctx, m)
}

// stored returns the position of a message that an earlier attempt has stored, or the
// conflict that the last one has met. One server alone checks the condition of a message
// before its ID (nats-server v2.15.2).
func (s *Server) stored(ctx context.Context, m *nats.Msg, conflict error) (uint64, error) {
	expected, err := strconv.ParseUint(m.Header.Get(jetstream.ExpectedLastSubjSeqHeader), 10, 64)
	if err != nil {
		return 0, conflict
	}
	log, err := s.openLog(ctx)
	if err != nil {
		return 0, err
	}
	next, err := log.GetMsg(ctx, expected+1, jetstream.WithGetMsgSubject(m.Subject))
	switch {
	case err != nil:
		return 0, err
	case next.Header.Get(jetstream.MsgIDHeader) != m.Header.Get(jetstream.MsgIDHeader):
		return 0, conflict
	}
	return next.Sequence, nil
}

// duplicateInFlight is the error of JetStream for an ID that is being replicated
// (nats-server v2.15.2, errors.json).
const duplicateInFlight = 10158

// isUndecided reports whether a cluster has refused a message without deciding its
// condition, because it was replicating another of the same task, or this one.
func isUndecided(err error) bool {
	var refused *jetstream.APIError
	return errors.As(err, &refused) && (refused.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant || refused.ErrorCode == duplicateInFlight)
}

func isConflict(err error) bool {
	var refused *jetstream.APIError
	return errors.As(err, &refused) && refused.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence
}

var lastSequence = regexp.MustCompile(`: (\d+)$`)

// lastID returns the latest event of a task from the description of a mismatch.
func lastID(description string) *string {
	m := lastSequence.FindStringSubmatch(description)
	if m == nil {
		return nil
	}
	position, err := strconv.ParseUint(m[1], 10, 64)
	if err != nil {
		return nil
	}
	id := ""
	if position > 0 {
		id = events.FormatID(position)
	}
	return &id
}

// Errors of JetStream that mean that it has no space (nats-server v2.15.2, errors.json).
const (
	insufficientResources = 10023
	storageExceeded       = 10047
	storeFailed           = 10077
)

func isFull(e *jetstream.APIError) bool {
	switch e.ErrorCode {
	case insufficientResources, storageExceeded:
		return true
	case storeFailed:
		return strings.Contains(e.Description, "maximum bytes") || strings.Contains(e.Description, "no space left")
	}
	return false
}
