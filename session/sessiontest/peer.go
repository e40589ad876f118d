package sessiontest

import (
	"bufio"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/busdk/bus-agent/session/engine"
)

// A Peer plays an agent. It ends when its input ends, as agents do, during the
// script or after it. It is an engine.Process. Its methods may be called
// concurrently.
type Peer struct {
	input  *io.PipeReader
	sent   *io.PipeWriter
	said   *io.PipeReader
	output *io.PipeWriter

	heard   chan struct{} // there is news from the client
	stopped chan struct{} // closed by Stop
	done    chan struct{}
	once    sync.Once

	mu         sync.Mutex
	lines      []string // all that came
	inbox      []string // what no step has waited for yet
	closed     bool     // the input has ended
	deaf       bool     // it reads no more
	pipe       int      // how many lines had come by then; one more is in the pipe
	waiting    *Step
	ids        map[string]string // of requests, of the script to the client's
	messages   map[string]string // IDs of messages, of the script to the client's
	endedTools int
}

var _ engine.Process = (*Peer)(nil)

// errGone is what a client gets that writes to a peer that has ended.
var errGone = errors.New("the peer has ended")

// Start starts a peer with a script.
func Start(steps []Step) *Peer {
	p := &Peer{
		heard: make(chan struct{}, 1), stopped: make(chan struct{}), done: make(chan struct{}),
		ids: map[string]string{}, messages: map[string]string{},
	}
	p.input, p.sent = io.Pipe()
	p.said, p.output = io.Pipe()
	var both sync.WaitGroup
	both.Go(p.listen)
	both.Go(func() {
		p.play(steps)
		p.Stop()
	})
	go func() {
		both.Wait()
		close(p.done)
	}()
	return p
}

// Transport returns the client's side. Its EndTools counts its calls.
func (p *Peer) Transport() engine.Transport {
	return engine.Transport{Input: p.sent, Output: p.said, EndTools: func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.endedTools++
	}}
}

// Stop ends the peer like SIGKILL.
func (p *Peer) Stop() {
	p.once.Do(func() {
		close(p.stopped)
		_ = p.output.Close()                // it returns no error
		_ = p.input.CloseWithError(errGone) // neither does this
	})
}

// Done returns a channel that is closed when the peer has ended.
func (p *Peer) Done() <-chan struct{} { return p.done }

// Sent returns the lines that the client has sent.
func (p *Peer) Sent() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.lines)
}

// EndedTools returns how often the client has ended the tools of the agent.
func (p *Peer) EndedTools() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.endedTools
}

// awaited returns the step whose message the peer waits for, and whether there is
// one. A test makes the client send it next.
func (p *Peer) awaited() (Step, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiting == nil {
		return Step{}, false
	}
	return *p.waiting, true
}

// listen reads what the client sends.
func (p *Peer) listen() {
	in := bufio.NewReader(p.input)
	for {
		line, err := in.ReadString('\n')
		p.mu.Lock()
		if line = strings.TrimSuffix(line, "\n"); line != "" {
			p.lines, p.inbox = append(p.lines, line), append(p.inbox, line)
		}
		p.closed = err != nil && !p.deaf
		deaf := p.deaf && len(p.lines) > p.pipe
		p.mu.Unlock()
		if deaf {
			<-p.stopped
			return
		}
		select {
		case p.heard <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

// play does the steps until one ends the peer, or the client.
func (p *Peer) play(steps []Step) {
	for _, s := range steps {
		if !p.do(s) {
			return
		}
	}
	for { // until the end of the input
		p.mu.Lock()
		closed := p.closed
		p.mu.Unlock()
		if closed {
			return
		}
		select {
		case <-p.heard:
		case <-p.stopped:
			return
		}
	}
}

// do does a step and reports whether the peer continues.
func (p *Peer) do(s Step) bool {
	switch s.Kind {
	case Expect:
		return p.expect(s)
	case Say:
		_, err := io.WriteString(p.output, p.translate(s.Line)+"\n")
		return err == nil
	case Write:
		_, err := io.WriteString(p.output, s.Line)
		return err == nil
	case Pause:
		select {
		case <-time.After(s.For):
			return true
		case <-p.stopped:
			return false
		}
	case Hush:
		_ = p.output.Close() // it returns no error
		<-p.stopped
		return false
	case Deafen:
		p.mu.Lock()
		defer p.mu.Unlock()
		p.deaf, p.pipe = true, len(p.lines)
		return true
	}
	return false
}

// expect waits for the message of s.
func (p *Peer) expect(s Step) bool {
	key := Key(s.Line)
	defer p.wait(nil)
	for {
		p.wait(&s)
		p.mu.Lock()
		i := slices.IndexFunc(p.inbox, func(line string) bool { return Key(line) == key })
		if i >= 0 {
			p.identify(s.Line, p.inbox[i])
			p.inbox = slices.Delete(p.inbox, i, i+1)
		}
		closed := p.closed
		p.mu.Unlock()
		if i >= 0 || closed {
			return i >= 0
		}
		select {
		case <-p.heard:
		case <-p.stopped:
			return false
		}
	}
}

func (p *Peer) wait(s *Step) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting = s
}
