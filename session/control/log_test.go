package control

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session/engine"
)

// A log is continued with the next number, also after half a line.
func TestLogContinues(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for i := range 3 {
		l, err := openLog(folder, 1<<10)
		if err != nil {
			t.Fatal(err)
		}
		l.append(LogRecord{Message: "m"})
		if last, _, _ := l.state(); last != int64(i+1) {
			t.Errorf("record %d has the number %d", i+1, last)
		}
		l.file.WriteString(`{"number":9`)
		l.finish()
	}
	at, last, err := lastRecords(folder, 2)
	if err != nil || last != 3 {
		t.Fatalf("%d, %v", last, err)
	}
	defer at.close()
	for want := int64(2); want <= 3; want++ {
		if _, h, missed, err := at.read(last); h.Number != want || missed != 0 || err != nil {
			t.Errorf("%d, %d missed, %v; want %d", h.Number, missed, err, want)
		}
	}
}

func TestLastRecordsAreAtMostAll(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	l, err := openLog(folder, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	for range 1100 {
		l.append(LogRecord{Message: "m"})
	}
	l.finish()
	for n, want := range map[int]int64{math.MaxInt: 1, math.MaxInt/2 + 1: 1, 1050: 51, 1: 1100} {
		at, last, err := lastRecords(folder, n)
		if err != nil || last != 1100 {
			t.Fatalf("%d, %v", last, err)
		}
		if at.next != want {
			t.Errorf("the last %d begin at %d, want %d", n, at.next, want)
		}
		at.close()
	}
}

// What a runtime reports fits into the entry. A part of an ID would name another session.
func TestReportedNamesAreBounded(t *testing.T) {
	t.Parallel()
	e := Entry{NativeID: "s"}
	long := strings.Repeat("é", maxEntry)
	e.learn(engine.Info{SessionID: long, Model: long})
	if e.NativeID != "s" || e.NativeModel != long[:maxReported] {
		t.Errorf("ID of %d bytes, model of %d", len(e.NativeID), len(e.NativeModel))
	}
}

func TestIDsAreOneLine(t *testing.T) {
	t.Parallel()
	store := NewStore(t.TempDir())
	for _, id := range []string{"", "two\nlines", "\x1b[2J", strings.Repeat("x", maxID+1)} {
		if err := store.claim(t.Context(), &Entry{SessionID: id}, true, ""); !errors.Is(err, agent.ErrUsage) {
			t.Errorf("%q: %v", id, err)
		}
	}
}
