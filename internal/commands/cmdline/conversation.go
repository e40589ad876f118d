package cmdline

import (
	"io"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/formatters"
)

// Conversation writes events as readable text.
type Conversation struct {
	to        io.Writer
	formatter agent.Formatter
	buffer    []byte
	midLine   bool
}

// NewConversation returns a conversation with an agent of the given runtime, whose
// formatter is used where it is registered.
func (prog *Program) NewConversation(to io.Writer, runtime string) *Conversation {
	c := &Conversation{to: to, formatter: formatters.Text()}
	if rt, ok := prog.RuntimeOf(runtime); ok {
		c.formatter = rt.NewFormatter()
	}
	return c
}

// Event writes an event.
func (c *Conversation) Event(e *agent.Event) error {
	c.buffer = c.formatter.Append(c.buffer[:0], e)
	return c.write(c.buffer)
}

// Line writes text on separate lines. All but the first begin with a mark, so that
// they cannot be mistaken for lines of bus-agent.
func (c *Conversation) Line(text string) error {
	text = strings.ReplaceAll(strings.TrimRight(formatters.SanitizeString(text), "\n"), "\n", "\n  | ") + "\n"
	if c.midLine {
		text = "\n" + text
	}
	return c.write([]byte(text))
}

func (c *Conversation) write(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	c.midLine = b[len(b)-1] != '\n'
	_, err := c.to.Write(b)
	return err
}

// EndLine ends the line that the agent left open.
func (c *Conversation) EndLine() error {
	if !c.midLine {
		return nil
	}
	return c.write([]byte("\n"))
}
