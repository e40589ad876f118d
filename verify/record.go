package verify

import (
	"slices"
	"time"
)

// A Record is a [Report] in the form in which a file keeps it: without paths and
// durations, so that it is the same on every machine. "bus-agent verify --save" writes a
// JSON array of records. See Target.Verified.
type Record struct {
	Runtime string `json:"runtime"`
	Version string `json:"version"`

	// Date is the day of the run, as time.DateOnly.
	Date string `json:"date"`

	// Results have no promises. They have details only where a check does not apply: the
	// others can quote output of the CLI.
	Results []Result `json:"results"`
}

// Record returns the record of a report of the given day.
func (r Report) Record(day time.Time) Record {
	record := Record{Runtime: r.Runtime, Version: r.Version, Date: day.UTC().Format(time.DateOnly), Results: slices.Clone(r.Results)}
	for i := range record.Results {
		result := &record.Results[i]
		result.Promise, result.Duration = "", 0
		if result.Status != Unsupported {
			result.Detail = ""
		}
	}
	return record
}

// Same reports whether two records differ in their dates at most.
func (r Record) Same(other Record) bool {
	return r.Runtime == other.Runtime && r.Version == other.Version && slices.Equal(r.Results, other.Results)
}
