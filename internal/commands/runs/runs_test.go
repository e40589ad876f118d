package runs

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/busdk/bus-agent/formatters"
)

func TestMoments(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 4, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"90m":                       now.Add(-90 * time.Minute),
		"36h":                       now.Add(-36 * time.Hour),
		"7d":                        now.AddDate(0, 0, -7),
		"2w":                        now.AddDate(0, 0, -14),
		"15250w":                    now.AddDate(0, 0, -7*15250), // the most that a duration holds
		"0s":                        now,
		"2026-11-01":                time.Date(2026, 11, 1, 0, 0, 0, 0, time.Local),
		"2026-11-01 13:30":          time.Date(2026, 11, 1, 13, 30, 0, 0, time.Local),
		"2026-11-01T13:30:05":       time.Date(2026, 11, 1, 13, 30, 5, 0, time.Local),
		"2026-11-01T13:30:05+02:00": time.Date(2026, 11, 1, 11, 30, 5, 0, time.UTC),
	} {
		if got, err := parseMoment(text, now); err != nil || !got.Equal(want) {
			t.Errorf("%s: %s, %v, want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"7", "d", "-1d", "-1h", "1.5d", "99999999d", "20000w", "65535w", "yesterday", "2026-13-01", "2026-11-01 25:00", ""} {
		if got, err := parseMoment(text, now); err == nil {
			t.Errorf("%q: %s, %v", text, got, err)
		}
	}
}

func TestLastLines(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		most       int
		text, want string
	}{
		{2, "a\nb\nc\n", "b\nc\n"},
		{2, "a\nb\nc", "b\nc"},
		{2, "a\n", "a\n"},
		{2, "", ""},
		{1, "a\n\n", "\n"},
		{0, "a\nb\n", ""},
		{0, "a\nb", "b"}, // the rest of it is to come
		{2, strings.Repeat(strings.Repeat("x", 999)+"\n", 500), strings.Repeat(strings.Repeat("x", 999)+"\n", 2)},
	} {
		for _, size := range []int{1, 7, len(c.text)} {
			var out bytes.Buffer
			l := &lastLines{to: &out, most: c.most}
			for text := c.text; text != ""; {
				part := text[:min(size, len(text))]
				text = text[len(part):]
				if n, err := io.WriteString(l, part); n != len(part) || err != nil {
					t.Fatal(n, err)
				}
				if len(l.held) > 200<<10 {
					t.Fatalf("%d bytes are held", len(l.held))
				}
			}
			if out.Len() > 0 {
				t.Errorf("%q is written before the release", out.String())
			}
			for range 2 {
				if err := l.release(); err != nil {
					t.Fatal(err)
				}
			}
			io.WriteString(l, "more")
			if got := out.String(); got != c.want+"more" {
				t.Errorf("the last %d of %.20q are %.40q, want %.40q", c.most, c.text, got, c.want+"more")
			}
		}
	}
}

func TestCaughtUpWhenAllIsDealtWith(t *testing.T) {
	t.Parallel()
	var log string
	r := &caughtUp{from: iotest.OneByteReader(strings.NewReader("abcd")), left: 2, then: func() error { log += "!"; return nil }}
	for {
		b := make([]byte, 4)
		n, err := r.Read(b)
		log += string(b[:n])
		if err == io.EOF {
			break
		}
	}
	if log != "ab!cd" {
		t.Error(log)
	}
	full := errors.New("full")
	if _, err := (&caughtUp{from: strings.NewReader("a"), then: func() error { return full }}).Read(make([]byte, 1)); err != full {
		t.Error(err)
	}
}

func TestSanitizeLines(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("no end ", 300<<10)
	for text, want := range map[string]string{
		"":                                     "",
		"a":                                    "a\n",
		"a\nb\n":                               "a\nb\n",
		"a\x1b[31mb\x07\r\n":                   "ab\n",
		long:                                   long + "\n",
		strings.Repeat("a\x1b[0mb\n", 300<<10): strings.Repeat("ab\n", 300<<10),
	} {
		var out bytes.Buffer
		if err := sanitizeLines(&out, strings.NewReader(text)); err != nil || out.String() != want {
			t.Errorf("%.40q: %.40q, %v", text, out.String(), err)
		}
	}
	broken := errors.New("broken")
	var out bytes.Buffer
	if err := sanitizeLines(&out, io.MultiReader(strings.NewReader("a\nb"), iotest.ErrReader(broken))); err != broken || out.String() != "a\nb\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
	if err := sanitizeLines(writerFunc(func([]byte) (int, error) { return 0, broken }), strings.NewReader("a")); err != broken {
		t.Error(err)
	}
}

// Trimming takes no more than a few looks at each byte, also where what is to be
// held is much.
func TestLastLinesTrimsSeldom(t *testing.T) {
	t.Parallel()
	line := []byte(strings.Repeat("x", 63) + "\n")
	l := &lastLines{to: io.Discard, most: 16 << 10}
	trimmed, before := 0, 0
	for range 64 << 10 {
		if _, err := l.Write(line); err != nil {
			t.Fatal(err)
		}
		if len(l.held) < before+len(line) {
			trimmed++
		}
		if trimmed > 10 {
			t.Fatal("trimmed at each line")
		}
		before = len(l.held)
		if most := 2*l.most*len(line) + len(line); len(l.held) > most {
			t.Fatalf("%d bytes are held, want no more than %d", len(l.held), most)
		}
	}
}

// A line of any length takes no more memory than a long one.
func TestSanitizeLinesCutsALineThatIsTooLong(t *testing.T) {
	t.Parallel()
	const size = 3*formatters.MaxLine + 1
	written, most, notes := 0, 0, 0
	to := writerFunc(func(b []byte) (int, error) {
		written, most = written+bytes.Count(b, []byte("x")), max(most, len(b))
		notes += bytes.Count(b, []byte("\n[the line continues]\n"))
		return len(b), nil
	})
	if err := sanitizeLines(to, io.LimitReader(endless{}, size)); err != nil || written != size || notes != 3 {
		t.Errorf("%d of %d bytes are written, with %d notes, %v", written, size, notes, err)
	}
	if most > formatters.MaxLine+1<<10 {
		t.Errorf("%d bytes are written at once", most)
	}
}

// endless is a line that never ends.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }
