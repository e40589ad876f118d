package runs

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/busdk/bus-agent/formatters"
)

// ErrDamaged reports damaged lines in a file of events. All other lines were read.
var ErrDamaged = errors.New("lines are damaged")

// ReadEvents reads events.ndjson and calls each with its events in order, until each
// returns an error, which ReadEvents returns. The caller may keep the events. Damaged
// lines are skipped and reported by [ErrDamaged] at the end. A last line without its
// end is still being written, or was cut off with the run: it is ignored,
// unless it is over [maxEntry] already, which is damage anywhere. Reading
// ends with [ErrDamaged], too, after 256 MiB of damaged lines.
func ReadEvents(r io.Reader, each func(*Event) error) error {
	return readEvents(r, maxEvent, maxDamage, each)
}

// maxEntry bounds a line of events.ndjson, in bytes. No entry of a line that is
// decoded is as long, also when all of it is escaped twice.
const maxEvent = 4 * formatters.MaxLine

// maxDamage bounds the damaged lines that are read, in bytes. A file with more of
// them was not written by a recorder; what follows is not read.
const maxDamage = 16 * formatters.MaxLine

func readEvents(r io.Reader, most, mostDamage int, each func(*Event) error) error {
	lines := bufio.NewReaderSize(r, 64<<10)
	var long []byte
	tooLong := false
	number, damaged, first := 0, 0, 0
	size := 0 // of the damaged lines
	for {
		line, err := lines.ReadSlice('\n')
		if size > mostDamage {
			return fmt.Errorf("%w: line %d first, with %d bytes or more; what follows is not read", ErrDamaged, first, size)
		}
		if tooLong {
			size += len(line)
		}
		full := errors.Is(err, bufio.ErrBufferFull)
		if (full || err == nil) && len(long)+len(line) > most && !tooLong {
			tooLong, long = true, nil
			if damaged++; damaged == 1 {
				first = number + 1
			}
		}
		switch {
		case full && tooLong:
			continue
		case full:
			long = append(long, line...)
			continue
		case errors.Is(err, io.EOF):
			if tooLong {
				number++
			}
			return damage(damaged, number, first)
		case err != nil:
			return err
		case tooLong:
			tooLong = false
			number++
			continue
		}
		if len(long) > 0 {
			long = append(long, line...)
			line, long = long, long[:0]
		}
		number++
		entry, err := parseEvent(line)
		if err != nil {
			if damaged++; damaged == 1 {
				first = number
			}
			size += len(line)
			continue
		}
		if err := each(entry); err != nil {
			return err
		}
	}
}

func damage(damaged, number, first int) error {
	if damaged == 0 {
		return nil
	}
	return fmt.Errorf("%w: %d of %d, line %d first", ErrDamaged, damaged, number, first)
}

func parseEvent(line []byte) (*Event, error) {
	if len(bytes.TrimSpace(line)) == 0 {
		return nil, errors.New("empty")
	}
	entry := new(Event)
	if err := json.Unmarshal(line, entry); err != nil {
		return nil, err
	}
	if entry.Kind == "" {
		return nil, errors.New("no kind")
	}
	return entry, nil
}
