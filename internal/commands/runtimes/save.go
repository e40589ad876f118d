package runtimes

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/busdk/bus-agent/internal/commands/cmdline"
	"github.com/busdk/bus-agent/internal/statefile"
	"github.com/busdk/bus-agent/verify"
)

// maxRecords bounds the file of --save, in bytes.
const maxRecords = 16 << 20

// readRecords returns the records in the file of --save, none if it does not exist.
func readRecords(path string) (records []verify.Record, err error) {
	if err := cmdline.CheckOutput(path); err != nil {
		return nil, err
	}
	data, err := statefile.Read(path, maxRecords)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, cmdline.Cause(err)
	}
	if json.Unmarshal(data, &records) != nil {
		return nil, errors.New("it has other content than results of verify; name another file")
	}
	return records, nil
}

// saveRecords writes the records in the file and those of the reports, which replace those
// of the same runtimes. A record that only its date would change stays as it is. Without a
// version, results say nothing about other installations, and are an error.
func saveRecords(prog *cmdline.Program, path string, reports []verify.Report, day time.Time) (failures cmdline.Failures) {
	records, err := readRecords(path) // again: another verify may have written it
	if err != nil {
		return cmdline.Failures{err}
	}
	for _, report := range reports {
		if report.Version == "" {
			failures = append(failures, fmt.Errorf("the results of %s are not saved, because its CLI reported no version", report.Runtime))
			continue
		}
		record := report.Record(day)
		i := slices.IndexFunc(records, func(r verify.Record) bool { return r.Runtime == record.Runtime })
		switch {
		case i < 0:
			records = append(records, record)
		case !records[i].Same(record):
			records[i] = record
		}
	}
	if len(failures) == len(reports) {
		return failures
	}
	slices.SortFunc(records, func(a, b verify.Record) int { return cmp.Compare(a.Runtime, b.Runtime) })
	data, err := json.MarshalIndent(records, "", "  ")
	if err == nil {
		err = prog.ReplaceFile(path, append(data, '\n'))
	}
	if err != nil {
		failures = append(failures, err)
	}
	return failures
}
