// Package report writes records of runs as one HTML page that needs nothing else:
// no network, no file beside it. It reads well on paper, on a phone and without
// JavaScript, which adds filters, the timeline and the conversations.
//
// Everything on the page may come from agents and is treated as text: it cannot
// become markup, code or a link, and characters that would change how the text
// around them looks are made visible.
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

// What a page holds where Options do not say otherwise.
const (
	DefaultRuns          = 5000
	DefaultConversations = 20_000_000 // bytes
)

// Options say what is on a page. Two pages with the same options and runs are the
// same.
type Options struct {
	// Now is when the page is made.
	Now time.Time
	// Root is the folder of the records, for the reader of the page.
	Root string
	// Filter says how the runs were chosen, as the flags of a command; empty
	// where they are all that there are.
	Filter string
	// MaxRuns is how many runs are on the page, the newest; 0 means DefaultRuns.
	MaxRuns int
	// MaxConversations is how many bytes their conversations take, those of the
	// newest runs; 0 means DefaultConversations, and below 0 there are none.
	MaxConversations int
	// Events reads the conversation of a run; nil where there are none.
	Events func(run *runs.Run) iter.Seq2[runs.Event, error]
	// Command is the command that shows the conversation of a run.
	Command func(run *runs.Run) string
}

// Write writes a page about runs to w. Their order does not matter.
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

// finite returns usage without a cost that is no number.
func finite(u *runs.Usage) *runs.Usage {
	if u == nil || u.CostUSD == nil || !math.IsNaN(*u.CostUSD) && !math.IsInf(*u.CostUSD, 0) {
		return u
	}
	known := *u
	known.CostUSD = nil
	return &known
}

// stored is a conversation as it stands on the page.
type stored struct {
	json  []byte // none where nothing was said, or it is too large
	tools map[string]*toolUse
	large bool // it takes more than its part, even cut
}

// conversationPart is how much of the room for conversations one may take.
const conversationPart = 10

// readConversations reads those of the newest runs, as many as there is room for.
// One that is too large on its own does not take the place of others.
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
		return fmt.Errorf("the page cannot be written: %w", err)
	}
	if err := p.writeData(w); err != nil {
		return err
	}
	// The script works before the conversations are there.
	fmt.Fprintf(w, "<script>%s</script>\n", pageScript())
	p.writeConversations(w)
	_, err := w.WriteString("</body>\n</html>\n") // the writer remembers a failure
	return err
}
