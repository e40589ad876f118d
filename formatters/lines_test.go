package formatters

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

type got struct {
	Line      string
	Truncated bool
	Size      int64
}

func collect(max int) (*Lines, *[]got) {
	all := &[]got{}
	return &Lines{Max: max, Handle: func(line []byte, truncated bool, size int64) error {
		*all = append(*all, got{string(line), truncated, size})
		return nil
	}}, all
}

func whole(lines ...string) []got {
	var all []got
	for _, line := range lines {
		all = append(all, got{line, false, int64(len(line))})
	}
	return all
}

func TestLines(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, input string
		max         int
		want        []got
	}{
		{"nothing", "", 0, []got{}},
		{"one line", "a\n", 0, whole("a")},
		{"half a line at the end", "a\nbc", 0, whole("a", "bc")},
		{"empty lines", "\n\na\n\n", 0, whole("", "", "a", "")},
		{"carriage return before the line feed", "a\r\nb\r\n\r\n", 0, whole("a", "b", "")},
		{"carriage return elsewhere", "a\rb\n\r", 0, whole("a\rb", "\r")},
		{"two carriage returns", "a\r\r\n", 0, whole("a\r")},
		{"any bytes", "\x00\xff\xfe\n\x80", 0, whole("\x00\xff\xfe", "\x80")},
		{"at the maximum", "abcd\nabcd\r\nabcd", 4, whole("abcd", "abcd", "abcd")},
		{"over the maximum", "abcde\nx\nabcdef\r\nabcdefg", 4,
			[]got{{"abcd", true, 5}, {"x", false, 1}, {"abcd", true, 6}, {"abcd", true, 7}}},
	} {
		for chunk := 1; chunk <= len(test.input)+1; chunk++ {
			l, all := collect(test.max)
			for part := range slices.Chunk([]byte(test.input), chunk) {
				if n, err := l.Write(bytes.Clone(part)); n != len(part) || err != nil {
					t.Fatalf("%s: Write = %d, %v", test.name, n, err)
				}
			}
			if err := l.Close(); err != nil {
				t.Fatalf("%s: Close: %v", test.name, err)
			}
			if diff := cmp.Diff(test.want, *all); diff != "" {
				t.Errorf("%s in chunks of %d (-want +got):\n%s", test.name, chunk, diff)
			}
		}
	}
}

func TestLinesBoundMemory(t *testing.T) {
	t.Parallel()
	l, all := collect(1 << 20)
	part := bytes.Repeat([]byte("x"), 100_000)
	for range 1000 {
		if _, err := l.Write(part); err != nil {
			t.Fatal(err)
		}
		if cap(l.buf) > 3<<20 {
			t.Fatalf("%d bytes are held of a line with a maximum of 1 MiB", cap(l.buf))
		}
	}
	if _, err := l.Write([]byte("\nnext\n")); err != nil {
		t.Fatal(err)
	}
	want := []got{{strings.Repeat("x", headSize), true, 100_000_000}, {"next", false, 4}}
	if diff := cmp.Diff(want, *all); diff != "" {
		t.Error(diff)
	}
	if cap(l.buf) > ownBuffer {
		t.Errorf("%d bytes are still held after a long line", cap(l.buf))
	}
}

func TestLinesDoNotCopyWithinAChunk(t *testing.T) {
	t.Parallel()
	chunk := []byte("first\nsecond\n")
	i := 0
	l := Lines{Handle: func(line []byte, _ bool, _ int64) error {
		if &line[0] != &chunk[i] {
			t.Errorf("%q was copied", line)
		}
		i += len(line) + 1
		return nil
	}}
	if _, err := l.Write(chunk); err != nil {
		t.Fatal(err)
	}
	if l.buf != nil {
		t.Error("a buffer was made")
	}
}

func TestLinesStopAtAnError(t *testing.T) {
	t.Parallel()
	refuse := errors.New("refused")
	calls := 0
	l := Lines{Handle: func(line []byte, _ bool, _ int64) error {
		calls++
		if string(line) == "b" {
			return refuse
		}
		return nil
	}}
	if n, err := l.Write([]byte("a\nb\nc\nd")); n != 4 || err != refuse {
		t.Errorf("Write = %d, %v; want 4, refused", n, err)
	}
	if n, err := l.Write([]byte("e\n")); n != 0 || err != refuse {
		t.Errorf("Write after the error = %d, %v", n, err)
	}
	if err := l.Close(); err != refuse {
		t.Errorf("Close = %v", err)
	}
	if calls != 2 {
		t.Errorf("%d lines were handed over, want 2", calls)
	}
}

func TestLinesOfManyEmptyLines(t *testing.T) {
	n := 0
	l := Lines{Handle: func([]byte, bool, int64) error { n++; return nil }}
	chunk := bytes.Repeat([]byte("\n"), 32<<10)
	allocs := testing.AllocsPerRun(10, func() { l.Write(chunk) })
	if allocs != 0 {
		t.Errorf("%v allocations for empty lines", allocs)
	}
	if n != 11*len(chunk) {
		t.Errorf("%d lines, want %d", n, 11*len(chunk))
	}
}

func FuzzLines(f *testing.F) {
	f.Add([]byte("a\r\nb\n\nc"), uint8(3), uint8(2))
	f.Add([]byte("\r\n\r\r\n"), uint8(1), uint8(1))
	f.Fuzz(func(t *testing.T, input []byte, max, chunk uint8) {
		split := func(r io.Reader) []got {
			l, all := collect(int(max))
			if _, err := io.CopyBuffer(struct{ io.Writer }{l}, struct{ io.Reader }{r}, make([]byte, int(chunk)+1)); err != nil {
				t.Fatal(err)
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			return *all
		}
		lines := split(bytes.NewReader(input))
		if diff := cmp.Diff(lines, split(iotest.OneByteReader(bytes.NewReader(input)))); diff != "" {
			t.Fatalf("the cuts decide: %s", diff)
		}
		want := bytes.Count(input, []byte("\n"))
		if len(input) > 0 && input[len(input)-1] != '\n' {
			want++
		}
		if len(lines) != want {
			t.Fatalf("%d lines, want %d", len(lines), want)
		}
	})
}

func BenchmarkLines(b *testing.B) {
	line := append(bytes.Repeat([]byte("x"), 2000), '\n')
	for _, test := range []struct {
		name  string
		input []byte
	}{
		{"2kB", bytes.Repeat(line, 500)},
		{"empty", bytes.Repeat([]byte("\n"), 1<<20)},
	} {
		b.Run(test.name, func(b *testing.B) {
			l := Lines{Handle: func([]byte, bool, int64) error { return nil }}
			b.SetBytes(int64(len(test.input)))
			for b.Loop() {
				for part := range slices.Chunk(test.input, 64<<10) {
					l.Write(part)
				}
			}
		})
	}
}
