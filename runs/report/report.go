// Package report writes records of runs as one HTML page without other files or
// network access. It is readable on paper, on a phone and without JavaScript, which
// adds filters, the timeline and the conversations.
//
// Everything on the page may come from agents and is treated as text: it cannot become
// code or a link, Markdown becomes elements without its attributes, and characters
// that would change the look of the text around them are made visible.
package report

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/busdk/bus-agent/runs"
)

// The default limits of a page.
const (
	DefaultRuns          = 5000
	DefaultConversations = 3_000_000 // bytes
)

// Options configure a page. The same options and runs give the same page.
type Options struct {
	// Now is the time of the page.
	Now time.Time
	// Root is the folder of the records, shown on the page.
	Root string
	// Filter is the selection of the runs, as the flags of a command; empty for
	// all runs.
	Filter string
	// MaxRuns bounds the runs on the page, the newest; 0 means DefaultRuns.
	MaxRuns int
	// MaxConversations bounds the bytes of conversations, those of the newest
	// runs; 0 means DefaultConversations, a negative number none.
	MaxConversations int
	// Open opens a file of a run for its prompt and standard error; nil means
	// neither. A file that is an io.Seeker is not read as a whole.
	Open func(run *runs.Run, name string) (io.ReadCloser, error)
	// Messages reads the messages of a run's task, once for each task; nil means
	// none.
	Messages func(run *runs.Run) ([]runs.Message, error)
	// Events reads the events of a run; nil means no conversations.
	Events func(run *runs.Run) iter.Seq2[runs.Event, error]
	// Command is the command that shows the conversation of a run.
	Command func(run *runs.Run) string
}

// Write writes a page about runs, in any order, to w.
func Write(w io.Writer, list []runs.Run, o Options) error {
	if o.MaxRuns == 0 {
		o.MaxRuns = DefaultRuns
	}
	if o.MaxConversations == 0 {
		o.MaxConversations = DefaultConversations
	}
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b runs.Run) int {
		return cmp.Or(b.StartTime.Compare(a.StartTime), strings.Compare(b.RunID, a.RunID),
			strings.Compare(a.ProjectID, b.ProjectID), strings.Compare(a.TaskID, b.TaskID), strings.Compare(a.Dir, b.Dir))
	})
	for i := range list {
		list[i].Usage = finite(list[i].Usage)
	}
	p := &page{options: &o, Matching: len(list)}
	p.runs = list[:min(len(list), o.MaxRuns)]
	p.texts = readTexts(p.runs, &o)
	p.readConversations()
	p.summarize()
	out := bufio.NewWriterSize(w, 64<<10)
	err := p.write(out)
	if err == nil {
		err = out.Flush()
	}
	return err
}

// finite returns usage without a cost that is not a number.
func finite(u *runs.Usage) *runs.Usage {
	if u == nil || u.CostUSD == nil || !math.IsNaN(*u.CostUSD) && !math.IsInf(*u.CostUSD, 0) {
		return u
	}
	known := *u
	known.CostUSD = nil
	return &known
}

// stored is a conversation in the form of the page.
type stored struct {
	json  []byte // empty without messages, or if it is too large
	tools map[string]*toolUse
	large bool // it takes more than its part, even cut
}

// conversationPart is the share of the room for conversations that one of many may take.
const conversationPart = 10

// readConversations reads those of the newest runs that fit. One that is too large
// alone is skipped.
func (p *page) readConversations() {
	o := p.options
	if o.Events == nil && o.Messages == nil {
		return
	}
	left, part := o.MaxConversations, o.MaxConversations/min(max(len(p.runs), 1), conversationPart)
	tasks := buses{}
	for i := range p.runs {
		run := &p.runs[i]
		if left <= 0 {
			break
		}
		c := p.readConversation(run, part, tasks)
		if first := slices.IndexFunc(c.Items, func(i *item) bool { return i.Kind == string(runs.KindMessage) }); first >= 0 && p.texts[i].prompt == "" {
			p.texts[i].prompt = promptOf(c.Items[first].Text)
		}
		if len(c.Items)+len(c.Messages) == 0 && c.Problem == "" && c.MessagesProblem == "" {
			p.conversations = append(p.conversations, stored{})
			continue
		}
		text, err := json.Marshal(c)
		if err == nil && len(text) > part {
			p.conversations = append(p.conversations, stored{large: true})
			continue
		}
		if err != nil || len(text) > left {
			break
		}
		left -= len(text)
		p.conversations = append(p.conversations, stored{json: text, tools: toolsOf(c)})
	}
}

// readConversation reads the events of a run and the messages of its task.
func (p *page) readConversation(run *runs.Run, limit int, tasks buses) *conversation {
	messages, problem := tasks.of(run, p.options)
	for _, m := range messages {
		limit -= messageSize + quotedSize(m.Type) + quotedSize(m.Text)
	}
	events := func(func(runs.Event, error) bool) {}
	if p.options.Events != nil {
		events = p.options.Events(run)
	}
	c := readConversation(events, run.StartTime, limit-quotedSize(problem))
	c.Messages, c.MessagesProblem = messages, problem
	return c
}

func (p *page) write(w *bufio.Writer) error {
	if err := p.writeHead(w); err != nil {
		return err
	}
	templates := pageTemplates()
	if err := templates.ExecuteTemplate(w, "summary", p); err != nil {
		return fmt.Errorf("cannot write the page: %w", err)
	}
	if err := p.writeData(w); err != nil {
		return err
	}
	// The script runs before the conversations are loaded.
	fmt.Fprintf(w, "<script>%s</script>\n", pageScript())
	p.writeConversations(w)
	_, err := w.WriteString("</body>\n</html>\n") // the writer remembers a failure
	return err
}
