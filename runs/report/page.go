package report

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/busdk/bus-agent/runs"
)

var (
	//go:embed page/summary.html
	summarySource string
	//go:embed page/style.css
	pageStyle string
	//go:embed page/dom.js
	domSource string
	//go:embed page/table.js
	tableSource string
	//go:embed page/timeline.js
	timelineSource string
	//go:embed page/sums.js
	sumsSource string
	//go:embed page/markdown.js
	markdownSource string
	//go:embed page/diff.js
	diffSource string
	//go:embed page/keys.js
	keysSource string
	//go:embed page/run.js
	runSource string
	//go:embed page/start.js
	startSource string
)

// earlyScript lets the style leave out rows before they are drawn.
const earlyScript = `document.documentElement.classList.add("script")`

// pageScript is all JavaScript of the page.
var pageScript = sync.OnceValue(func() string {
	return "\n\"use strict\";\n(() => {\n" + domSource + markdownSource + diffSource +
		tableSource + timelineSource + sumsSource + keysSource + runSource + startSource + "})();\n"
})

var pageTemplates = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("page").Parse(summarySource))
})

// A page is the data of the templates.
type page struct {
	options       *Options
	runs          []runs.Run // newest first
	texts         []texts
	conversations []stored

	Matching  int // selected runs, if more than are on the page
	Figures   []figure
	Projects  int
	Hours     bool
	Periods   []periodRow
	States    []runs.Status
	Failures  []*failureGroup
	Failed    int
	Usage     []*usageGroup
	All       *tokens
	Durations []*durationRow
	Tools     []*toolUse
	Inside    int // conversations on the page
	Large     int // conversations too large for the page
	Rows      []*row
	Runtimes  []string
}

// A figure is a number of the overview.
type figure struct{ Name, Value, Note string }

// A row is a run in the table.
type row struct {
	Key           string // the fragment of the address that shows the run
	Time, Start   string
	State         string
	Project, Task string
	Name          string // of the task, without its time
	Prompt        string // its first line
	Reason        string
	Runtime       string
	Model         string
	Duration      string
	Input, Output string
	Cumulative    bool
	Cost          string
	Tools         string

	kind string // of its failure
}

func (p *page) Count() int        { return len(p.runs) }
func (p *page) Left() int         { return p.Matching - len(p.runs) }
func (p *page) Filter() string    { return plain(p.options.Filter) }
func (p *page) Root() string      { return plain(p.options.Root) }
func (p *page) Made() string      { return clock(p.options.Now) }
func (p *page) BarWidth() int     { return barWidth - 2 }
func (p *page) BarHeight() int    { return barHeight }
func (p *page) BarsWidth() int    { return barWidth*(len(steps)+1) - 2 }
func (p *page) ShowCommand() bool { return p.Inside < len(p.runs) && len(p.runs) > 0 }

// Thousands is a number for the reader.
func (p *page) Thousands(n int) string { return count(int64(n)) }

// From and To are the starts of the oldest and the newest run.
func (p *page) From() string { return clock(p.runs[len(p.runs)-1].StartTime) }
func (p *page) To() string   { return clock(p.runs[0].StartTime) }

// Period is the name of a row in the table of the timeline.
func (p *page) Period(t time.Time) string {
	if p.Hours {
		return t.Format("2006-01-02 15:04")
	}
	return t.Format(time.DateOnly)
}

// Example is the command that shows the conversation of the oldest run without one on
// the page.
func (p *page) Example() string {
	if len(p.conversations) == len(p.runs) {
		return ""
	}
	return p.command(len(p.runs) - 1)
}

// LargeExample is the command that shows the newest conversation that is too large.
func (p *page) LargeExample() string {
	at := slices.IndexFunc(p.conversations, func(c stored) bool { return c.large })
	if at < 0 {
		return ""
	}
	return p.command(at)
}

// command is the command that shows the conversation of a run.
func (p *page) command(i int) string {
	if p.options.Command == nil {
		return ""
	}
	return bounded(p.options.Command(&p.runs[i]), metadataText)
}

// clock returns a time as the page shows it, in UTC.
func clock(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.DateTime)
}

// summarize sets the data of the templates.
func (p *page) summarize() {
	p.States = states
	p.Periods, p.Hours = periodsOf(p.runs)
	p.Usage, p.All = usageOf(p.runs)
	p.Durations = durationsOf(p.runs)
	keys := map[string]int{}
	for i := range p.runs {
		p.Rows = append(p.Rows, p.rowOf(i, keys))
	}
	p.Failures = failuresOf(p.Rows)
	for _, g := range p.Failures {
		p.Failed += g.Runs
	}
	for _, g := range p.Usage {
		p.Runtimes = append(p.Runtimes, g.Runtime)
	}
	p.addTools()
	p.addFigures()
}

// generatedTask matches the beginning of a generated task ID.
var generatedTask = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^task-\d{8}-\d{6}-`) })

// rowOf returns the row of a run. Keys counts the earlier runs of each ID.
func (p *page) rowOf(i int, keys map[string]int) *row {
	run := &p.runs[i]
	r := &row{
		Key: line(run.RunID, 200), Start: clock(run.StartTime), State: string(stateOf(run)),
		Project: line(run.ProjectID, 120), Task: line(run.TaskID, 200),
		Prompt: p.texts[i].prompt, Reason: failureText(run), kind: failureKind(run),
		Runtime: line(run.Agent, 80), Model: line(run.Model, 80),
	}
	r.Name = generatedTask().ReplaceAllString(r.Task, "")
	if !run.StartTime.IsZero() {
		r.Time = run.StartTime.UTC().Format(time.RFC3339)
	}
	keys[r.Key]++
	if n := keys[r.Key]; n > 1 {
		r.Key += "~" + strconv.Itoa(n)
	}
	if d, ok := durationOf(run, p.options.Now); ok {
		r.Duration = span(d)
	}
	if u := run.Usage; u != nil {
		r.Input, r.Output, r.Cumulative = count(u.Input), count(u.Output), u.Cumulative
		if u.CostUSD != nil {
			r.Cost = dollars(*u.CostUSD, 4)
		}
	}
	if run.ToolCalls > 0 {
		r.Tools = count(int64(run.ToolCalls))
	}
	return r
}

func (p *page) addTools() {
	tools := map[string]*toolUse{}
	for i := range p.conversations {
		if len(p.conversations[i].json) > 0 {
			p.Inside++
		}
		if p.conversations[i].large {
			p.Large++
		}
		for name, use := range p.conversations[i].tools {
			if tools[name] == nil {
				tools[name] = &toolUse{Name: name}
			}
			tools[name].add(use)
		}
	}
	p.Tools = slices.SortedFunc(maps.Values(tools), func(a, b *toolUse) int {
		return cmp.Or(cmp.Compare(b.Calls, a.Calls), strings.Compare(a.Name, b.Name))
	})
}

func (p *page) addFigures() {
	by := map[runs.Status]int{}
	var took time.Duration
	projects := map[string]bool{}
	calls := 0
	for i := range p.runs {
		run := &p.runs[i]
		by[stateOf(run)]++
		projects[run.ProjectID] = true
		calls += run.ToolCalls
		if d, ok := durationOf(run, p.options.Now); ok {
			took += d
		}
	}
	p.Projects = len(projects)
	add := func(name, value, note string) { p.Figures = append(p.Figures, figure{name, value, note}) }
	add("Runs", p.Thousands(len(p.runs)), plural(p.Projects, "project", "projects"))
	if len(p.runs) == 1 {
		add("Status", p.Rows[0].State, p.Rows[0].kind)
	} else {
		p.addOutcomes(by, add)
	}
	add("Time of agents", span(took), plural(calls, "tool call", "tool calls"))
	if p.All.known > 0 {
		add("Tokens", brief(p.All.input+p.All.output), brief(p.All.input)+" in, "+brief(p.All.output)+" out")
	} else {
		add("Tokens", "unknown", "no run reports them")
	}
	switch {
	case p.All.CostRuns == 0:
		add("Cost", "unknown", "no run reports it")
	case p.All.Unknown() > 0:
		add("Known cost", p.All.Cost(), "unknown for "+plural(p.All.Unknown(), "run", "runs"))
	default:
		add("Cost", p.All.Cost(), "known for every run")
	}
}

// addOutcomes counts the completed runs and the others by outcome.
func (p *page) addOutcomes(by map[runs.Status]int, add func(name, value, note string)) {
	digits := 0
	if len(p.runs) >= 100 {
		digits = 1
	}
	completed := by[runs.StatusCompleted]
	share := strconv.FormatFloat(100*float64(completed)/float64(max(len(p.runs), 1)), 'f', digits, 64) + " %"
	add("Completed", share, p.Thousands(completed)+" of "+p.Thousands(len(p.runs)))
	others := []string{p.Thousands(by[runs.StatusFailed]) + " failed"}
	for _, s := range []runs.Status{runs.StatusCrashed, runs.StatusRunning, runs.StatusUnknown} {
		if by[s] > 0 {
			others = append(others, p.Thousands(by[s])+" "+string(s))
		}
	}
	add("Not completed", p.Thousands(len(p.runs)-completed), strings.Join(others, ", "))
}

// writeHead writes the page up to the body. The page can use only the style and the
// script of this package, and load nothing.
func (p *page) writeHead(w *bufio.Writer) error {
	_, err := fmt.Fprintf(w, `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src '%s'; script-src '%s' '%s'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<meta name="robots" content="noindex">
<title>Agent runs</title>
<style>%s</style>
<script>%s</script>
</head>
`, hashOf(pageStyle), hashOf(earlyScript), hashOf(pageScript()), pageStyle, earlyScript)
	return err
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// writeData writes the script's data of the runs.
func (p *page) writeData(w *bufio.Writer) error {
	data := pageData{Now: p.options.Now.UnixMilli(), Runs: make([]runData, len(p.runs))}
	for i := range p.runs {
		data.Runs[i] = p.dataOf(i)
	}
	text, err := json.Marshal(data)
	if err != nil {
		return fmt.Errorf("cannot write the page: %w", err)
	}
	writeBlock(w, "runs-data", text)
	return nil
}

// writeConversations writes each separately, so that only opened ones are parsed.
func (p *page) writeConversations(w *bufio.Writer) {
	for i := range p.conversations {
		if text := p.conversations[i].json; len(text) > 0 {
			writeBlock(w, "conversation-"+strconv.Itoa(i), text)
		}
	}
}

// writeBlock writes JSON whose text cannot end the block: encoding/json has escaped
// all markup.
func writeBlock(w *bufio.Writer, id string, text []byte) {
	fmt.Fprintf(w, `<script type="application/json" id="%s">`, id)
	_, _ = w.Write(text)
	_, _ = w.WriteString("</script>\n")
}
