// Package report writes records of runs as one HTML page without other files or
// network access. It is readable on paper, on a phone and without JavaScript, which
// adds filters, the timeline and the conversations.
//
// Everything on the page may come from agents and is treated as text: it cannot become
// markup, code or a link, and characters that would change the look of the text around
// them are made visible.
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
	DefaultConversations = 20_000_000 // bytes
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
	p.conversations = readConversations(p.runs, &o)
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
	json  []byte // none where nothing was said, or it is too large
	tools map[string]*toolUse
	large bool // it takes more than its part, even cut
}

// conversationPart is the share of the room for conversations that one may take.
const conversationPart = 10

// readConversations reads those of the newest runs that fit. One that is too large
// alone is skipped.
func readConversations(list []runs.Run, o *Options) []stored {
	if o.Events == nil {
		return nil
	}
	var all []stored
	left, part := o.MaxConversations, o.MaxConversations/conversationPart
	for i := range list {
		run := &list[i]
		if left <= 0 {
			break
		}
		c := readConversation(o.Events(run), run.StartTime, part)
		if len(c.Items) == 0 && c.Problem == "" {
			all = append(all, stored{})
			continue
		}
		text, err := json.Marshal(c)
		if err == nil && len(text) > part {
			all = append(all, stored{large: true})
			continue
		}
		if err != nil || len(text) > left {
			break
		}
		left -= len(text)
		all = append(all, stored{json: text, tools: toolsOf(c)})
	}
	return all
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
