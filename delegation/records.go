package delegation

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/runs"
)

// A Record is the record of a run or session.
type Record struct {
	RunID      string      `json:"run_id"`
	Runtime    string      `json:"runtime"`
	Model      string      `json:"model,omitempty"`
	Status     runs.Status `json:"status"`
	Access     string      `json:"access,omitempty"`
	Workdir    string      `json:"workdir"`
	Started    string      `json:"started"` // RFC 3339
	DurationMS int64       `json:"duration_ms"`
	Session    bool        `json:"session,omitempty"`
	Reason     string      `json:"reason,omitempty"`    // why it failed
	Text       string      `json:"text,omitempty"`      // of the file that was asked for
	Truncated  bool        `json:"truncated,omitempty"` // the middle of Text is missing
}

// The bounds of a list of records.
const (
	DefaultRecords = 20
	MaxRecords     = 200
)

// maxSearched is how many of the latest records Records searches.
const maxSearched = 2000

// maxRecordFile is how much of a file of a record is read, in bytes.
const maxRecordFile = 4 << 20

var errNoRecords = agent.Usagef("this server reads no records")

// Records returns the latest records of runs in the workdir of the broker and below, up to
// limit: DefaultRecords if it is 0, MaxRecords at most. status and runtime select, if not
// empty.
func (b *Broker) Records(ctx context.Context, status runs.Status, runtime string, limit int) ([]Record, error) {
	list := []Record{}
	if b.settings.RunsRoot == "" {
		return list, errNoRecords
	}
	limit = min(cmp.Or(limit, DefaultRecords), MaxRecords)
	records := runs.Records{Root: b.settings.RunsRoot}
	found, problems, err := records.List(ctx, runs.Filter{Status: status, Runtime: runtime, Limit: maxSearched})
	if errors.Is(err, fs.ErrNotExist) {
		return list, nil
	}
	for _, problem := range problems {
		if warn := b.settings.Runner.Warn; warn != nil {
			warn(problem.Error())
		}
	}
	for i := range found {
		if len(list) < limit && b.records(&found[i]) {
			list = append(list, record(&found[i]))
		}
	}
	return list, err
}

// Record returns a record with the text of one of its files: runs.FileOutput, the answer,
// if file is empty, or runs.FilePrompt. A file that does not exist has no text.
func (b *Broker) Record(ctx context.Context, id, file string) (Record, error) {
	file = cmp.Or(file, runs.FileOutput)
	switch {
	case b.settings.RunsRoot == "":
		return Record{}, errNoRecords
	case file != runs.FileOutput && file != runs.FilePrompt:
		return Record{}, agent.Usagef("%q is not a file of a record that can be read", file)
	}
	records := runs.Records{Root: b.settings.RunsRoot}
	run, err := records.Find(ctx, id)
	if ctx.Err() != nil {
		return Record{}, context.Cause(ctx)
	}
	if err != nil || !b.records(&run) { // the error can name runs elsewhere
		return Record{}, agent.Usagef("there is no run %q in %s that can be read; write its ID in full", id, b.settings.Workdir)
	}
	r := record(&run)
	content, err := run.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return r, err
	}
	defer content.Close()
	text, err := io.ReadAll(io.LimitReader(content, maxRecordFile))
	r.Text, r.Truncated = bounded(string(text), b.settings.Output)
	r.Truncated = r.Truncated || len(text) == maxRecordFile
	return r, err
}

// records reports whether the caller can read the record of a run: it was in the workdir.
func (b *Broker) records(run *runs.Run) bool {
	if run.CWD == "" {
		return false
	}
	real, err := realDirectory(run.CWD)
	return err == nil && inside(b.settings.Workdir, real)
}

func record(run *runs.Run) Record {
	return Record{
		RunID: run.RunID, Runtime: run.Agent, Model: run.Model, Status: run.Status, Access: run.Access, Workdir: run.CWD,
		Started: run.StartTime.Format(time.RFC3339), DurationMS: run.Duration().Milliseconds(), Session: run.Session,
		Reason: run.ErrorSummary,
	}
}
