package soak

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestReaderMakesWhatIsDescribed(t *testing.T) {
	t.Parallel()
	output := Output{
		{Count: 3, Lines: []Line{numbered("a", "b", "xy", 3, "\n"), plain("\n")}},
		{Count: 0, Lines: []Line{plain("none")}},
		{Count: 2},
		{Count: 1, Lines: []Line{{Fill: []byte("0123456789"), Times: 20_000, Plain: true}}},
	}
	var want strings.Builder
	for i := range 3 {
		fmt.Fprintf(&want, "a%012dbxyxyxy\n\n", i)
	}
	want.WriteString(strings.Repeat("0123456789", 20_000))
	if output.Size() != int64(want.Len()) {
		t.Errorf("size = %d, want %d", output.Size(), want.Len())
	}
	for name, r := range map[string]io.Reader{
		"at once":      output.Reader(),
		"byte by byte": iotest.OneByteReader(output.Reader()),
	} {
		if got, err := io.ReadAll(r); err != nil || string(got) != want.String() {
			t.Errorf("%s: %d bytes, %v, want %d others", name, len(got), err, want.Len())
		}
	}
}

func TestComparisonFindsEveryDifference(t *testing.T) {
	t.Parallel()
	output := Output{{Count: 5, Lines: []Line{numbered("", " ", "x", 9, "\n")}}}
	whole, err := io.ReadAll(output.Reader())
	if err != nil {
		t.Fatal(err)
	}
	compare := func(text []byte) error {
		c := newComparison(output)
		for part := range bytes.SplitAfterSeq(text, []byte("x")) {
			if _, err := c.Write(part); err != nil {
				return err
			}
		}
		return c.end()
	}
	if err := compare(whole); err != nil {
		t.Error(err)
	}
	changed := bytes.Clone(whole)
	changed[50]++
	swapped := append(bytes.Clone(whole[23:46]), whole[:23]...)
	for name, text := range map[string][]byte{
		"nothing": nil, "one byte less": whole[:len(whole)-1], "one byte more": append(bytes.Clone(whole), 'x'),
		"one byte changed": changed, "lines swapped": append(swapped, whole[46:]...),
	} {
		if compare(text) == nil {
			t.Errorf("%s is not found", name)
		}
	}
}
