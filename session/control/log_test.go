package control

import "testing"

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
