package verify_test

import (
	"encoding/json"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/busdk/bus-agent/verify"
)

func TestRecordIsTheSameOnEveryMachine(t *testing.T) {
	t.Parallel()
	day := time.Date(2026, 1, 2, 23, 0, 0, 0, time.FixedZone("", -3600*5))
	report := verify.Report{Runtime: "parrot", Path: "/bin/parrot", Version: "1.2", Results: []verify.Result{
		{Check: "a", Promise: "It holds.", Status: verify.Kept, Duration: time.Second},
		{Check: "b", Promise: "It holds.", Status: verify.Broken, Detail: "it left /tmp/x"},
		{Check: "c", Promise: "It holds.", Status: verify.KnownFailure, Detail: "it left /tmp/x", Known: "it leaves files"},
		{Check: "d", Promise: "It holds.", Status: verify.Unsupported, Detail: "the runtime supports no models"},
	}}
	record := report.Record(day)
	data, err := json.MarshalIndent(record, "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	const want = `{
	"runtime": "parrot",
	"version": "1.2",
	"date": "2026-01-03",
	"results": [
		{
			"check": "a",
			"status": "kept"
		},
		{
			"check": "b",
			"status": "broken"
		},
		{
			"check": "c",
			"status": "known",
			"known": "it leaves files"
		},
		{
			"check": "d",
			"status": "unsupported",
			"detail": "the runtime supports no models"
		}
	]
}`
	if diff := gocmp.Diff(want, string(data)); diff != "" {
		t.Errorf("record (-want +got):\n%s", diff)
	}
	if report.Results[0].Promise == "" {
		t.Error("the record changed the report")
	}

	var read verify.Record
	if err := json.Unmarshal(data, &read); err != nil {
		t.Fatal(err)
	}
	if read.Date = "2027-01-01"; !read.Same(record) {
		t.Error("only the date differs, but the records are not the same")
	}
	read.Results[0].Status = verify.Broken
	if read.Same(record) {
		t.Error("records with other results are the same")
	}
}
