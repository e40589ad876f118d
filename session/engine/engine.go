package engine

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/busdk/bus-agent/agent"
)

// An Engine speaks one protocol with one agent process. A session calls its methods
// one at a time, except that Interrupt, Answer and Close may be called during another
// call, and every method but Send during Interrupt: an agent that waits for an answer
// sends nothing else, and one that hangs answers nothing. An engine reports what the
// agent sends to its [Sink], from one goroutine at a time, and never from within a
// call of its methods, except Open.
type Engine interface {
	// Open greets the agent, begins or resumes the session, and returns when a
	// message can be sent, or with the reason why none ever can. It keeps t and
	// sink, and from then on reads t.Output to its end, even after an error.
	Open(ctx context.Context, t Transport, start Start, sink Sink) (Info, error)

	// Send begins a turn. It is called only while no turn is running. It returns
	// when the agent has accepted the message or, if the protocol does not
	// report that, when the message is written. After an error the message
	// counts as not delivered and the turn as ended.
	Send(ctx context.Context, text string) error

	// Steer adds text to the running turn. It returns ErrTooLate if the agent
	// reports that no turn is running, and ErrUnsupported if the protocol has
	// no such message; in both cases nothing was delivered.
	Steer(ctx context.Context, text string) error

	// Interrupt requests the end of the running turn, which ends with a result
	// event like any other. Without a running turn it does nothing.
	Interrupt(ctx context.Context) error

	// Answer answers an approval request or, with Decline or Cancel, a request for
	// answers. It returns ErrTooLate if the request is no longer open.
	Answer(ctx context.Context, approvalID string, d Decision) error

	// Close ends the conversation, by the protocol and by closing the agent's input,
	// and returns without waiting for the agent to exit.
	Close() error
}

// An Adjuster is an engine that can change settings between turns.
type Adjuster interface {
	// SetModel sets the model of the following turns.
	SetModel(ctx context.Context, model string) error
	// SetAccess sets what the agent may do from now on.
	SetAccess(ctx context.Context, access agent.Access) error
}

// A Questioner is an engine whose agent asks the user questions. [Engine.Answer] with
// Decline or Cancel refuses to answer them.
type Questioner interface {
	// AnswerQuestions answers the request of an event of kind agent.KindQuestion, with
	// an answer for each question in order. The answers fit the questions, see
	// agent.Question.Check. If the engine cannot express one, such as text where the
	// agent expects a number, it returns an error of kind agent.ErrUsage and the request
	// stays open. It returns ErrTooLate if the request is no longer open.
	AnswerQuestions(ctx context.Context, approvalID string, answers [][]string) error
}

// An Attacher is an engine that can send files with a message.
type Attacher interface {
	// SendAttached is [Engine.Send] for a message with files. Each has a media type that
	// [Start.Attachments] names. If the agent turns out not to take one, SendAttached
	// returns an error that matches ErrUnsupported, and nothing was delivered.
	SendAttached(ctx context.Context, text string, files []agent.Attachment) error
}

// Errors of engines.
var (
	// ErrTooLate: the turn or the approval request has ended.
	ErrTooLate = errors.New("too late: it is over")
	// ErrUnsupported: the protocol cannot do it.
	ErrUnsupported = errors.New("the runtime has no way to do it")
)

// A Process is the agent's process, as a session needs it.
type Process interface {
	// Stop ends the process and all processes it has started, and returns
	// at once.
	Stop()
	// Done is closed when all of them have ended.
	Done() <-chan struct{}
}

// A Transport is an engine's connection to its agent.
type Transport struct {
	// Input is the agent's standard input. A Write that the agent does not read
	// blocks until the agent ends.
	Input io.WriteCloser
	// Output is the agent's standard output. It ends when the agent has ended.
	Output io.Reader
	// EndTools ends the processes that the agent has started outside its own
	// process group, as agents start their tools. It does not end the agent. Nil
	// if that is not possible.
	EndTools func()
}

// A Start describes the session that an engine opens.
type Start struct {
	Workdir string // absolute
	// Resume is the ID of the session to continue, empty for a new one.
	Resume string
	// Created is a time at which the session to continue was known to exist, zero
	// if unknown. Some agents must not load a session too soon after that.
	Created time.Time
	// Model is empty if the runtime chooses.
	Model string
	// Effort is empty if the runtime chooses. Engines whose agents get it otherwise, such
	// as in their arguments, ignore it.
	Effort  agent.ReasoningEffort
	Access  agent.Access
	AddDirs []string // absolute
	// MCPServers are those of registry.Invocation. Engines whose agents get them otherwise
	// ignore them.
	MCPServers []agent.MCPServer
	// Protected names files and folders that write access does not include,
	// wherever they are: the settings and programs that agents run and the
	// private homes they use. See [Start.MayEdit].
	Protected []string

	// Attachments are the media types of files that messages can have, see [Attacher],
	// besides text.
	Attachments []string

	// Prefix goes before the first message. SlashCommands reports that the agent
	// reads a message that begins with "/" as a command. Both are for the session; an
	// engine receives messages ready to send.
	Prefix        string
	SlashCommands bool
}

// Info is what an engine knows of its session once it is open.
type Info struct {
	SessionID string // empty if the agent reports it later, as an event
	Model     string
	// Steers reports that Steer can work.
	Steers bool
	// Models are the models to choose from, if the agent lists them; see MaxModels.
	Models []Model
}

// A Model is a model that an agent offers. ID is what [Adjuster.SetModel] takes. Name and
// Description are for users; they may be empty.
type Model struct {
	ID, Name, Description string
}

// MaxModels is how many models an engine reports at most.
const MaxModels = 200

// A Sink receives what an agent sends.
type Sink interface {
	// Event receives an event, valid only during the call. An event of kind
	// agent.KindResult from the main agent ends the turn. An approval request
	// is an event of kind agent.KindApproval, and a request for answers one of kind
	// agent.KindQuestion, with an ApprovalID that is unique in the session.
	Event(e *agent.Event)
	// Answered is called for a request that no longer needs an answer.
	Answered(approvalID string)
	// Closed is called last, when the agent's output has ended. err is what was
	// wrong with the output, or nil.
	Closed(err error)
}

// A Decision is an answer to an approval request.
type Decision string

// The answers.
const (
	Accept           Decision = "accept"
	AcceptForSession Decision = "accept_for_session" // and do not ask again for the same
	Decline          Decision = "decline"            // the turn continues without it
	Cancel           Decision = "cancel"             // the turn ends
)

// A Delivery is how messages reach an agent.
type Delivery string

// The values of [Delivery].
const (
	DeliverStdin Delivery = "stdin" // lines on its standard input
	DeliverRPC   Delivery = "rpc"   // requests that it answers
	DeliverTmux  Delivery = "tmux"  // keys of its terminal
)

// NewUUID returns a random UUID (version 4), the form of session ID expected by
// runtimes that let the caller choose one.
func NewUUID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
