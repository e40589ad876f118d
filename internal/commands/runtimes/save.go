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
// version, results say nothing about other installations, and are an error. With only some
// of the checks, all other results of the same version stay.
func saveRecords(prog *cmdline.Program, path string, reports []verify.Report, day time.Time, some bool) (failures cmdline.Failures) {
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
		if some {
			if i < 0 || records[i].Version != record.Version {
				failures = append(failures, fmt.Errorf("the results of %s are not saved, because the file has none of version %s; leave out --check", record.Runtime, cmdline.Quote(record.Version)))
				continue
			}
			record.Results = merged(records[i].Results, record.Results)
		}
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

// merged returns the results of all checks, in their order: the new one of a check if there
// is one.
func merged(old, recent []verify.Result) (all []verify.Result) {
	for _, c := range verify.Checks() {
		is := func(r verify.Result) bool { return r.Check == c.Name }
		for _, list := range [][]verify.Result{recent, old} {
			if i := slices.IndexFunc(list, is); i >= 0 {
				all = append(all, list[i])
				break
			}
		}
	}
	return all
}
