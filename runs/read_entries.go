package runs

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// ErrDamaged says that a file of events has lines that are none. What could be read
// was handed on.
var ErrDamaged = errors.New("lines are damaged")

// ReadEntries reads events.ndjson and calls each with what stands in it, in order,
// until that returns an error, which it returns. The Entry is each's to keep. Lines
// that are no entries are left out, and reported by [ErrDamaged] at the end. A last
// line without its end is none yet, or was cut off with the run: it says nothing.
func ReadEntries(r io.Reader, each func(*Entry) error) error {
	lines := bufio.NewReaderSize(r, 64<<10)
	var long []byte
	number, damaged, first := 0, 0, 0
	for {
		line, err := lines.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			long = append(long, line...)
			continue
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if len(long) > 0 {
			long = append(long, line...)
			line, long = long, long[:0]
		}
		number++
		entry, err := parseEntry(line)
		if err != nil {
			if damaged++; damaged == 1 {
				first = number
			}
			continue
		}
		if err := each(entry); err != nil {
			return err
		}
	}
	if damaged > 0 {
		return fmt.Errorf("%w: %d of %d, line %d first", ErrDamaged, damaged, number, first)
	}
	return nil
}

func parseEntry(line []byte) (*Entry, error) {
	if len(bytes.TrimSpace(line)) == 0 {
		return nil, errors.New("empty")
	}
	entry := new(Entry)
	if err := json.Unmarshal(line, entry); err != nil {
		return nil, err
	}
	if entry.Kind == "" {
		return nil, errors.New("no kind")
	}
	return entry, nil
}
